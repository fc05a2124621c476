//! `track`, `renew`, `remove`, `expire`, `show`, `list`.

use std::os::unix::ffi::OsStrExt as _;

use crate::{
    harness::{Kind, Server},
    process::{Place, end},
};

const AT: &str = "2100-01-01T00:00:00Z";
const LATER: &str = "2100-01-02T01:00:00+01:00";

#[test]
fn a_deadline_is_tracked_moved_renewed_and_removed() {
    let place = Place::new(&["--remind", "10m"]);
    place.run(&["track", "NS", "a", "--at", AT]).prints("created, expires at 2100-01-01T00:00:00.000Z");
    place.run(&["track", "NS", "a", "--at", AT]).prints("unchanged, expires at 2100-01-01T00:00:00.000Z");
    place.run(&["track", "NS", "a", "--at", LATER]).prints("moved, expires at 2100-01-02T00:00:00.000Z");
    place.run(&["renew", "NS", "a", "--at-ms", "4102444800001"]).prints("renewed, expires at 2100-01-01T00:00:00.001Z");
    place.run(&["remove", "NS", "a"]).prints("removed");
    place.run(&["remove", "NS", "a"]).prints("unknown, nothing to remove");
    assert!(place.run(&["renew", "NS", "a", "--at", AT]).failed().starts_with("unknown"));
}

