//! `tail`: what others are handed, on every store, without taking anything from them.

use serde_json::Value;

use crate::process::{Place, Running, bare};

#[test]
fn what_a_worker_gets_is_shown_and_stays_the_workers() {
    let place = Place::new(&[]);
    let tail = place.start(&["tail", "NS"]);
    tail.says("watching");
    place.track_expired("a/b");
    let work = place.start(&["work", "NS"]);
    work.line();
    let line = tail.line();
    let expected = format!("{} a/b on route main: cleanup (expired) of 2001-09-09T01:46:40.000Z, ", place.namespace);
    assert!(line.contains(&expected), "{line}");
    place.wait_for_stats("the ack", |stats| stats["counters"]["acked"] == 1 && stats["counters"]["handed_out"] == 1);
    tail.signal("TERM");
    let ended = tail.end();
    assert_eq!((ended.code, ended.out.as_str()), (0, ""), "{ended:?}");
}

#[test]
fn json_is_the_event_with_its_route_and_a_route_may_be_asked_for() {
    let place = Place::new(&["--route", "main", "--route", "mail:cleanups"]);
    let tail = place.start(&["tail", "NS", "--json", "--route", "mail"]);
    tail.says("watching");
    place.track_expired("a");
    let workers = ["main", "mail"].map(|route| place.start(&["work", "NS", "--route", route]));
    workers.iter().for_each(|work| drop(work.line()));
    let event: Value = serde_json::from_str(&tail.line()).unwrap();
    assert_eq!((&event["route"], &event["type"]), (&"mail".into(), &"forewarn.cleanup".into()));
    assert_eq!((&event["data"]["id"], &event["data"]["payload"]["of"]), (&"a".into(), &"test".into()));
}

#[test]
fn ids_that_are_secrets_are_shown_by_their_handles() {
    let place = Place::new(&["--sensitive-ids"]);
    let (masked, revealed) = (place.start(&["tail", "NS"]), place.start(&["tail", "NS", "--reveal", "--json"]));
    masked.says("watching");
    revealed.says("watching");
    place.run(&["track", "NS", "cookie-0123456789", "--at-ms", "1000000000000"]);
    let work = place.start(&["work", "NS"]);
    work.line();
    let line = masked.line();
    assert!(line.contains(" cookie~") && !line.contains("0123456789"), "{line}");
    assert!(revealed.line().contains("cookie-0123456789"));
}

#[test]
fn another_process_on_the_same_file_is_heard() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("store.db").display());
    let place = Place { url, namespace: "cart".to_owned() };
    place.apply(&[]).done();
    // Of all namespaces.
    let tail = place.start(&["tail"]);
    tail.says("watching");
    place.track_expired("a");
    place.start(&["work", "NS"]).line();
    assert!(tail.line().contains(" cart a on route main: cleanup"), "all namespaces are watched");
}

#[test]
fn through_a_daemon_it_is_the_same() {
    let place = Place::new(&[]);
    let mut command = place.command();
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let daemon = Running::start(command);
    let started = daemon.says("url=");
    let url = started.split("url=\"").nth(1).unwrap().split('"').next().unwrap();
    let mut command = bare();
    command.args(["tail", &place.namespace, "--server", url]);
    let tail = Running::start(command);
    tail.says("watching");
    place.track_expired("a");
    place.start(&["work", "NS"]).line();
    assert!(tail.line().contains(" a on route main: cleanup"), "it is heard through the daemon");
}

#[test]
fn a_namespace_that_is_not_there_is_an_error() {
    let place = Place::unconfigured();
    let ended = place.run(&["tail", "NS"]);
    assert_eq!((ended.code, ended.err.contains("is not configured")), (2, true), "{ended:?}");
}
