//! `docs/bugs.md` names a test for each requirement: every one of them is there.

use std::{
    fs,
    path::{Path, PathBuf},
};

const TABLE: &str = include_str!("../../docs/bugs.md");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a crate of the workspace").to_owned()
}

/// The sources of a crate, as one text.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            *text += &fs::read_to_string(&path).expect("text");
        }
    }
}

/// What stands between backticks in the table.
fn quoted() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Whether a text has a test function of this name.
fn has_test(text: &str, name: &str) -> bool {
    let declared = format!("fn {name}(");
    text.match_indices(&declared).any(|(at, _)| {
        let before = &text[..at];
        let attribute = before.rfind("#[").map_or("", |from| &before[from..]);
        // Between attribute and function stands no other item, but for attributes such as `ignore`.
        attribute.matches("fn ").count() == 0 && before[before.len().saturating_sub(300)..].contains("test")
    })
}

#[test]
fn every_test_that_the_table_names_exists() {
    let mut named = 0;
    for name in ["cuzk-server", "cuzk-daemon", "cuzk-synth", "cuzk-gpu"] {
        let mut text = String::new();
        for part in ["src", "tests"] {
            let folder = root().join(name).join(part);
            if folder.is_dir() {
                sources(&folder, &mut text);
            }
        }
        let prefix = format!("{name}::");
        for test in quoted().filter_map(|quote| quote.strip_prefix(&prefix)) {
            assert!(has_test(&text, test) || text.contains(&format!("{test}: ")), "{name} has no test {test}");
            named += 1;
        }
    }
    assert!(named >= 100, "{named} are named");
}

#[test]
fn every_check_for_a_gpu_exists() {
    let mut text = String::new();
    sources(&root().join("cuzk-gpu/src/cuda"), &mut text);
    let mut named = 0;
    for check in quoted().filter_map(|quote| quote.strip_prefix("gpu: ")) {
        assert!(text.contains(&format!("name: \"{check}\"")), "gpu-check has no {check:?}");
        named += 1;
    }
    assert!(named >= 10, "{named} are named");
}

#[test]
fn every_requirement_has_its_row_once() {
    let first = |line: &'static str| line.strip_prefix("| ")?.split(' ').next()?.parse::<u32>().ok();
    let mut numbers: Vec<u32> = TABLE.lines().filter_map(first).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=37).collect::<Vec<_>>());
}
