//! What the documents tell users to write is true: events and their fields, rights in Redis, the script to begin with.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use forewarn::{
    Id, Kind, Name, Reason,
    model::{LeadTime, Notice},
};
use serde_json::Value;

use crate::{
    harness::Server,
    process::{Place, end},
};

fn document(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The events written out in `docs/events.md`: a reminder and a cleanup.
fn documented_events() -> [Value; 2] {
    let text = document("docs/events.md");
    let blocks = text.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let events: Vec<Value> = blocks.map(|block| serde_json::from_str(block).unwrap()).collect();
    events.try_into().unwrap()
}

/// The names of all fields, at both levels.
fn fields(event: &Value) -> BTreeSet<String> {
    let data = event["data"].as_object().unwrap().keys().map(|name| format!("data.{name}"));
    event.as_object().unwrap().keys().cloned().chain(data).collect()
}

#[test]
fn the_documented_events_have_the_fields_of_real_ones() {
    let place = Place::new(&["--remind", "10m", "--late", "fire"]);
    let work = place.start(&["work", "NS"]);
    place.run(&["track", "NS", "a", "--in", "5m", "--payload", "7"]).done();
    let reminder: Value = serde_json::from_str(&work.line()).unwrap();
    place.track_expired("b");
    let cleanup: Value = serde_json::from_str(&work.line()).unwrap();
    let documented = documented_events();
    for (documented, real) in documented.iter().zip([reminder, cleanup]) {
        assert_eq!(documented["type"], real["type"]);
        assert_eq!(fields(documented), fields(&real));
    }
    let text = document("docs/events.md");
    for field in documented.iter().flat_map(fields) {
        let name = field.strip_prefix("data.").unwrap_or(&field);
        assert!(name == "data" || text.contains(&format!("| `{name}` |")), "no row for {name}");
    }
}

#[test]
fn the_documented_event_ids_are_those_of_the_documented_events() {
    let kinds = [Kind::Reminder(LeadTime::from_millis(600_000).unwrap()), Kind::Cleanup(Reason::Expired)];
    for (event, kind) in documented_events().iter().zip(kinds) {
        let data = &event["data"];
        let notice = Notice {
            namespace: Name::new("namespace", data["namespace"].as_str().unwrap()).unwrap(),
            kind,
            expires_at_ms: 1_796_083_200_000,
            id: Id::new(data["id"].as_str().unwrap()).unwrap(),
        };
        assert_eq!(event["id"], notice.event_id().to_string());
    }
}

/// Gives the documented rights, those of the lines that are wanted.
fn grant(server: &Server, is_wanted: impl Fn(&str) -> bool) {
    let text = document("docs/operating.md");
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("ACL SETUSER ") && is_wanted(line)).collect();
    assert!(!lines.is_empty(), "no such line");
    for line in lines {
        let mut words = line.split_whitespace();
        let mut command = redis::cmd(words.next().unwrap());
        command.arg(words.collect::<Vec<_>>()).exec(&mut server.blocking_connection()).unwrap();
    }
}

#[test]
fn the_documented_rights_are_enough_for_ids_that_are_keys_and_what_lacks_is_told() {
    let server = Server::start();
    grant(&server, |line| line.contains(" on "));
    let url = format!("redis://forewarn:PASSWORD@127.0.0.1:{}", server.port());
    let place = Place { url, namespace: "session".to_owned() };
    let settings = ["--remind", "10m", "--late", "fire", "--key", "user_session:*"];
    place.apply(&settings).done();
    let mut owner = server.blocking_connection();
    let mut arm = |id: &str, in_ms: i64| {
        let set = redis::cmd("SET").arg(id).arg("data").arg("PX").arg(in_ms).exec(&mut owner);
        set.unwrap();
        let at: i64 = redis::cmd("PEXPIRETIME").arg(id).query(&mut owner).unwrap();
        redis::cmd("ZADD").arg("{fw:session:0}:exp").arg(at).arg(id).exec(&mut owner).unwrap();
    };
    arm("user_session:a", 300_000);
    let work = place.start(&["work", "NS"]);
    work.says("%R~");
    grant(&server, |line| line.contains("%R~"));
    let reminder: Value = serde_json::from_str(&work.line()).unwrap();
    assert_eq!((&reminder["type"], &reminder["subject"]), (&"forewarn.reminder".into(), &"user_session:a".into()));
    work.signal("TERM");
    assert_eq!(work.end().code, 0);

    place.apply(&[&settings[..], &["--manage-keys"]].concat()).done();
    let commands: [&[&str]; 5] = [
        &["track", "NS", "user_session:a", "--in", "1h"],
        &["renew", "NS", "user_session:a", "--in", "2h"],
        &["track", "NS", "user_session:b", "--in", "1h", "--replaces", "user_session:a"],
        &["expire", "NS", "user_session:b"],
        &["remove", "NS", "user_session:b"],
    ];
    arm("user_session:b", 7_200_000);
    for words in commands {
        let told = place.run(words).failed();
        assert!(told.contains("+pexpireat +unlink"), "{words:?}: {told}");
    }
    grant(&server, |line| line.contains(" ~user_session"));
    for words in commands {
        place.run(words).done();
    }
}

