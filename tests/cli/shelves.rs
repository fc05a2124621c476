//! `dead` and `review`: list, show, requeue, drop.

use crate::process::Place;

/// A namespace with these ids rejected on route main.
fn with_dead(ids: &[&str]) -> Place {
    let place = Place::new(&[]);
    for id in ids {
        place.track_expired(id);
    }
    let work = place.start(&["work", "NS", "--exec", "echo no such bucket >&2; exit 65"]);
    place.wait_for_stats("the dead letters", |stats| stats["dead"] == ids.len());
    work.signal("TERM");
    assert_eq!(work.end().code, 0);
    place
}

fn event_ids(place: &Place) -> Vec<String> {
    let dead = place.run(&["dead", "list", "NS", "--json"]).json();
    dead["dead"].as_array().unwrap().iter().map(|one| one["event_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn dead_letters_are_listed_and_shown() {
    let place = with_dead(&["a"]);
    let dead = place.run(&["dead", "list", "NS", "--json"]).json();
    assert_eq!(dead["total"], 1);
    let one = &dead["dead"][0];
    assert_eq!((&one["id"], &one["route"], &one["kind"]), (&"a".into(), &"main".into(), &"cleanup".into()));
    assert_eq!(one["payload"], serde_json::json!({ "of": "test" }));
    assert_eq!(one["expires_at"], "2001-09-09T01:46:40.000Z");
    let event_id = one["event_id"].as_str().unwrap();

    let text = place.run(&["dead", "list", "NS"]).done().out;
    let words = ["event_id", "route", "kind", "id", "class", "failures", "parked_at", "summary"];
    assert_eq!(text.lines().next().unwrap().split_whitespace().collect::<Vec<_>>(), words);
    let row = text.lines().nth(1).unwrap();
    assert!(row.starts_with(event_id) && row.ends_with("no such bucket") && row.contains("rejected"), "{text}");

    let text = place.run(&["dead", "show", "NS", event_id]).done().out;
    assert!(text.contains("cleanup (expired)") && text.contains("no such bucket"), "{text}");
    let json = place.run(&["dead", "show", "NS", event_id, "--json"]).json();
    assert_eq!(json["dead"][0]["failures"][0]["summary"], "no such bucket");
    place.run(&["review", "show", "NS", event_id]).failed();
    assert_eq!(place.run(&["review", "list", "NS", "--json"]).json()["total"], 0);
    let none = place.run(&["review", "list", "NS"]);
    assert_eq!((none.code, none.out.as_str(), none.err.as_str()), (0, "", "none\n"));
}

#[test]
fn a_requeued_letter_is_delivered_again_with_its_payload() {
    let place = with_dead(&["a"]);
    let event_id = event_ids(&place).remove(0);
    place.run(&["dead", "requeue", "NS", &event_id]).prints("requeued 1");
    let again = place.run(&["dead", "requeue", "NS", &event_id]).failed();
    assert!(again.contains("requeued 0") && again.contains("is not parked"), "{again}");
    let work = place.start(&["work", "NS"]);
    let line = work.line();
    assert!(line.contains(&event_id) && line.contains(r#""payload":{"of":"test"}"#), "{line}");
}

#[test]
fn a_letter_that_is_void_by_now_stays_parked() {
    let place = with_dead(&["a"]);
    place.run(&["track", "NS", "a", "--in", "1h"]).done();
    let event_id = event_ids(&place).remove(0);
    let said = place.run(&["dead", "requeue", "NS", &event_id]).failed();
    assert!(said.contains("superseded") && said.contains("stays parked"), "{said}");
    assert!(said.contains("its id is armed again") && said.contains("--drop-void"), "{said}");
    assert_eq!(event_ids(&place), [event_id.as_str()]);
    place.run(&["dead", "requeue", "NS", &event_id, "--drop-void"]).prints("requeued 0, dropped 1");
    assert_eq!(event_ids(&place), [""; 0]);
}

#[test]
fn all_are_requeued_or_dropped_at_once() {
    let place = with_dead(&["a", "b", "c"]);
    place.run(&["track", "NS", "b", "--in", "1h"]).done();
    let said = place.run(&["dead", "requeue", "NS", "--all"]).failed();
    assert!(said.contains("requeued 2"), "{said}");
    assert_eq!(event_ids(&place).len(), 1);
    place.run(&["dead", "requeue", "NS", "--all", "--route", "other"]).prints("requeued 0");
    let said = place.run(&["dead", "drop", "NS", "--all"]).failed();
    assert!(said.contains("would drop 1 dead letters") && said.contains("--yes"), "{said}");
    assert_eq!(event_ids(&place).len(), 1);
    place.run(&["dead", "drop", "NS", "--all", "--yes"]).prints("dropped 1");
    assert_eq!(event_ids(&place), [""; 0]);
}

#[test]
fn one_letter_is_dropped_by_its_event_id_and_route() {
    let place = with_dead(&["a", "b"]);
    let ids = event_ids(&place);
    place.run(&["dead", "drop", "NS", &ids[0], "--route", "other"]).failed();
    place.run(&["dead", "drop", "NS", &ids[0], "--route", "main"]).prints("dropped 1");
    assert_eq!(event_ids(&place), ids[1..]);
}
