//! Every command without a store given: the embedded one, in the user's data directory.

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::process::{Ended, Running, bare, end};

/// A user with a data directory and nothing else.
struct User {
    home: TempDir,
}

impl User {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = bare();
        command.env("XDG_DATA_HOME", self.home.path()).args(words);
        command
    }

    fn run(&self, words: &[&str]) -> Ended {
        end(self.command(words))
    }

    /// Has the store made, with a namespace `s` in it.
    fn apply(&self, settings: &[&str]) {
        let made = self.run(&[&["namespace", "apply", "s"], settings].concat());
        assert_eq!(made.code, 0, "{made:?}");
    }
}

#[test]
fn the_file_is_made_once_and_that_is_said() {
    let user = User::new();
    let first = user.run(&["namespace", "list"]);
    let path = user.home.path().join("forewarn").join("forewarn.db");
    assert_eq!(first.code, 0, "{first:?}");
    assert!(first.err.contains(&format!("the store is new: {}", path.display())), "{first:?}");
    assert!(path.is_file());
    let second = user.run(&["namespace", "list"]);
    assert!(!second.err.contains("the store is new"), "{second:?}");
}

#[test]
fn deadlines_live_in_the_file_from_one_command_to_the_next() {
    let user = User::new();
    user.apply(&["--remind", "10m"]);
    assert!(user.run(&["track", "s", "a", "--in", "1h", "--payload", "[1]"]).done().out.starts_with("created"));
    assert!(user.run(&["track", "s", "a", "--in", "2h"]).done().out.starts_with("moved"));
    assert!(user.run(&["renew", "s", "a", "--in", "3h"]).done().out.starts_with("renewed"));
    assert_eq!(user.run(&["show", "s", "a", "--json"]).json()["payload"], serde_json::json!([1]));
    assert_eq!(user.run(&["stats", "s", "--json"]).json()["armed"], 1);
    assert!(user.run(&["list", "s"]).done().out.contains("a\n"));
    assert!(user.run(&["expire", "s", "a"]).done().out.starts_with("ended"));
    assert!(user.run(&["remove", "s", "a"]).done().out.starts_with("voided"));
    user.run(&["namespace", "pause", "s"]).done();
    user.run(&["namespace", "resume", "s"]).done();
    user.run(&["namespace", "forget", "s", "--force"]).done();
}

#[test]
fn a_worker_in_another_process_is_given_what_is_tracked_while_it_sleeps() {
    let user = User::new();
    user.apply(&[]);
    let work = Running::start(user.command(&["work", "s"]));
    work.says("working on route main");
    user.run(&["track", "s", "a", "--at-ms", "1000000000000"]).done();
    let event: Value = serde_json::from_str(&work.line()).unwrap();
    assert_eq!((&event["type"], &event["subject"]), (&"forewarn.cleanup".into(), &"a".into()));
    work.signal("TERM");
    assert_eq!(work.end().code, 0);
}

#[test]
fn what_was_given_up_is_listed_and_put_back() {
    let user = User::new();
    user.apply(&[]);
    user.run(&["track", "s", "a", "--at-ms", "1000000000000"]).done();
    let work = Running::start(user.command(&["work", "s", "--exec", "exit 65"]));
    work.says("dead letter");
    work.signal("TERM");
    work.end();
    let dead = user.run(&["dead", "list", "s"]).done();
    assert!(dead.out.contains("cleanup") && dead.out.contains('a'), "{dead:?}");
    assert!(user.run(&["dead", "requeue", "s", "--all"]).done().out.contains("requeued"));
    assert_eq!(user.run(&["stats", "s", "--json"]).json()["open"], 1);
}

#[test]
fn a_key_backed_namespace_is_refused_with_the_store_that_can_have_it() {
    let user = User::new();
    user.run(&["namespace", "list"]);
    let apply = ["namespace", "apply", "s", "--key-backed"];
    for words in [&apply[..], &[&apply[..], &["--dry-run"]].concat()] {
        user.run(words).refused(&["key_backed", "no keys with a time to live", "--store redis://"]);
    }
    assert_eq!(user.run(&["namespace", "list", "--json"]).json()["namespaces"], serde_json::json!([]));
}

#[test]
fn without_a_home_the_flag_is_named() {
    let mut command = bare();
    command.env_remove("HOME").env("HOME", "relative").args(["stats"]);
    end(command).refused(&["--store", "sqlite:forewarn.db"]);
}

#[test]
fn an_empty_variable_is_no_store_given() {
    let user = User::new();
    let mut command = user.command(&["namespace", "list"]);
    command.env("FOREWARN_STORE", "");
    assert_eq!(end(command).code, 0);
}

#[test]
fn the_demo_plays_in_a_temporary_file_that_is_gone_afterwards() {
    let place = tempfile::tempdir().unwrap();
    let mut demo = bare();
    demo.env("TMPDIR", place.path()).arg("demo");
    let ended = end(demo).done();
    assert!(ended.out.contains("the store is a temporary file"), "{}", ended.out);
    assert!(ended.out.contains("everything happened as expected"), "{}", ended.out);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}
