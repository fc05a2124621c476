//! Ids that are secrets: no output, log or error shows more than their beginnings, unless asked to; the handle stands for
//! them in commands; who handles a notice gets them whole.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

use crate::process::{Ended, Place, Running, end};

const DEAD: &str = "sess-dead-7Qm2xV9tLz";
const REVIEW: &str = "sess-review-Rk4yB8wNp1";
const RETRIED: &str = "sess-retried-Hc6dT3sJe5";
const ARMED: [&str; 3] = ["sess-armed-Xa1uF7gKo2", "sess-armed-Zb9iM5hPq8", "sess-armed-Wn3vC6rDy4"];

fn all() -> Vec<&'static str> {
    [DEAD, REVIEW, RETRIED].into_iter().chain(ARMED).collect()
}

/// What of an id must stand nowhere: any seven characters of its secret part, and its base64.
fn forbidden(id: &str) -> Vec<String> {
    let characters: Vec<char> = id.chars().collect();
    let mut parts: Vec<String> = characters[6..].windows(7).map(|part| part.iter().collect()).collect();
    parts.push(characters[..7].iter().collect());
    parts.push(URL_SAFE_NO_PAD.encode(id)[..12].to_owned());
    parts
}

#[track_caller]
fn keeps_them(text: &str) {
    for id in all() {
        // These begin alike; what follows is each one's own.
        for part in forbidden(id) {
            assert!(!text.contains(&part), "{part:?} of {id} in {text}");
        }
    }
}

#[track_caller]
fn keeps(ended: &Ended) {
    keeps_them(&ended.out);
    keeps_them(&ended.err);
}

