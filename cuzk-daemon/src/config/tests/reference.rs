//! `config/cuzk.toml` says of every key what the program does: no key is missing, stale, or told with another default.

use super::*;

/// One key as the reference has it.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    table: String,
    name: String,
    /// The value's text.
    default: String,
    /// What is said of it.
    sentences: String,
}

/// The entries in their order. An entry is a comment of the form `# name = value`, behind its sentences.
fn entries(reference: &str) -> Vec<Entry> {
    let (mut entries, mut table, mut sentences) = (Vec::new(), String::new(), Vec::new());
    for line in reference.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = name.to_owned();
            sentences.clear();
        } else if let Some((name, value)) = line.strip_prefix("# ").and_then(assignment) {
            let (name, default, sentences) = (name.to_owned(), value.to_owned(), sentences.join(" "));
            entries.push(Entry { table: table.clone(), name, default, sentences });
        } else if line.is_empty() || line == "#" {
            sentences.clear();
        } else {
            sentences.push(line.strip_prefix("# ").unwrap_or_else(|| panic!("{line:?} is no comment")));
        }
    }
    entries
}

/// Name and value, if the text is nothing else.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once(" = ")?;
    let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    (is_name && format!("x = {value}").parse::<toml::Table>().is_ok()).then_some((name, value))
}

/// The names of the form `table.key` in a text whose table exists.
fn mentions(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
    let tables = schema::tables();
    let of_ours =
        |word: &&str| word.split_once('.').is_some_and(|(table, key)| tables.contains(&table) && key != "toml");
    words.map(|word| word.trim_matches('.')).filter(of_ours).map(str::to_owned).collect()
}

#[test]
fn the_reference_as_shipped_changes_nothing() {
    let settings = read(REFERENCE).expect("the reference is legal");
    assert_eq!(settings.config, Config::default());
    assert!(KEYS.iter().all(|key| *settings.origin(key) == Origin::Default));
    assert_eq!(settings.warnings, []);
}

#[test]
fn the_reference_has_exactly_the_keys_of_the_schema_in_their_order() {
    let told: Vec<_> = entries(REFERENCE).into_iter().map(|entry| format!("{}.{}", entry.table, entry.name)).collect();
    let known: Vec<_> = KEYS.iter().map(Key::path).collect();
    assert_eq!(told, known);
}

#[test]
fn every_default_is_told_as_the_program_writes_it() {
    for (entry, key) in entries(REFERENCE).iter().zip(KEYS) {
        assert_eq!(entry.default, (key.get)(&Config::default()).to_string(), "{}", key.path());
    }
}

#[test]
fn the_reference_with_all_keys_live_is_the_default() {
    let live: Vec<_> = REFERENCE
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|text| assignment(text).is_some()).unwrap_or(line))
        .collect();
    let settings = read(&live.join("\n")).expect("legal");
    assert_eq!(settings.config, Config::default());
    assert!(KEYS.iter().all(|key| matches!(settings.origin(key), Origin::File { .. })));
}

#[test]
fn every_key_is_explained_in_sentences() {
    for Entry { table, name, sentences, .. } in entries(REFERENCE) {
        assert!(sentences.len() >= 30, "{table}.{name}: {sentences:?}");
        assert!(sentences.ends_with(['.', ')']), "{table}.{name}: {sentences:?}");
        assert!(sentences.starts_with(|c: char| c.is_ascii_uppercase() || c == '"'), "{table}.{name}: {sentences:?}");
    }
}

#[test]
fn keys_that_texts_mention_exist() {
    let docs = KEYS.iter().map(|key| key.doc.to_owned());
    let mut found = 0;
    for text in docs.chain([REFERENCE.to_owned()]) {
        for mention in mentions(&text) {
            found += 1;
            assert!(KEYS.iter().any(|key| key.path() == mention), "{mention} in {text:?}");
        }
    }
    assert!(found >= 8, "{found} mentions: they are not recognized");
}

#[test]
fn examples_in_the_texts_are_legal() {
    // Of the form: such as ["0=porep-32g"], or: or a size such as "16GiB".
    let mut found = 0;
    for (entry, key) in entries(REFERENCE).iter().zip(KEYS) {
        let lists = entry.sentences.split("such as [").skip(1).filter_map(|rest| rest.split_once(']'));
        for (items, _) in lists {
            let value = format!("x = [{items}]").parse::<toml::Table>().unwrap_or_else(|e| panic!("{items}: {e}"));
            let set = (key.set)(&mut Config::default(), &value["x"]);
            found += 1;
            assert_eq!(set, Ok(()), "{}: [{items}]", key.path());
        }
    }
    assert!(found >= 4, "{found} examples: they are not recognized");
}

#[test]
fn a_drifted_reference_would_be_noticed() {
    let told = entries(
        "# About the file.\n\n[a]\n# Says this.\n# And that: x = 1 is no key here.\n# k = 3\n\n# Old.\n# l = []\n",
    );
    let entry = |name: &str, default: &str, sentences: &str| Entry {
        table: "a".into(),
        name: name.into(),
        default: default.into(),
        sentences: sentences.into(),
    };
    assert_eq!(told, [entry("k", "3", "Says this. And that: x = 1 is no key here."), entry("l", "[]", "Old.")]);
    assert_eq!(mentions("see (srs.mirrors), daemon.x. cuzk.toml a.b srs.toml"), ["srs.mirrors", "daemon.x"]);
}
