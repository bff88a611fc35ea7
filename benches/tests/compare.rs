//! The program as CI calls it, on measurements from a file: exit status, table, what is written.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

fn benches(args: &[&str], dir: &Path) -> Output {
    let baseline = dir.join("baseline.json");
    Command::new(env!("CARGO_BIN_EXE_cuzk-benches"))
        .args(args)
        .arg("--baseline")
        .arg(baseline)
        .output()
        .expect("the program runs")
}

fn rounds(dir: &Path, name: &str, slowed: f64) -> String {
    let line = |id: &str, value: f64| {
        format!("{{\"class\": \"gpu X\", \"id\": \"{id}\", \"value\": {value}, \"calibration\": 0.5}}\n")
    };
    let lines: Vec<String> = [1.0, 1.02, 0.99]
        .iter()
        .flat_map(|r| [line("ntt/cuda/fr/2^22", r * slowed), line("msm/cuda/g1/2^20", *r)])
        .collect();
    let path = dir.join(name);
    fs::write(&path, lines.concat()).expect("the folder is writable");
    path.to_str().expect("temporary paths are text").to_owned()
}

#[test]
fn the_exit_status_tells_whether_anything_is_slower() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let dir = dir.path();
    let (before, same, slower) = (rounds(dir, "a", 1.0), rounds(dir, "b", 1.05), rounds(dir, "c", 1.5));

    let unknown = benches(&["compare", "--from", &before], dir);
    let text = String::from_utf8_lossy(&unknown.stdout).into_owned();
    assert_eq!(unknown.status.code(), Some(0), "an unknown class is reported only: {text}");
    assert!(text.contains("nothing is recorded for this class"), "{text}");

    let recorded = benches(&["record", "--reason", "a test", "--from", &before], dir);
    assert_eq!(recorded.status.code(), Some(0), "{recorded:?}");
    let baseline = fs::read_to_string(dir.join("baseline.json")).expect("it was written");
    assert!(baseline.contains("\"reason\": \"a test\"") && baseline.contains("\"ratio\": 2.0"), "{baseline}");

    assert_eq!(benches(&["compare", "--from", &same], dir).status.code(), Some(0));
    let slower = benches(&["compare", "--from", &slower], dir);
    let text = String::from_utf8_lossy(&slower.stdout).into_owned();
    assert_eq!(slower.status.code(), Some(1), "{text}");
    let line = text.lines().find(|line| line.starts_with("ntt/cuda")).expect("a line for the bench");
    assert!(line.contains("+50.0%") && line.ends_with("SLOWER"), "{text}");

    fs::write(dir.join("baseline.json"), "{}").expect("writable");
    assert_eq!(benches(&["compare", "--from", &same], dir).status.code(), Some(2), "a damaged baseline");
}
