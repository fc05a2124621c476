//! `work` that prints: lines, routes, stops, and a stdout that is closed.

use serde_json::Value;

use crate::process::{Place, Running};

#[test]
fn each_notice_is_one_line_of_cloud_events_and_is_acked() {
    let place = Place::new(&["--remind", "10m"]);
    let work = place.start(&["work", "NS"]);
    place.track_expired("a");
    let event: Value = serde_json::from_str(&work.line()).unwrap();
    assert_eq!((&event["specversion"], &event["type"]), (&"1.0".into(), &"forewarn.cleanup".into()));
    assert_eq!(event["source"], format!("/forewarn/{}", place.namespace));
    assert_eq!((&event["subject"], &event["data"]["id"]), (&"a".into(), &"a".into()));
    assert_eq!((&event["data"]["reason"], &event["data"]["attempt"]), (&"expired".into(), &1.into()));
    assert_eq!(event["data"]["payload"], serde_json::json!({ "of": "test" }));
    place.wait_for_stats("the ack", |stats| stats["counters"]["acked"] == 1 && stats["open"] == 0);

    work.signal("TERM");
    let ended = work.end();
    assert_eq!((ended.code, ended.out.as_str()), (0, ""), "{ended:?}");
    assert!(ended.err.contains("stopped: finished 0, gave back 0, lost 0; since the start 1 done"), "{ended:?}");
}

#[test]
fn a_reminder_comes_with_its_lead() {
    let place = Place::new(&["--remind", "10m", "--late", "fire"]);
    let work = place.start(&["work", "NS"]);
    // What is armed before the first claim speaks because it is found, not because it is set.
    place.track_expired("first");
    work.line();
    place.run(&["track", "NS", "a", "--in", "5m"]).done();
    let event: Value = serde_json::from_str(&work.line()).unwrap();
    assert_eq!((&event["type"], &event["data"]["lead_ms"]), (&"forewarn.reminder".into(), &600_000.into()));
    assert_eq!(event["data"]["on_set"], true);
}

#[test]
fn a_missing_route_is_registered_and_that_is_said() {
    let place = Place::new(&["--remind", "10m"]);
    let work = place.start(&["work", "NS", "--route", "mail"]);
    let said = work.says("had no route mail");
    let drop_it = format!("forewarn namespace apply {} --remind 10m --drop-route mail", place.namespace);
    assert!(said.contains("registered as a new consumer") && said.ends_with(&drop_it), "{said}");
    let shown = place.run(&["namespace", "show", "NS", "--json"]).json();
    assert_eq!(shown["routes"][1]["name"], "mail");
    place.track_expired("a");
    assert!(work.line().contains("\"subject\":\"a\""));
}

#[test]
fn what_is_paused_is_said_at_the_start() {
    let place = Place::new(&["--route", "mail", "--route", "log"]);
    place.run(&["namespace", "pause", "NS", "--reminders"]).done();
    place.run(&["namespace", "pause", "NS", "--route", "log"]).done();
    let mail = place.start(&["work", "NS", "--route", "mail"]);
    mail.says("reminders; forewarn namespace resume");
    mail.says("working on route mail");
    mail.signal("TERM");
    let log = place.start(&["work", "NS", "--route", "log"]);
    log.says("reminders and cleanups on route log");
    log.signal("TERM");
    let ended = mail.end();
    assert!(!ended.err.contains("route log"), "{ended:?}");
    // Start and stop are told once each, by the command and not again by its log.
    assert!(!ended.err.contains("the worker has stopped") && ended.err.matches("stopped:").count() == 1, "{ended:?}");
}

#[test]
fn without_a_route_main_a_worker_must_name_one() {
    let place = Place::new(&["--route", "mail", "--route", "log"]);
    place.run(&["work", "NS"]).refused(&["no route main but mail, log", "--route"]);
}

#[test]
fn ctrl_c_stops_it_too() {
    let place = Place::new(&[]);
    let work = place.start(&["work", "NS"]);
    work.says("working on route main");
    work.signal("INT");
    assert_eq!(work.end().code, 0);
}

#[test]
fn a_stdout_that_is_closed_ends_it_with_exit_1_and_loses_nothing() {
    let place = Place::new(&[]);
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = place.command();
    command.args(["work", &place.namespace, "--retry-delays", "1ms"]);
    let work = Running::start_to(writer, command);
    drop(reader);
    place.track_expired("a");
    place.track_expired("b");
    let ended = work.end();
    assert!(ended.code == 1 && ended.err.contains("stdout is closed"), "{ended:?}");

    let work = place.start(&["work", "NS"]);
    let mut lines = [work.line(), work.line()];
    lines.sort_by_key(|line| line.contains("\"subject\":\"b\""));
    assert!(lines[0].contains("\"subject\":\"a\"") && lines[1].contains("\"subject\":\"b\""), "{lines:?}");
}

#[test]
fn its_log_obeys_the_variable() {
    let place = Place::new(&[]);
    let mut command = place.command();
    command.args(["work", &place.namespace]).env("FOREWARN_LOG", "off");
    let work = Running::start(command);
    place.track_expired("a");
    work.line();
    work.signal("TERM");
    let ended = work.end();
    assert!(!ended.err.contains("INFO"), "{ended:?}");
}
