//! `namespace apply`, `list`, `show`, `pause`, `resume`, and `stats`.

use crate::{harness::Server, process::Place};

#[test]
fn a_namespace_is_created_changed_and_shown() {
    let place = Place::unconfigured();
    let created = place.apply(&["--remind", "1m", "--remind", "10m", "--grace", "90s"]).done().out;
    assert!(created.starts_with(&format!("created {}\n", place.namespace)), "{created}");
    assert!(created.contains("remind           10m, 1m"), "{created}");
    assert!(created.contains("grace            1m 30s"), "{created}");
    let settings = ["--remind", "1m", "--remind", "10m", "--grace", "90s"];
    assert!(place.apply(&settings).done().out.starts_with("unchanged "));
    let changed = place.apply(&["--no-cleanup"]);
    assert!(changed.code == 0 && changed.out.starts_with("changed "), "{changed:?}");
    for line in ["  remind           10m, 1m → never\n", "  cleanup          yes → no\n", "  lease            1m\n"]
    {
        assert!(changed.out.contains(line), "no {line:?} in {changed:?}");
    }
    let again = format!("forewarn namespace apply {} --remind 10m --remind 1m --grace '1m 30s'", place.namespace);
    let warning = "no reminder 10m, 1m before expiry and no cleanup with these settings";
    assert!(changed.err.contains(warning) && changed.err.contains(&again), "{changed:?}");

    let shown = place.run(&["namespace", "show", "NS", "--json"]).json();
    assert_eq!(shown["namespace"], place.namespace.as_str());
    assert_eq!((&shown["settings"]["cleanup"], &shown["settings"]["grace_ms"]), (&false.into(), &0.into()));
    assert_eq!(shown["settings"]["remind"].as_array().map(Vec::len), Some(0));
    assert_eq!(shown["routes"][0]["name"], "main");
    assert!(place.run(&["namespace", "show", "NS"]).done().out.contains("remind           never"));
}

#[test]
fn several_leads_stand_behind_one_flag() {
    let place = Place::new(&["--remind", "10m,1h 30m"]);
    let shown = place.run(&["namespace", "show", "NS", "--json"]).json();
    assert_eq!(shown["settings"]["remind"], serde_json::json!([5_400_000, 600_000]));
    place.apply(&["--remind", "10m 1m"]).refused(&["\"10m 1m\"", "commas", "10m,1m"]);
}

#[test]
fn every_setting_has_its_flag() {
    let place = Place::unconfigured();
    let flags = "--remind 5s --no-cleanup --grace 1s --late fire --lease 2s --shards 3 --first-start silent \
                 --on-rearm deliver --min-repeat 4s --max-payload 5 --max-deliveries 6 --clock-tolerance 7s \
                 --key user_session:* --key x[ab] --manage-keys --on-gone drop --recheck-interval 9s --history 99 --sensitive-ids --revision 8 --route mail:reminders --route s3:cleanups";
    place.apply(&flags.split_whitespace().collect::<Vec<_>>()).done();
    let shown = place.run(&["namespace", "show", "NS", "--json"]).json();
    let expected = serde_json::json!({
        "remind": [5000], "cleanup": false, "grace_ms": 1000, "late": "fire", "lease_ms": 2000, "shards": 3,
        "on_rearm": "deliver", "min_repeat_ms": 4000, "max_payload": 5, "max_deliveries": 6,
        "clock_tolerance_ms": 7000, "revision": 8, "key_backed": true,
        "keys": ["user_session:*", "x[ab]"], "manage_keys": true, "on_gone": "drop", "recheck_interval_ms": 9000, "history": 99,
        "sensitive_ids": true,
    });
    assert_eq!(shown["settings"], expected);
    assert_eq!(shown["routes"].as_array().map(Vec::len), Some(2));
    assert_eq!((&shown["routes"][0]["name"], &shown["routes"][0]["cleanups"]), (&"mail".into(), &false.into()));
}

