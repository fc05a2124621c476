//! `work --exec`: exit statuses, environment, lost claims and stops.

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use tokio::time::Instant;

use crate::{
    harness::PATIENCE,
    process::{Place, Running},
};

fn failures(place: &Place, id: &str) -> Value {
    place.run(&["show", "NS", id, "--json"]).json()["deliveries"][0]["failures"].clone()
}

#[test]
fn the_exit_status_of_the_command_is_the_outcome() {
    let place = Place::new(&[]);
    let statuses = ["0", "1", "65", "69", "75", "77", "80", "81", "82"];
    for id in statuses {
        place.track_expired(id);
    }
    let command = "cat >/dev/null; echo said $FOREWARN_ID >&2; exit $FOREWARN_ID";
    let work = place.start(&["work", "NS", "--exec", command, "--retry-delays", "1h"]);
    place.wait_for_stats("all outcomes", |stats| {
        let counters = &stats["counters"];
        counters["acked"] == 3 && counters["failed"].as_u64() >= Some(3) && stats["dead"] == 2 && stats["review"] == 1
    });
    work.says("said 82");
    for done in ["0", "80", "81"] {
        place.run(&["show", "NS", done]).failed();
    }
    for (retried, class) in [("1", "failed"), ("69", "timeout"), ("75", "timeout")] {
        let failure = failures(&place, retried)[0].clone();
        assert_eq!((&failure["class"], &failure["attempt"]), (&class.into(), &1.into()), "{retried}: {failure}");
        assert_eq!((&failure["stage"], &failure["summary"]), (&"deliver".into(), &format!("said {retried}").into()));
        assert!(failure["next_attempt_at"].is_string(), "{failure}");
    }
    let dead = place.run(&["dead", "list", "NS", "--json"]).json();
    let mut classes: Vec<_> = dead["dead"].as_array().unwrap().iter().map(class_of).collect();
    classes.sort();
    assert_eq!(classes, [("65".to_owned(), "rejected".to_owned()), ("77".to_owned(), "denied".to_owned())]);
    let review = place.run(&["review", "list", "NS", "--json"]).json();
    assert_eq!(class_of(&review["review"][0]), ("82".to_owned(), "conflict".to_owned()));

    work.signal("TERM");
    let ended = work.end();
    let totals = "2 done, 1 superseded, 3 retried, 2 dead, 1 for review";
    assert!(ended.code == 0 && ended.err.contains(totals), "{ended:?}");
}

fn class_of(parked: &Value) -> (String, String) {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    (word(&parked["id"]), word(&parked["failures"][0]["class"]))
}

#[test]
fn a_signal_and_a_failed_start_are_retried() {
    let place = Place::new(&[]);
    place.track_expired("a");
    let work = place.start(&["work", "NS", "--exec", "kill -9 $$", "--retry-delays", "1h"]);
    place.wait_for_stats("the failure", |stats| stats["counters"]["failed"] == 1);
    drop(work);
    assert_eq!(failures(&place, "a")[0]["summary"], "the command was ended by signal 9");

    let place = Place::new(&[]);
    place.track_expired("a");
    let mut command = place.command();
    command.args(["work", &place.namespace, "--exec", "true", "--retry-delays", "1h"]).env("PATH", "/nonexistent");
    let work = Running::start(command);
    place.wait_for_stats("the failure", |stats| stats["counters"]["failed"] == 1);
    drop(work);
    let failure = failures(&place, "a")[0].clone();
    assert_eq!(failure["stage"], "start");
    assert!(failure["summary"].as_str().unwrap().contains("could not be started"), "{failure}");
}

#[test]
fn a_command_that_is_not_there_is_named_as_such_and_warned_of_once() {
    let place = Place::new(&[]);
    place.track_expired("a");
    place.track_expired("b");
    let work = place.start(&["work", "NS", "--exec", "./no-such-command", "--retry-delays", "1h"]);
    place.wait_for_stats("the failures", |stats| stats["counters"]["failed"] == 2);
    let failure = failures(&place, "a")[0].clone();
    let summary = failure["summary"].as_str().unwrap();
    assert!(summary.starts_with("the command was not found (exit status 127): "), "{failure}");
    assert!(summary.contains("no-such-command"), "{failure}");
    assert_eq!((&failure["stage"], &failure["class"]), (&"start".into(), &"failed".into()));
    work.signal("TERM");
    let ended = work.end();
    assert_eq!(ended.err.matches("the shell cannot run the command").count(), 1, "{ended:?}");
}

#[test]
fn failures_end_as_a_dead_letter_at_the_limit() {
    let place = Place::new(&[]);
    place.track_expired("a");
    let _work = place.start(&["work", "NS", "--exec", "exit 1", "--retry-delays", "1ms", "--max-failures", "3"]);
    place.wait_for_stats("the dead letter", |stats| stats["dead"] == 1);
    let dead = place.run(&["dead", "list", "NS", "--json"]).json();
    assert_eq!(dead["dead"][0]["failures"].as_array().map(Vec::len), Some(3));
}

