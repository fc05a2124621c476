//! What the documents tell users to write is true: events and their fields, rights in Redis, the script to begin with.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use forewarn::{
    Id, Kind, Name, Reason,
    model::{LeadTime, Notice},
};
use serde_json::Value;

use crate::{
    harness::{Server, documented_rights},
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

/// Gives the documented rights of the lines with this part.
fn grant(server: &Server, part: &str) {
    let lines: Vec<String> = documented_rights().into_iter().filter(|line| line.contains(part)).collect();
    assert!(!lines.is_empty(), "no line has {part}");
    lines.iter().for_each(|line| server.command(line));
}

#[test]
fn the_documented_rights_are_enough_for_ids_that_are_keys_and_what_lacks_is_told() {
    let server = Server::start();
    let place = Place { url: server.url(), namespace: "session".to_owned() };
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
    grant(&server, " %R~");
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
    grant(&server, " ~user_session");
    for words in commands {
        place.run(words).done();
    }
}

#[test]
fn the_documented_rights_of_a_raw_client_are_enough_and_no_more() {
    let server = Server::start();
    grant(&server, "ACL SETUSER app ");
    let place = Place { url: server.url(), namespace: "session".to_owned() };
    place.apply(&["--remind", "10m"]).done();
    let url = format!("redis://app:PASSWORD@127.0.0.1:{}", server.port());
    let mut app = redis::Client::open(url).unwrap().get_connection().unwrap();
    let mut transaction = redis::pipe();
    transaction.atomic();
    transaction.zadd("{fw:session:0}:exp", "raw", 0).hset("{fw:session:0}:payload", "raw", "7");
    transaction.zadd("{fw:session:0}:exp", "gone", 0).hset("{fw:session:0}:payload", "gone", "8");
    transaction.zrem("{fw:session:0}:exp", "gone").hdel("{fw:session:0}:payload", "gone");
    transaction.exec(&mut app).unwrap();
    redis::cmd("HSET").arg("{fw:session:0}:meta").arg("a").arg("b").exec(&mut app).unwrap_err();
    redis::cmd("HGETALL").arg("{fw:session:0}:payload").exec(&mut app).unwrap_err();

    let work = place.start(&["work", "NS"]);
    let cleanup: Value = serde_json::from_str(&work.line()).unwrap();
    assert_eq!((&cleanup["subject"], &cleanup["data"]["payload"]), (&"raw".into(), &7.into()));
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
