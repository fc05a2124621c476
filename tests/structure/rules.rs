//! Rules that single files keep: their names, how they begin, what they may and may not spell.

use crate::{File, assert_none, files, rust};

/// Names that say nothing: a file that wants one is a noun that is missing.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager", "misc"];

/// The ends of the store's keys; each stands after the tag and a colon.
const KEYS: &[&str] = &[
    "exp",
    "cur",
    "due",
    "open",
    "skip",
    "crossed",
    "payload",
    "fail",
    "dead",
    "review",
    "dead_at",
    "review_at",
    "every",
    "bad",
    "meta",
    "wake",
    "history",
    "namespaces",
];

#[test]
fn every_file_says_first_what_it_owns() {
    let sources = ["src", "tests", "examples", "benches"].iter().flat_map(|directory| files(directory, &["rs"]));
    let silent = sources.filter(|file| !file.text.starts_with("//! ")).map(|file| file.path);
    assert_none(&silent.map(|path| format!("{path} does not begin with `//!`")).collect::<Vec<_>>());
}

#[test]
fn no_file_is_named_after_nothing() {
    let all = ["src", "tests", "examples", "benches", "scripts"].iter();
    let paths = all.flat_map(|directory| files(directory, &["rs", "lua", "sh", "py"])).map(|file| file.path);
    let empty = paths.filter(|path| path.split(['/', '.']).any(|part| EMPTY_NAMES.contains(&part)));
    assert_none(&empty.collect::<Vec<_>>());
}

#[test]
fn only_the_clock_reads_wall_time() {
    assert_none(&each_but("src/clock.rs", reads_wall_time));
}

#[test]
fn only_one_file_spells_a_key() {
    assert_none(&each_but("src/store/redis/keys.rs", spells_a_key));
}

#[test]
fn the_engine_never_names_redis() {
    let engine = files("src/engine", &["rs"]);
    assert!(!engine.is_empty());
    assert_none(&engine.iter().flat_map(names_redis).collect::<Vec<_>>());
}

#[test]
fn a_broken_rule_is_found() {
    let found = |rule: fn(&File) -> Vec<String>, text: &str| {
        !rule(&File { path: "src/some.rs".to_owned(), text: text.to_owned() }).is_empty()
    };
    assert!(found(reads_wall_time, "let now = chrono::Utc::now();"));
    assert!(found(reads_wall_time, "let now = SystemTime :: now();"));
    assert!(!found(reads_wall_time, "/// let now = chrono::Utc::now();\nlet at = Instant::now();"));
    assert!(found(spells_a_key, "format!(\"{{fw:{namespace}:0}}\")"));
    assert!(found(spells_a_key, "format!(\"{{{prefix}:{namespace}:0}}:\")"));
    assert!(found(spells_a_key, "format!(\"{tag}:due:{route}\")"));
    assert!(found(spells_a_key, "let key = tag + \":exp\";"));
    assert!(!found(spells_a_key, "format!(\"a notice due: {due}\")"));
    assert!(found(names_redis, "use ::redis::Client;"));
    assert!(found(names_redis, "return \"redis://127.0.0.1\";"));
    assert!(!found(names_redis, "/// As with `redis://127.0.0.1`.\nfn f() {}"));
}

/// What `rule` complains of in all sources but one.
fn each_but(exception: &str, rule: fn(&File) -> Vec<String>) -> Vec<String> {
    files("src", &["rs"]).iter().filter(|file| file.path != exception).flat_map(rule).collect()
}

fn reads_wall_time(file: &File) -> Vec<String> {
    let code = rust::parts(&file.text).code;
    let reads = |line: &str| {
        let line: String = line.split_whitespace().collect();
        ["SystemTime::now", "Utc::now", "Local::now"].iter().any(|call| line.contains(call))
    };
    let lines = code.lines().enumerate().filter(|(_, line)| reads(line));
    lines.map(|(index, line)| format!("{}:{}: {}", file.path, index + 1, line.trim())).collect()
}

fn spells_a_key(file: &File) -> Vec<String> {
    let spelled = |string: &str| {
        string.contains("{{fw")
            || string.contains("{{") && string.contains("}}:")
            || KEYS.iter().any(|key| {
                let with_route = format!(":{key}:");
                string.ends_with(&format!(":{key}")) || string.contains(&with_route)
            })
    };
    let strings = rust::parts(&file.text).strings.into_iter().filter(|(_, string)| spelled(string));
    strings.map(|(line, string)| format!("{}:{line}: \"{string}\" spells a key", file.path)).collect()
}

fn names_redis(file: &File) -> Vec<String> {
    let parts = rust::parts(&file.text);
    let code = parts.code.lines().map(str::to_owned).enumerate().map(|(index, line)| (index + 1, line));
    let named = code.chain(parts.strings).filter(|(_, text)| text.to_lowercase().contains("redis"));
    named.map(|(line, text)| format!("{}:{line}: {}", file.path, text.trim())).collect()
}