/// Armed, failed, dead and reviewed ids. The handler itself tells them in what it says of its failures.
fn stage() -> (Place, String) {
    let place = Place::new(&["--sensitive-ids", "--history", "100"]);
    for id in ARMED {
        keeps(&place.run(&["track", "NS", id, "--in", "1h"]).done());
    }
    for id in [DEAD, REVIEW, RETRIED] {
        place.track_expired(id);
    }
    let command = format!(
        "echo \"cannot DELETE /$FOREWARN_ID\" >&2; \
         case $FOREWARN_ID in {DEAD}) exit 65;; {REVIEW}) exit 82;; {RETRIED}) exit 1;; esac"
    );
    let mut work = place.command();
    work.args(["work", &place.namespace, "--exec", &command, "--retry-delays", "1h"]).env("FOREWARN_LOG", "trace");
    let work = Running::start(work);
    place.wait_for_stats("all outcomes", |stats| {
        stats["dead"] == 1 && stats["review"] == 1 && stats["counters"]["failed"] == 3
    });
    work.signal("TERM");
    let ended = work.end();
    // The id reached the handler whole, and its own words pass through; the worker's are ours.
    let (said, logged): (Vec<&str>, Vec<&str>) = ended.err.lines().partition(|line| line.starts_with("cannot DELETE"));
    assert!(said.iter().any(|line| line.ends_with(DEAD)), "{ended:?}");
    (place, logged.join("\n"))
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn no_command_and_no_log_shows_a_sensitive_id() {
    let (place, logged) = stage();
    keeps_them(&logged);
    for level in ["a notice failed", "is a dead letter", "parked until", "sess-r~", "summary=\"cannot DELETE /sess-d~"]
    {
        assert!(logged.contains(level), "no {level:?} in {logged}");
    }
    let dead = place.run(&["dead", "list", "NS", "--json"]).json();
    let event_id = text_of(&dead["dead"][0]["event_id"]);
    let handle = text_of(&dead["dead"][0]["handle"]);
    assert!(handle.starts_with("sess-d~") && handle.len() == 23, "{handle}");
    for words in [
        &["list", "NS"][..],
        &["list", "NS", "--json"],
        &["list", "NS", "--limit", "1"],
        &["show", "NS", ARMED[0]],
        &["show", "NS", ARMED[0], "--json"],
        &["show", "NS", DEAD],
        &["show", "NS", REVIEW, "--json"],
        &["show", "NS", RETRIED],
        &["show", "NS", RETRIED, "--json"],
        &["show", "NS", "--handle", &handle],
        &["show", "NS", "sess-x"],
        &["stats", "NS", "--json"],
        &["namespace", "show", "NS", "--json"],
        &["dead", "list", "NS"],
        &["dead", "list", "NS", "--json"],
        &["dead", "show", "NS", &event_id],
        &["dead", "show", "NS", &event_id, "--json"],
        &["review", "list", "NS"],
        &["track", "NS", ARMED[0], "--in", "2h", "--json"],
        &["track", "NS", ARMED[0], "--in", "3h", "--replaces", DEAD],
        &["renew", "NS", ARMED[1], "--in", "4h", "--json"],
        &["track", "NS", DEAD, "--in", "9h"],
        &["dead", "requeue", "NS", "--all"],
        &["expire", "NS", ARMED[1], "--json"],
        &["remove", "NS", ARMED[2], "--json"],
    ] {
        let mut command = place.command();
        command.args(words.iter().map(|&word| if word == "NS" { &place.namespace } else { word }));
        command.env("FOREWARN_LOG", "trace");
        let ended = end(command);
        assert!(ended.code < 2, "{words:?}: {ended:?}");
        keeps(&ended);
    }
}

#[test]
fn a_worker_that_vanishes_leaves_no_id_behind() {
    let place = Place::new(&["--sensitive-ids", "--lease", "200ms", "--max-deliveries", "1"]);
    place.track_expired(DEAD);
    let start = |command| {
        let mut work = place.command();
        work.args(["work", &place.namespace, "--exec", command]).env("FOREWARN_LOG", "trace");
        Running::start(work)
    };
    let first = start("kill -9 $PPID").end();
    assert_ne!(first.code, 0);
    keeps(&first);
    let second = start("true");
    place.wait_for_stats("the dead letter", |stats| stats["counters"]["lapsed"] == 1 && stats["dead"] == 1);
    second.says("vanished again and again");
    second.signal("TERM");
    keeps(&second.end());
    for words in [&["dead", "list", "NS"][..], &["dead", "list", "NS", "--json"], &["show", "NS", DEAD]] {
        let ended = place.run(words).done();
        assert!(ended.out.contains("lapsed") && ended.out.contains("sess-d~"), "{ended:?}");
        keeps(&ended);
    }
}

#[test]
fn they_are_shown_to_who_asks() {
    let (place, _) = stage();
    let dead = place.run(&["dead", "list", "NS", "--json", "--reveal"]).json();
    assert_eq!(dead["dead"][0]["id"], DEAD);
    assert!(text_of(&dead["dead"][0]["failures"][0]["summary"]).contains(DEAD), "{dead}");
    let event_id = text_of(&dead["dead"][0]["event_id"]);
    for words in [
        &["dead", "list", "NS", "--reveal"][..],
        &["dead", "show", "NS", &event_id, "--reveal"],
        &["show", "NS", DEAD, "--reveal"],
    ] {
        let ended = place.run(words).done();
        assert!(ended.out.contains(DEAD), "{words:?}: {ended:?}");
    }
    let list = place.run(&["list", "NS", "--json", "--limit", "1", "--reveal"]).json();
    assert_eq!(list["deadlines"][0]["id"], ARMED[0]);
    assert!(text_of(&list["next"]).contains(&URL_SAFE_NO_PAD.encode(ARMED[0])), "{list}");
}

#[test]
fn a_handle_stands_for_its_id_in_commands() {
    let (place, _) = stage();
    let (mut handles, mut after) = (Vec::new(), None);
    loop {
        let mut words = vec!["list", "NS", "--json", "--limit", "1"];
        words.extend(after.iter().flat_map(|after: &String| ["--after", after]));
        let page = place.run(&words).json();
        let Some(one) = page["deadlines"].get(0) else { break };
        handles.push(text_of(&one["handle"]));
        after = Some(text_of(&page["next"]));
    }
    assert_eq!(handles.len(), ARMED.len(), "{handles:?}");
    let [first, second, third] = handles.as_slice() else { panic!("{handles:?}") };
    let by_handle =
        |verb, handle: &str, more: &[&str]| place.run(&[&[verb, "NS", "--handle", handle, "--json"], more].concat());
    let shown = by_handle("show", first, &["--reveal"]).json();
    assert_eq!((&shown["id"], &shown["armed"]), (&ARMED[0].into(), &true.into()));
    assert_eq!(by_handle("show", first, &[]).json()["handle"], first.as_str());
    assert_eq!(by_handle("renew", first, &["--in", "2h"]).json()["answer"], "renewed");
    assert_eq!(by_handle("remove", second, &[]).json()["answer"], "removed");
    assert_eq!(by_handle("expire", third, &[]).json()["answer"], "ended");
    // Its cleanup is open and waits for a worker.
    assert_eq!(by_handle("show", third, &["--reveal"]).json()["id"], ARMED[2]);
    let gone = by_handle("show", second, &[]).failed();
    assert!(gone.contains("has the handle") && gone.contains(second.as_str()), "{gone}");
    // An id in its place is not repeated by us.
    place.run(&["show", "NS", "--handle", "nonsense"]).refused(&["handle", "~"]);
    place.run(&["show", "NS", ARMED[0], "--handle", first]).refused(&["--handle"]);
    place.run(&["track", "NS", "--handle", first, "--in", "1h"]).refused(&["--handle"]);
}

#[test]
fn a_namespace_says_that_its_ids_are_sensitive() {
    let place = Place::new(&["--sensitive-ids"]);
    assert_eq!(place.run(&["namespace", "show", "NS", "--json"]).json()["settings"]["sensitive_ids"], true);
    assert!(place.run(&["namespace", "show", "NS"]).done().out.contains("sensitive_ids    yes"));
    place.run(&["track", "NS", "a", "--in", "1h"]).done();
    assert!(place.apply(&[]).done().out.contains("yes → no"));
    assert_eq!(place.run(&["list", "NS", "--json"]).json()["deadlines"][0]["id"], "a");
}