#[test]
fn routes_are_added_and_dropped_and_the_last_one_stays() {
    let place = Place::new(&[]);
    let routes = |place: &Place| -> Vec<String> {
        let shown = place.run(&["namespace", "show", "NS", "--json"]).json();
        shown["routes"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    place.apply(&["--route", "mail"]).done();
    assert_eq!(routes(&place), ["main", "mail"]);
    place.apply(&["--drop-route", "main"]).done();
    assert_eq!(routes(&place), ["mail"]);
    place.apply(&["--drop-route", "mail"]).refused(&["route"]);
    assert_eq!(routes(&place), ["mail"]);
}

#[test]
fn a_dry_run_says_what_would_speak_and_changes_nothing() {
    let place = Place::new(&["--remind", "1m"]);
    place.run(&["track", "NS", "a", "--in", "5m"]).done();
    // The new lead takes the place of the old one, which has not passed the id yet.
    let preview = place.apply(&["--remind", "10m", "--route", "mail", "--dry-run"]);
    let expected = format!(
        "would change {}\n  remind           1m → 10m\n  route            mail\nat once would speak\n  \
         reminders 10m before expiry: 1\n  cleanups: 0\n",
        place.namespace
    );
    assert_eq!((preview.code, preview.out.as_str()), (0, expected.as_str()));
    assert!(preview.err.contains("no reminder 1m before expiry"), "{preview:?}");
    let shown = place.run(&["namespace", "show", "NS", "--json"]).json();
    assert_eq!(shown["settings"]["remind"], serde_json::json!([60_000]));
    let new = Place::unconfigured();
    assert!(new.apply(&["--remind", "10m", "--dry-run"]).done().out.starts_with("would create "));
    new.run(&["namespace", "show", "NS"]).refused(&["is not configured"]);
}

#[test]
fn namespaces_are_listed() {
    let place = Place::new(&["--shards", "2"]);
    let listed = place.run(&["namespace", "list", "--json"]).json();
    let mine = serde_json::json!({ "name": place.namespace, "shards": 2 });
    assert!(listed["namespaces"].as_array().unwrap().contains(&mine), "{listed}");
    assert!(place.run(&["namespace", "list"]).done().out.contains(&place.namespace));
}

#[test]
fn a_resume_says_how_fast_what_gathered_flows() {
    let place = Place::new(&["--route", "main", "--route", "mail"]);
    let name = place.namespace.clone();
    place.run(&["namespace", "pause", "NS"]).done();
    let resumed = format!("resumed reminders and cleanups of {name}, what gathered at 1000 a second");
    place.run(&["namespace", "resume", "NS"]).prints(&resumed);
    let resumed = format!("resumed reminders and cleanups of {name}, what gathered at 50 a second");
    place.run(&["namespace", "resume", "NS", "--rate", "50"]).prints(&resumed);
    let resumed = format!("resumed cleanups of {name} on route mail, what gathered at 7 a second");
    place.run(&["namespace", "resume", "NS", "--rate", "7", "--cleanups", "--route", "mail"]).prints(&resumed);
    let stats = place.run(&["stats", "NS", "--json"]).json();
    assert_eq!(stats["catching_up"], serde_json::json!({ "reminders": 50, "cleanups": 50 }));
    assert_eq!(stats["routes"][1]["catching_up"], serde_json::json!({ "reminders": null, "cleanups": 7 }));
    let stats = place.run(&["stats", "NS"]).done().out;
    assert!(stats.contains("catching up  reminders at 50 a second, cleanups at 50 a second"), "{stats}");
    assert!(stats.contains("; catching up cleanups at 7 a second"), "{stats}");
    let shown = place.run(&["namespace", "show", "NS"]).done().out;
    assert!(shown.contains("catching up      reminders at 50 a second, cleanups at 50 a second"), "{shown}");
    assert!(shown.ends_with("catching up      cleanups at 7 a second on route mail\n"), "{shown}");
    let shown = place.run(&["namespace", "show", "NS", "--json"]).json();
    assert_eq!(shown["catching_up"]["cleanups"], 50);
    let routes = serde_json::json!([{ "route": "mail", "reminders": null, "cleanups": 7 }]);
    assert_eq!(shown["catching_up_routes"], routes);

    for rate in ["0", "unlimited"] {
        place
            .run(&["namespace", "resume", "NS", "--rate", rate])
            .prints(&format!("resumed reminders and cleanups of {name}"));
        let stats = place.run(&["stats", "NS", "--json"]).json();
        assert_eq!(stats["catching_up"], serde_json::json!({ "reminders": null, "cleanups": null }));
    }
    place.run(&["namespace", "resume", "NS", "--rate", "fast"]).refused(&["--rate", "unlimited"]);
}

#[test]
fn a_pause_is_seen_and_ends() {
    let place = Place::new(&[]);
    let name = place.namespace.clone();
    place.run(&["namespace", "pause", "NS"]).prints(&format!("paused reminders and cleanups of {name}"));
    let stats = place.run(&["stats", "NS", "--json"]).json();
    assert_eq!(stats["paused"], serde_json::json!({ "reminders": true, "cleanups": true }));
    assert!(place.run(&["stats", "NS"]).done().out.contains("paused       reminders and cleanups"));
    let resumed = format!("resumed reminders of {name}");
    place.run(&["namespace", "resume", "NS", "--reminders", "--rate", "unlimited"]).prints(&resumed);
    let shown = place.run(&["namespace", "show", "NS", "--json"]).json();
    assert_eq!(shown["paused"], serde_json::json!({ "reminders": false, "cleanups": true }));
    assert!(place.run(&["namespace", "show", "NS"]).done().out.contains("paused           cleanups"));

    let paused = format!("paused cleanups of {name} on route main");
    place.run(&["namespace", "pause", "NS", "--cleanups", "--route", "main"]).prints(&paused);
    let stats = place.run(&["stats", "NS", "--json"]).json();
    assert_eq!(stats["routes"][0]["paused"]["cleanups"], true);
    assert!(place.run(&["namespace", "show", "NS"]).done().out.ends_with("paused           cleanups on route main\n"));
    let shown = place.run(&["namespace", "show", "NS", "--json"]).json();
    let routes = serde_json::json!([{ "route": "main", "reminders": false, "cleanups": true }]);
    assert_eq!(shown["paused_routes"], routes);
    place.run(&["namespace", "pause", "NS", "--route", "none"]).refused(&["no route \"none\"", "namespace show"]);
}

#[test]
fn stats_count_what_there_is() {
    let place = Place::new(&[]);
    place.run(&["track", "NS", "a", "--in", "1h"]).done();
    place.track_expired("b");
    place.run(&["track", "NS", "c", "--in", "1h"]).done();
    place.run(&["expire", "NS", "c"]).done();
    let stats = place.run(&["stats", "NS", "--json"]).json();
    assert_eq!((&stats["armed"], &stats["overdue"], &stats["open"]), (&2.into(), &1.into(), &1.into()));
    assert_eq!((&stats["routes"][0]["route"], &stats["routes"][0]["pending"]), (&"main".into(), &1.into()));
    let text = place.run(&["stats", "NS"]).done().out;
    assert!(text.contains("  now          armed 2, overdue 1, open 1\n"), "{text}");
    assert!(
        text.contains("  so far       handed_out 0, acked 0, failed 0, lapsed 0, dead 0, review 0, quarantined 0\n")
    );
    let all = place.run(&["stats", "--json"]).json();
    assert!(all["namespaces"].as_array().unwrap().iter().any(|one| one["namespace"] == place.namespace.as_str()));
}

#[test]
fn a_broken_namespace_does_not_hide_the_others() {
    // A store of its own: the broken one would be in the way of other tests.
    let server = Server::start();
    let place = |name: &str| Place { url: server.url(), namespace: name.to_owned() };
    let (whole, broken) = (place("whole"), place("broken"));
    whole.apply(&[]).done();
    broken.apply(&[]).done();
    let mut connection = server.blocking_connection();
    redis::cmd("SET").arg("{fw:broken:0}:exp").arg("x").exec(&mut connection).unwrap();

    let counted = whole.run(&["stats", "--json"]);
    assert_eq!(counted.code, 1, "{counted:?}");
    let json: serde_json::Value = serde_json::from_str(&counted.out).unwrap();
    assert_eq!(json["namespaces"][0]["namespace"], "broken");
    assert!(json["namespaces"][0]["error"].as_str().unwrap().contains("{fw:broken:0}:exp"), "{json}");
    assert_eq!(json["namespaces"][1], whole.run(&["stats", "NS", "--json"]).json());
    let text = whole.run(&["stats"]).failed();
    assert!(text.starts_with("broken\n  error        key ") && text.contains("\nwhole\n  now "), "{text}");
    broken.run(&["stats", "NS"]).failed();
}

#[test]
fn a_namespace_is_forgotten_but_not_by_mistake() {
    let place = Place::new(&[]);
    place.run(&["track", "NS", "a", "--in", "1h"]).done();
    let said = place.run(&["namespace", "forget", "NS"]).failed();
    assert!(said.contains("armed 1") && said.contains("--force"), "{said}");
    place.run(&["namespace", "forget", "NS", "--force"]).prints(&format!("forgot {}", place.namespace));
    place.run(&["namespace", "show", "NS"]).refused(&["is not configured"]);
    place.run(&["namespace", "forget", "NS"]).refused(&["is not configured"]);
    place.run(&["namespace", "forget", "NS", "--force"]).failed();
    place.apply(&[]).done();
    place.run(&["namespace", "forget", "NS"]).prints(&format!("forgot {}", place.namespace));
}
