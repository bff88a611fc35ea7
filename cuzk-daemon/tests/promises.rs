//! What the documents promise is there: the tests that `docs/bugs.md` names, and the keys, commands and messages of
//! `docs/operators-guide.md`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use cuzk_daemon::config::KEYS;

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

const GUIDE: &str = include_str!("../../docs/operators-guide.md");

/// Code in the guide: between backticks, and lines of its blocks.
fn code() -> Vec<&'static str> {
    let mut code: Vec<&str> = Vec::new();
    for (n, part) in GUIDE.split("```").enumerate() {
        match n % 2 {
            0 => code.extend(part.split('`').skip(1).step_by(2)),
            _ => code.extend(part.lines().skip(1)),
        }
    }
    code
}

#[test]
fn every_key_of_the_guide_exists() {
    let tables: Vec<&str> = KEYS.iter().map(|key| key.table).collect();
    let mut named = 0;
    for code in code() {
        let path = code.split(' ').next().unwrap_or_default();
        let Some((table, _)) = path.split_once('.').filter(|(table, _)| tables.contains(table)) else { continue };
        assert!(
            KEYS.iter().any(|key| key.path() == path),
            "the guide names {path}, and there is no such key of [{table}]"
        );
        named += 1;
    }
    assert!(named >= 20, "{named}");
}

#[test]
fn every_command_of_the_guide_exists() {
    let mut named = 0;
    for code in code() {
        for command in code.split("cuzk-daemon ").skip(1) {
            let words: Vec<&str> =
                command.split(' ').take_while(|w| w.starts_with(|c: char| c.is_ascii_lowercase())).collect();
            let help = [&words[..], &["--help"]].concat();
            if words.is_empty() {
                continue;
            }
            let ran =
                std::process::Command::new(env!("CARGO_BIN_EXE_cuzk-daemon")).args(&help).output().expect("it runs");
            let text = String::from_utf8_lossy(&ran.stdout);
            assert!(ran.status.success(), "cuzk-daemon {}", words.join(" "));
            for option in command.split(' ').filter(|word| word.starts_with("--")) {
                assert!(text.contains(option), "cuzk-daemon {} has no {option}", words.join(" "));
            }
            named += 1;
        }
    }
    assert!(named >= 10, "{named}");
}

#[test]
fn every_message_of_the_guide_is_said_somewhere() {
    let mut text = String::new();
    for name in ["cuzk-server", "cuzk-daemon", "cuzk-gpu"] {
        sources(&root().join(name).join("src"), &mut text);
    }
    // Texts of the sources may be broken over lines.
    let text = text.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let rows = GUIDE.split("| message |").nth(1).expect("a table of messages").split("\n\n").next().expect("its rows");
    let messages: Vec<&str> = rows.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert!(messages.len() >= 10, "{messages:?}");
    for message in messages {
        assert!(text.contains(message), "{message:?} is said nowhere");
    }
}