#[test]
fn the_documented_rights_are_enough() {
    let server = Server::start();
    grant(&server, |line| line.contains(" on "));
    let url = |user: &str| format!("redis://{user}:PASSWORD@127.0.0.1:{}", server.port());
    let place = Place { url: url("forewarn"), namespace: "session".to_owned() };
    place.apply(&["--remind", "10m"]).done();

    let mut app = redis::Client::open(url("app")).unwrap().get_connection().unwrap();
    let mut transaction = redis::pipe();
    transaction.atomic();
    transaction.zadd("{fw:session:0}:exp", "raw", 0).hset("{fw:session:0}:payload", "raw", "7");
    transaction.exec(&mut app).unwrap();
    redis::cmd("HGETALL").arg("{fw:session:0}:meta").exec(&mut app).unwrap_err();

    let work = place.start(&["work", "NS", "--exec", "exit 65"]);
    place.track_expired("a");
    place.wait_for_stats("the dead letters", |stats| stats["dead"] == 2);
    place.run(&["show", "NS", "a"]).done();
    place.run(&["dead", "requeue", "NS", "--all"]).prints("requeued 2");
    place.wait_for_stats("the dead letters again", |stats| stats["dead"] == 2);
    work.signal("TERM");
    assert_eq!(work.end().code, 0);
    place.run(&["dead", "drop", "NS", "--all", "--yes"]).prints("dropped 2");
    place.run(&["track", "NS", "b", "--in", "1h"]).done();
    place.run(&["renew", "NS", "b", "--in", "2h"]).done();
    place.run(&["list", "NS"]).done();
    place.run(&["expire", "NS", "b"]).done();
    place.run(&["remove", "NS", "b"]).done();
    place.run(&["namespace", "pause", "NS"]).done();
    place.run(&["namespace", "list"]).done();
    let directory = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}", directory.path().join("forewarn.db").display());
    for (from, to) in [(&place.url, &file), (&file, &place.url)] {
        let ended = place.run(&["store", "copy", from, to, "--namespace", "NS", "--pause"]);
        assert_eq!(ended.code, 0, "{ended:?}");
        place.run(&["namespace", "forget", "NS", "--force"]).done();
    }
    assert_eq!(
        end({
            let mut demo = place.command();
            demo.arg("demo");
            demo
        })
        .code,
        0
    );
}

#[test]
fn the_script_to_begin_with_cleans_up_and_passes_on() {
    let uploads = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/on-notice.sh");
    let run = |id_base64: &str, kind: &str| {
        let mut command = Command::new(&script);
        command.env("UPLOADS", uploads.path()).env("FOREWARN_ID_BASE64", id_base64).env("FOREWARN_KIND", kind);
        end(command)
    };
    fs::write(uploads.path().join("YQ"), "part").unwrap();
    assert_eq!(run("YQ", "reminder").code, 0);
    assert!(uploads.path().join("YQ").exists());
    assert_eq!(run("YQ", "cleanup").code, 0);
    assert!(!uploads.path().join("YQ").exists());
    let again = run("YQ", "cleanup");
    assert!(again.code == 80 && again.err.contains("gone already"), "{again:?}");
}