#[test]
fn the_command_gets_the_event_and_its_parts() {
    let place = Place::new(&[]);
    let directory = tempfile::tempdir().unwrap();
    let (event, env) = (directory.path().join("event"), directory.path().join("env"));
    place.track_expired("a b");
    let command = format!("cat > {}; env > {}", event.display(), env.display());
    let _work = place.start(&["work", "NS", "--exec", &command]);
    place.wait_for_stats("the ack", |stats| stats["counters"]["acked"] == 1);
    let event: Value = serde_json::from_str(&fs::read_to_string(event).unwrap()).unwrap();
    assert_eq!(event["subject"], "a b");
    let env = fs::read_to_string(env).unwrap();
    for expected in [
        "FOREWARN_ID=a b".to_owned(),
        "FOREWARN_ID_BASE64=YSBi".to_owned(),
        format!("FOREWARN_EVENT_ID={}", event["id"].as_str().unwrap()),
        format!("FOREWARN_NAMESPACE={}", place.namespace),
        "FOREWARN_ROUTE=main".to_owned(),
        "FOREWARN_KIND=cleanup".to_owned(),
        "FOREWARN_REASON=expired".to_owned(),
        "FOREWARN_ATTEMPT=1".to_owned(),
    ] {
        assert!(env.lines().any(|line| line == expected), "no {expected} in {env}");
    }
}

#[test]
fn an_id_with_a_zero_byte_comes_in_base64_only() {
    let place = Place::new(&[]);
    place.run(&["track", "NS", "--id-base64", "YQBi", "--at-ms", "1000000000000"]).done();
    let command = r#"test -z "${FOREWARN_ID+set}" && test "$FOREWARN_ID_BASE64" = YQBi"#;
    let _work = place.start(&["work", "NS", "--exec", command, "--retry-delays", "1h"]);
    let settled = |stats: &Value| stats["counters"]["acked"] == 1 || stats["counters"]["failed"] == 1;
    let stats = place.wait_for_stats("the end", settled);
    assert_eq!(stats["counters"]["acked"], 1, "{}", failures(&place, "a"));
}

#[test]
fn only_the_end_of_a_long_standard_error_is_kept() {
    let place = Place::new(&[]);
    place.track_expired("a");
    let command = "i=0; while [ $i -lt 500 ]; do echo line $i >&2; i=$((i+1)); done; exit 65";
    let _work = place.start(&["work", "NS", "--exec", command]);
    place.wait_for_stats("the dead letter", |stats| stats["dead"] == 1);
    let dead = place.run(&["dead", "list", "NS", "--json"]).json();
    let summary = dead["dead"][0]["failures"][0]["summary"].as_str().unwrap().to_owned();
    assert!(summary.len() <= 1024 && summary.ends_with("line 499"), "{summary}");
}

#[test]
fn a_command_whose_claim_is_lost_is_ended_with_all_it_started() {
    let place = Place::new(&["--lease", "300ms"]);
    let directory = tempfile::tempdir().unwrap();
    let pids = directory.path().join("pids");
    place.track_expired("a");
    // A child of the shell holds the test's proof: it lives in the same group.
    let command = format!("sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait", pids.display());
    let work = place.start(&["work", "NS", "--exec", &command]);
    let pid = wait_for_file(&pids);
    assert!(is_alive(&pid));
    place.run(&["remove", "NS", "a"]).prints("voided, its cleanup will not run");
    wait_until(|| !is_alive(&pid));
    work.signal("TERM");
    assert_eq!(work.end().code, 0);
}

#[test]
fn a_stop_waits_for_the_command_and_its_outcome_counts() {
    let place = Place::new(&[]);
    let directory = tempfile::tempdir().unwrap();
    let (started, fifo) = (directory.path().join("started"), directory.path().join("fifo"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    place.track_expired("a");
    let command = format!("echo yes > {0}.new; mv {0}.new {0}; cat {1}", started.display(), fifo.display());
    let work = place.start(&["work", "NS", "--exec", &command]);
    wait_for_file(&started);
    work.signal("TERM");
    work.says("stopping: waiting up to 30s");
    fs::write(&fifo, "go on").unwrap();
    let ended = work.end();
    assert!(ended.code == 0 && ended.err.contains("finished 1, gave back 0"), "{ended:?}");
    place.run(&["show", "NS", "a"]).failed();
}

#[test]
fn a_stop_that_times_out_gives_back_what_is_left_without_a_failure() {
    let place = Place::new(&[]);
    let directory = tempfile::tempdir().unwrap();
    let pids = directory.path().join("pids");
    place.track_expired("a");
    let command = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", pids.display());
    let work = place.start(&["work", "NS", "--exec", &command, "--stop-timeout", "100ms"]);
    let pid = wait_for_file(&pids);
    work.signal("TERM");
    let ended = work.end();
    assert!(ended.code == 0 && ended.err.contains("finished 0, gave back 1"), "{ended:?}");
    assert!(!is_alive(&pid));
    assert_eq!(failures(&place, "a"), Value::Array(Vec::new()));
}

#[test]
fn a_second_signal_stops_it_at_once_and_ends_its_commands() {
    let place = Place::new(&[]);
    let directory = tempfile::tempdir().unwrap();
    let pids = directory.path().join("pids");
    place.track_expired("a");
    let command = format!("trap '' TERM; echo $$ > {0}.new; mv {0}.new {0}; sleep 1000", pids.display());
    let work = place.start(&["work", "NS", "--exec", &command]);
    let pid = wait_for_file(&pids);
    work.signal("TERM");
    work.says("stopping");
    work.signal("TERM");
    let ended = work.end();
    assert!(ended.code == 1 && ended.err.contains("stopped at once"), "{ended:?}");
    wait_until(|| !is_alive(&pid));
}

fn wait_for_file(path: &Path) -> String {
    wait_until(|| path.exists());
    fs::read_to_string(path).unwrap().trim().to_owned()
}

/// Asks again and again: what lies in other processes announces nothing. Each look runs a process, which paces it.
fn wait_until(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain");
        Command::new("true").status().unwrap();
    }
}

fn is_alive(pid: &str) -> bool {
    // A zombie has ended; only its parent has not looked yet.
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}
