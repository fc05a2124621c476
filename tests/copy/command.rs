//! `store copy` as a user runs it.

use std::process::Command;

use crate::harness::{Kind, PASSWORD, Server, namespace};
use crate::process::{Ended, bare, end};

/// A file and a server, and a namespace that only the file has.
struct Pair {
    directory: tempfile::TempDir,
    server: String,
    namespace: String,
}

impl Pair {
    /// The namespace holds three ids, one of which has expired long ago.
    fn new() -> Self {
        let pair = Self {
            directory: tempfile::tempdir().unwrap(),
            server: Server::shared(Kind::Redis).url(),
            namespace: namespace(),
        };
        pair.on_file(&["namespace", "apply", "NS", "--remind", "10m"]).done();
        pair.on_file(&["track", "NS", "a", "--in", "2h", "--payload", r#"{"user":7}"#]).done();
        pair.on_file(&["track", "NS", "b", "--in", "3h"]).done();
        pair.on_file(&["track", "NS", "c", "--at-ms", "1000000000000"]).done();
        pair
    }

    fn file(&self) -> String {
        format!("sqlite:{}", self.directory.path().join("forewarn.db").display())
    }

    fn run(&self, mut command: Command, words: &[&str]) -> Ended {
        command.args(words.iter().map(|&word| if word == "NS" { &self.namespace } else { word }));
        end(command)
    }

    fn on_file(&self, words: &[&str]) -> Ended {
        let mut command = bare();
        command.env("FOREWARN_STORE", self.file());
        self.run(command, words)
    }

    fn on_server(&self, words: &[&str]) -> Ended {
        let mut command = bare();
        command.env("FOREWARN_STORE", &self.server);
        self.run(command, words)
    }

    /// `store copy` from the file to the server, whose URL stands in a variable.
    fn copy(&self, more: &[&str]) -> Ended {
        let mut command = bare();
        command.env("TARGET", &self.server);
        self.run(command, &[&["store", "copy", &self.file(), "env:TARGET"], more].concat())
    }
}

#[test]
fn a_copy_prints_what_it_has_copied_and_says_what_is_paused() {
    let pair = Pair::new();
    let ended = pair.copy(&["--pause", "--shards", "2"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let rows: Vec<Vec<&str>> = ended.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows, [vec!["namespace", "what", "copied"], vec![&pair.namespace, "armed", "3"]]);
    for part in ["copying, 0 of 3", "comparing", "the source stays paused, the copy runs"] {
        assert!(ended.err.contains(part), "no {part:?} in {}", ended.err);
    }
    let shown = pair.on_server(&["show", "NS", "a", "--json"]).json();
    assert_eq!(shown["payload"]["user"], 7);
    assert_eq!(pair.on_server(&["namespace", "show", "NS", "--json"]).json()["settings"]["shards"], 2);
    let stats = pair.on_file(&["stats", "NS", "--json"]).json();
    assert_eq!((&stats["paused"]["reminders"], &stats["paused"]["cleanups"]), (&true.into(), &true.into()));

    let again = pair.copy(&["--pause"]);
    assert_eq!((again.code, again.out.as_str()), (0, ""), "{again:?}");
    assert!(again.err.contains("was copied before") && again.err.contains("namespace forget"), "{again:?}");
}

#[test]
fn a_source_that_runs_is_refused_with_what_to_do() {
    let pair = Pair::new();
    let said = pair.copy(&[]).failed();
    assert!(said.starts_with("error: ") && said.contains("--pause") && said.contains("namespace pause"), "{said}");
    pair.on_file(&["namespace", "pause", "NS"]).done();
    let ended = pair.copy(&["--namespace", "NS"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    // Paused before, so that the copy is, too.
    let resume = format!("forewarn namespace resume {} --store redis://127.0.0.1:", pair.namespace);
    assert!(ended.err.contains(&resume), "{ended:?}");
}

#[test]
fn one_namespace_in_the_way_does_not_keep_the_others() {
    let pair = Pair::new();
    let other = namespace();
    pair.on_file(&["namespace", "apply", &other]).done();
    pair.on_server(&["namespace", "apply", "NS"]).done();
    let ended = pair.copy(&["--pause"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.err.contains("already") && ended.err.contains(&format!("{other}: the source stays")), "{ended:?}");
    pair.on_server(&["namespace", "show", &other, "--json"]).json();
}

#[test]
fn wrong_ends_are_exit_2_or_1_and_make_no_file() {
    let pair = Pair::new();
    let missing = pair.directory.path().join("missing.db");
    let from = format!("sqlite:{}", missing.display());
    pair.run(bare(), &["store", "copy", &from, &pair.server]).refused(&["missing.db", "no store file"]);
    assert!(!missing.exists());
    pair.run(bare(), &["store", "copy", "env:NOWHERE_SET", &pair.server]).refused(&["FROM", "NOWHERE_SET"]);
    pair.run(bare(), &["store", "copy", &pair.file(), "env:NOWHERE_SET"]).refused(&["TO", "NOWHERE_SET"]);
    pair.run(bare(), &["store", "copy", &pair.file()]).refused(&["TO"]);
    pair.run(bare(), &["store", "copy", &pair.file(), "http://h"]).refused(&["store", "redis://"]);
    pair.copy(&["--namespace", "unknown-one", "--pause"]).refused(&["unknown-one", "not configured"]);
    let same = pair.run(bare(), &["store", "copy", &pair.file(), &pair.file(), "--pause"]).failed();
    assert!(same.contains("both"), "{same}");
    let said = pair.run(bare(), &["store", "copy", &pair.file(), "redis://:s3cret@127.0.0.1:1"]).failed();
    assert!(said.contains("127.0.0.1:1") && !said.contains("s3cret"), "{said}");
}

#[test]
fn a_password_is_shown_neither_in_what_is_said_nor_kept_in_the_target() {
    let pair = Pair::new();
    let other = Server::start();
    let url = other.url();
    let mut there = bare();
    there.env("TARGET", &url);
    let ended = pair.run(there, &["store", "copy", &pair.file(), "env:TARGET", "--pause"]);
    assert!(ended.code == 0 && !ended.err.contains(PASSWORD), "{ended:?}");
    // And back from there into another file.
    let back = format!("sqlite:{}", pair.directory.path().join("back.db").display());
    let mut command = bare();
    command.env("SOURCE", &url);
    let ended = pair.run(command, &["store", "copy", "env:SOURCE", &back, "--pause"]);
    assert!(ended.code == 0 && !ended.err.contains(PASSWORD), "{ended:?}");
    for file in std::fs::read_dir(pair.directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes()));
    }
}

#[test]
fn key_backed_namespaces_are_copied_only_by_who_has_moved_their_keys() {
    let pair = Pair::new();
    let other = Server::start();
    pair.on_server(&["namespace", "apply", "NS", "--key", "session:*"]).done();
    let copy = |to: &str, more: &[&str]| {
        let words = [&["store", "copy", &pair.server, to, "--namespace", "NS", "--pause"], more].concat();
        pair.run(bare(), &words)
    };
    let refused = copy(&other.url(), &[]);
    assert!(refused.code == 2 && refused.err.contains("--keys-moved"), "{refused:?}");
    let refused = copy(&pair.file(), &["--keys-moved"]);
    assert!(refused.code == 2 && refused.err.contains(&pair.namespace), "{refused:?}");
    let stats = pair.on_server(&["stats", "NS", "--json"]).json();
    assert_eq!(stats["paused"]["reminders"], false, "nothing was paused");
    assert_eq!(copy(&other.url(), &["--keys-moved"]).code, 0);
}