#[test]
fn the_answers_come_as_json_too() {
    let place = Place::new(&[]);
    let answer = |words: &[&str], more: serde_json::Value| {
        let mut expected = serde_json::json!({ "namespace": place.namespace, "id": "a" });
        expected.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(place.run(&[words, &["--json"]].concat()).json(), expected, "{words:?}");
    };
    let (at, later) = ("2100-01-01T00:00:00.000Z", "2100-01-02T00:00:00.000Z");
    let created = serde_json::json!({ "answer": "created", "expires_at": at, "already_expired": false });
    answer(&["track", "NS", "a", "--at", AT], created);
    let moved = serde_json::json!({
        "answer": "moved", "expires_at": later, "already_expired": false, "replaced": false,
    });
    answer(&["track", "NS", "a", "--at", LATER, "--replaces", "old"], moved);
    let renew = ["renew", "NS", "a", "--at", AT, "--payload", r#"{"z": 1.0, "a":2}"#];
    answer(&renew, serde_json::json!({ "answer": "renewed", "expires_at": at }));
    assert!(place.run(&["show", "NS", "a"]).done().out.contains(r#"payload      {"z": 1.0, "a":2}"#));
    answer(&["expire", "NS", "a"], serde_json::json!({ "answer": "ended" }));
    answer(&["remove", "NS", "a"], serde_json::json!({ "answer": "voided" }));
    let unknown = place.run(&["renew", "NS", "a", "--at", AT, "--json"]);
    assert!(unknown.code == 1 && unknown.out.contains(r#""answer":"unknown""#), "{unknown:?}");
}

#[test]
fn a_deadline_set_inside_a_lead_is_told_that_the_reminder_stays_silent() {
    let place = Place::new(&["--remind", "2h,1h,1m"]);
    let inside = |words: &[&str]| {
        let ended = place.run(words);
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.err
    };
    let hint = inside(&["track", "NS", "a", "--in", "30m"]);
    assert!(hint.starts_with("inside 2h, 1h: those reminders stay silent (late is crossing)"), "{hint}");
    assert_eq!(inside(&["track", "NS", "a", "--in", "40m"]), "", "what moves may still owe its reminder");
    assert_eq!(inside(&["track", "NS", "b", "--at", AT]), "");
    place.apply(&["--remind", "1h", "--late", "fire"]);
    assert_eq!(inside(&["track", "NS", "c", "--in", "30m"]), "");
    place.apply(&["--remind", "1h", "--late", "skip"]);
    let hint = inside(&["track", "NS", "b", "--in", "30m"]);
    assert!(hint.starts_with("inside 1h: that reminder stays silent (late is skip)"), "{hint}");
}

#[test]
fn the_modes_decide_about_an_armed_id() {
    let place = Place::new(&[]);
    place.run(&["track", "NS", "a", "--at", LATER, "--mode", "create"]).done();
    let exists = place.run(&["track", "NS", "a", "--at", AT, "--mode", "create"]).failed();
    assert_eq!(exists, "exists, nothing was changed\n");
    let kept = "kept, it expires later already";
    place.run(&["track", "NS", "a", "--at", AT, "--mode", "extend_only"]).prints(kept);
}

#[test]
fn an_id_that_rotates_is_replaced() {
    let place = Place::new(&[]);
    place.run(&["track", "NS", "old", "--at", AT, "--payload", "7"]).done();
    let created = "created, expires at 2100-01-02T00:00:00.000Z";
    place.run(&["track", "NS", "new", "--at", LATER, "--replaces", "old"]).prints(&format!("{created}; replaced old"));
    assert_eq!(place.run(&["show", "NS", "new", "--json"]).json()["payload"], 7);
    let note = "nothing to replace: old is not armed";
    place.run(&["track", "NS", "newer", "--at", LATER, "--replaces", "old"]).prints(&format!("{created}; {note}"));
}

#[test]
fn an_expiry_in_a_span_counts_from_the_clock_of_the_store() {
    let place = Place::new(&[]);
    place.run(&["track", "NS", "a", "--in", "2h"]).done();
    let text = place.run(&["show", "NS", "a"]).done().out;
    assert!(text.contains("(in 1h 59m") || text.contains("(in 2h)"), "{text}");
}

#[test]
fn ending_a_deadline_opens_its_cleanup_and_removal_voids_it() {
    let place = Place::new(&[]);
    place.run(&["track", "NS", "a", "--at", AT]).done();
    place.run(&["expire", "NS", "a"]).prints("ended");
    place.run(&["expire", "NS", "a"]).prints("open, it had ended before and its cleanup is not settled yet");
    assert_eq!(place.run(&["show", "NS", "a", "--json"]).json()["open"]["reason"], "ended");
    place.run(&["remove", "NS", "a"]).prints("voided, its cleanup will not run");
    assert!(place.run(&["expire", "NS", "a"]).failed().starts_with("unknown"));
}

#[test]
fn a_renewal_after_expiry_and_grace_is_too_late() {
    let place = Place::new(&[]);
    place.track_expired("a");
    assert!(place.run(&["renew", "NS", "a", "--at", AT]).failed().starts_with("expired"));
}

#[test]
fn show_answers_what_about_this_id() {
    let place = Place::new(&[]);
    assert!(place.run(&["show", "NS", "a"]).failed().contains("a is unknown"));
    place.run(&["track", "NS", "a", "--at", AT, "--payload", r#"{"user":7}"#]).done();
    let text = place.run(&["show", "NS", "a"]).done().out;
    assert!(text.contains("armed until  2100-01-01T00:00:00.000Z (in "), "{text}");
    assert!(text.contains(r#"payload      {"user":7}"#), "{text}");
    let json = place.run(&["show", "NS", "a", "--json"]).json();
    assert_eq!((&json["id"], &json["armed"]), (&"a".into(), &true.into()));
    assert_eq!((&json["expires_at"], &json["payload"]["user"]), (&"2100-01-01T00:00:00.000Z".into(), &7.into()));
    assert_eq!(json["deliveries"].as_array().map(Vec::len), Some(0));

    place.run(&["expire", "NS", "a"]).done();
    let json = place.run(&["show", "NS", "a", "--json"]).json();
    let delivery = &json["deliveries"][0];
    assert_eq!((&json["armed"], &delivery["route"]), (&false.into(), &"main".into()));
    assert_eq!((&delivery["state"], &delivery["kind"]), (&"ready".into(), &"cleanup".into()));
    assert_eq!(delivery["event_id"], json["open"]["event_id"]);
    let text = place.run(&["show", "NS", "a"]).done().out;
    assert!(text.contains("open         cleanup (ended) of 2100-01-01"), "{text}");
}

#[test]
fn show_tells_of_each_reminder_whether_it_is_to_come() {
    let place = Place::new(&["--remind", "10h,2h,1h", "--grace", "5m"]);
    place.run(&["track", "NS", "a", "--at", AT]).done();
    let json = place.run(&["show", "NS", "a", "--json"]).json();
    let due =
        |lead_ms: i64, due_at: &str| serde_json::json!({ "lead_ms": lead_ms, "due_at": due_at, "state": "to_come" });
    let expected = [
        due(36_000_000, "2099-12-31T14:00:00.000Z"),
        due(7_200_000, "2099-12-31T22:00:00.000Z"),
        due(3_600_000, "2099-12-31T23:00:00.000Z"),
    ];
    assert_eq!(json["reminders"], serde_json::json!(expected));
    assert_eq!(json["cleanup_at"], "2100-01-01T00:05:00.000Z");
    let text = place.run(&["show", "NS", "a"]).done().out;
    assert!(text.contains("reminder     10h before, to come at 2099-12-31T14:00:00.000Z (in "), "{text}");
    assert!(text.contains("cleanup      2100-01-01T00:05:00.000Z"), "{text}");

    place.run(&["track", "NS", "b", "--in", "90m"]);
    let json = place.run(&["show", "NS", "b", "--json"]).json();
    let states: Vec<_> = json["reminders"].as_array().unwrap().iter().map(|one| one["state"].clone()).collect();
    assert_eq!(states, ["passed", "now", "to_come"]);
    let text = place.run(&["show", "NS", "b"]).done().out;
    assert!(text.contains("2h before, its time came") && text.contains("10h before, its time has passed"), "{text}");

    place.apply(&["--remind", "2h", "--late", "fire", "--no-cleanup"]);
    place.run(&["track", "NS", "c", "--in", "90m"]).done();
    let json = place.run(&["show", "NS", "c", "--json"]).json();
    assert_eq!((&json["reminders"][0]["state"], &json["cleanup_at"]), (&"pending".into(), &serde_json::Value::Null));
    let text = place.run(&["show", "NS", "c"]).done().out;
    assert!(text.contains("2h before, pending") && text.contains("cleanup      never (cleanup is off)"), "{text}");
    assert!(text.contains("delivery     reminder 2h before"), "{text}");
}

#[test]
fn show_tells_of_pauses_and_of_quarantine() {
    let place = Place::new(&[]);
    place.run(&["track", "NS", "a", "--at", AT]).done();
    place.run(&["namespace", "pause", "NS", "--reminders"]).done();
    place.run(&["namespace", "pause", "NS", "--route", "main"]).done();
    let json = place.run(&["show", "NS", "a", "--json"]).json();
    assert_eq!(json["paused"], serde_json::json!({ "reminders": true, "cleanups": false }));
    assert_eq!(json["paused_routes"][0]["route"], "main");
    let text = place.run(&["show", "NS", "a"]).done().out;
    assert!(text.contains("paused       reminders\n  paused       reminders and cleanups on route main\n"), "{text}");

    let place = Place::new(&[]);
    let mut connection = Server::shared(Kind::Redis).blocking_connection();
    let key = format!("{{fw:{}:0}}:exp", place.namespace);
    redis::cmd("ZADD").arg(key).arg(1_796_083_200).arg("s").exec(&mut connection).unwrap();
    let _work = place.start(&["work", "NS"]);
    place.wait_for_stats("the quarantine", |stats| stats["quarantined"] == 1);
    let text = place.run(&["show", "NS", "s"]).done().out;
    assert!(text.contains("quarantined  its score 1796083200 cannot be an expiry in milliseconds"), "{text}");

    let place = Place::new(&["--key", "session:*"]);
    let key = format!("{{fw:{}:0}}:exp", place.namespace);
    redis::cmd("ZADD").arg(key).arg(4_102_444_800_000_i64).arg("s").exec(&mut connection).unwrap();
    redis::cmd("ZADD").arg(format!("{{fw:{}:0}}:exp", place.namespace)).arg(0).arg("t").exec(&mut connection).unwrap();
    let _work = place.start(&["work", "NS"]);
    place.wait_for_stats("the quarantine", |stats| stats["quarantined"] == 1);
    let text = place.run(&["show", "NS", "t"]).done().out;
    assert!(text.contains("quarantined  its"), "{text}");
}

#[test]
fn what_is_left_out_of_the_settings_is_said_by_name() {
    let place = Place::new(&["--key", "session:*", "--manage-keys", "--remind", "5s", "--history", "9"]);
    let ended = place.apply(&["--remind", "5s"]);
    assert!(ended.out.contains("  key_backed       yes → no\n"), "{ended:?}");
    assert!(ended.out.contains("  routes           main"), "{ended:?}");
    assert!(ended.err.contains("no keys behind its ids and no history"), "{ended:?}");
}

#[test]
fn show_tells_of_what_is_parked_even_if_nothing_else_is_left() {
    let place = Place::new(&[]);
    place.track_expired("a");
    place.track_expired("b");
    let _work = place.start(&[
        "work",
        "NS",
        "--exec",
        "echo no such bucket >&2; exit $([ $FOREWARN_ID = a ] && echo 65 || echo 82)",
    ]);
    place.wait_for_stats("the parked ones", |stats| stats["dead"] == 1 && stats["review"] == 1);
    let json = place.run(&["show", "NS", "a", "--json"]).json();
    let listed = place.run(&["dead", "list", "NS", "--json"]).json();
    assert_eq!(
        (&json["armed"], &json["dead"], &json["review"]),
        (&false.into(), &listed["dead"], &serde_json::json!([]))
    );
    let event_id = listed["dead"][0]["event_id"].as_str().unwrap();
    let text = place.run(&["show", "NS", "a"]).done().out;
    assert!(text.contains(&format!("dead letter  {event_id} cleanup (expired)")), "{text}");
    assert!(text.contains("no such bucket"), "{text}");
    assert!(place.run(&["show", "NS", "b"]).done().out.contains("  review       "));
    assert!(place.run(&["show", "NS", "c"]).failed().contains("c is unknown"));
}

#[test]
fn an_id_may_have_any_bytes() {
    let place = Place::new(&[]);
    let bytes = b"\xFF{:}\n\xF0\x9F\x98\x80".as_slice();
    let with = |words: &[&str], more: &[&str]| {
        let mut command = place.command();
        command.args(words).arg(&place.namespace).arg(std::ffi::OsStr::from_bytes(bytes)).args(more);
        end(command)
    };
    with(&["track"], &["--at", AT]).done();
    let listed = place.run(&["list", "NS", "--json"]).json();
    let base64 = listed["deadlines"][0]["id_base64"].as_str().unwrap().to_owned();
    assert_eq!(listed["deadlines"][0].get("id"), None);
    let shown = place.run(&["show", "NS", "--id-base64", &base64, "--json"]).json();
    assert_eq!(shown["id_base64"], base64.as_str());
    let text = with(&["show"], &[]).done().out;
    assert!(text.contains("\\xFF{:}\\n😀"), "{text}");
    place.run(&["remove", "NS", "--id-base64", &base64]).prints("removed");

    let advice = ["goes last, after --", "-- -id"];
    place.run(&["track", "NS", "-a", "--in", "1h"]).refused(&advice);
    place.run(&["track", "NS", "--in", "1h", "--", "--in"]).done();
    place.run(&["remove", "NS", "--", "--in"]).prints("removed");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let place = Place::new(&[]);
    place.run(&["track", "NS", "a", "--at", AT]).done();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = place.command();
    let status = command.args(["list", &place.namespace]).stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_list_comes_by_expiry_and_in_pages() {
    let place = Place::new(&[]);
    for (id, at_ms) in [("c", "4102444800003"), ("a", "4102444800001"), ("b", "4102444800002")] {
        place.run(&["track", "NS", id, "--at-ms", at_ms]).done();
    }
    let first = place.run(&["list", "NS", "--json", "--limit", "2"]).json();
    let ids = |page: &serde_json::Value| -> Vec<String> {
        page["deadlines"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&first), ["a", "b"]);
    assert_eq!(first["deadlines"][0]["expires_at"], "2100-01-01T00:00:00.001Z");
    let second =
        place.run(&["list", "NS", "--json", "--limit", "2", "--after", first["next"].as_str().unwrap()]).json();
    assert_eq!((ids(&second), &second["next"]), (vec!["c".to_owned()], &serde_json::Value::Null));

    let none = place.run(&["list", "NS", "--within", "1h"]);
    assert_eq!((none.code, none.out.as_str(), none.err.as_str()), (0, "", "none\n"));
    let near = place.run(&["list", "NS", "--json", "--within", "1h"]).json();
    assert_eq!(ids(&near), [""; 0]);
    let text = place.run(&["list", "NS"]).done().out;
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("expires_at") && lines[1].starts_with("2100-01-01T00:00:00.001Z"), "{text}");
    assert!(lines[1].ends_with('a') && lines.len() == 4, "{text}");
    let cut = place.run(&["list", "NS", "--limit", "1"]);
    assert!(cut.code == 0 && cut.err.contains("--after"), "{cut:?}");
}

#[test]
fn show_answers_whether_there_was_a_prompt() {
    let place = Place::new(&["--remind", "10h,2h", "--history", "1000"]);
    place.run(&["track", "NS", "late", "--in", "5h"]);
    let text = place.run(&["show", "NS", "late"]).done().out;
    assert!(text.contains("reminder     10h before, silent, the deadline was set inside the lead"), "{text}");
    assert!(text.contains("history      reminder 10h before 20"), "{text}");
    let json = place.run(&["show", "NS", "late", "--json"]).json();
    assert_eq!((&json["reminders"][0]["state"], &json["reminders"][1]["state"]), (&"silent".into(), &"to_come".into()));
    let entry = &json["history"][0];
    assert_eq!(
        (&entry["ending"], &entry["kind"], &entry["lead_ms"]),
        (&"skipped".into(), &"reminder".into(), &36_000_000.into())
    );

    place.apply(&["--remind", "10h,2h", "--history", "1000", "--late", "fire"]);
    place.run(&["track", "NS", "told", "--in", "5h"]).done();
    let work = place.start(&["work", "NS"]);
    assert!(work.line().contains("told"));
    place.wait_for_stats("the ack", |stats| stats["counters"]["acked"] == 1);
    let text = place.run(&["show", "NS", "told"]).done().out;
    assert!(text.contains("reminder     10h before, delivered, its time came "), "{text}");
    assert!(text.contains(" on route main: delivered "), "{text}");
    place.run(&["remove", "NS", "told"]).done();
    let text = place.run(&["show", "NS", "told"]).done().out;
    assert!(text.contains("armed        no") && text.contains(" on route main: delivered "), "{text}");
}
