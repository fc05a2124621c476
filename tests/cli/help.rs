//! Help, version, completions and the ways to call it wrongly.

use crate::process::{bare, end};

fn run(words: &[&str]) -> crate::process::Ended {
    let mut command = bare();
    command.args(words);
    end(command)
}

const COMMANDS: [&[&str]; 27] = [
    &["demo"],
    &["work"],
    &["namespace"],
    &["namespace", "apply"],
    &["namespace", "list"],
    &["namespace", "show"],
    &["namespace", "pause"],
    &["namespace", "resume"],
    &["namespace", "forget"],
    &["track"],
    &["renew"],
    &["remove"],
    &["expire"],
    &["show"],
    &["list"],
    &["stats"],
    &["dead"],
    &["dead", "list"],
    &["dead", "show"],
    &["dead", "requeue"],
    &["dead", "drop"],
    &["review"],
    &["review", "list"],
    &["store"],
    &["store", "copy"],
    &["completions"],
    &[],
];

#[test]
fn every_command_explains_itself_and_its_short_help_fits_a_screen() {
    for words in COMMANDS {
        let short = run(&[words, &["-h"]].concat()).done().out;
        assert!(short.lines().count() <= 50, "{words:?} has {} lines", short.lines().count());
        assert!(short.contains("Usage: forewarn"), "{words:?}");
        let long = run(&[words, &["--help"]].concat()).done().out;
        assert!(long.len() >= short.len(), "{words:?}");
        assert!(long.contains("FOREWARN_STORE"), "{words:?}");
    }
}

#[test]
fn the_help_of_work_lists_the_exit_statuses() {
    let help = run(&["work", "--help"]).done().out;
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "65 dead letter, class rejected",
        "69, 75 retry, class timeout",
        "77 dead letter, class denied",
        "80 done, with a note",
        "81 superseded",
        "82 review by a person, class conflict",
        "126 and 127",
        "sh -c",
    ] {
        assert!(words.contains(part), "no {part:?} in {help}");
    }
    // Written in lines of its own, which a terminal of 80 columns must not wrap once more.
    let about = help.split("Usage:").next().unwrap();
    assert!(about.lines().all(|line| line.chars().count() <= 80), "{about}");
}

#[test]
fn the_long_help_says_that_arguments_can_be_seen_by_others() {
    assert!(run(&["--help"]).done().out.contains("Other users"));
    assert!(run(&["track", "--help"]).done().out.contains("rather in FOREWARN_STORE"));
}

#[test]
fn the_version_is_printed() {
    run(&["--version"]).prints(&format!("forewarn {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_come_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&["completions", shell]).done().out.contains("forewarn"), "{shell}");
    }
    run(&["completions", "abacus"]).refused(&["abacus", "bash"]);
}

#[test]
fn without_a_command_the_help_comes_with_exit_2() {
    run(&[]).refused(&["Usage: forewarn", "track"]);
    for group in ["namespace", "dead", "review"] {
        run(&[group]).refused(&[&format!("Usage: forewarn {group}"), "list"]);
        let mut command = bare();
        command.env("FOREWARN_STORE", "redis://127.0.0.1:1").arg(group);
        end(command).refused(&[&format!("Usage: forewarn {group}"), "list"]);
    }
    run(&["dead", "requeue"]).refused(&["Usage: forewarn dead requeue NS (EVENT_ID | --all)"]);
    run(&["review", "drop", "s"]).refused(&["Usage: forewarn review drop NS (EVENT_ID | --all)"]);
    run(&["trakc"]).refused(&["trakc", "track"]);
}

#[test]
fn a_store_that_is_no_url_is_exit_2() {
    run(&["stats", "--store", "localhost"]).refused(&["store", "redis://"]);
    run(&["stats", "--store", "http://127.0.0.1"]).refused(&["store", "redis://"]);
}

#[test]
fn a_store_that_does_not_answer_is_exit_1_in_one_line() {
    let said = run(&["stats", "--store", "redis://127.0.0.1:1"]).failed();
    assert!(said.starts_with("error: ") && said.contains("127.0.0.1:1"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_log_filter_that_is_none_is_exit_2() {
    let mut command = bare();
    command.env("FOREWARN_LOG", "[[[").args(["stats", "--store", "redis://127.0.0.1:1"]);
    end(command).refused(&["FOREWARN_LOG"]);
}
