//! The command line through a daemon: the same outputs and exit statuses as on the store itself; who may do what; and daemons
//! that are not there.

use std::{
    ffi::OsString,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::ffi::OsStringExt as _,
    process::Command,
};

use crate::{
    harness::{self, free_port},
    process::{Ended, Place, Running, bare, end},
};

const ADMIN: &str = "admin-Qx7vT2mKp9Lw4Rz8";
const WRITE: &str = "write-Hn5cY1bFs6Jd3Gt0";
const READ: &str = "read-Zu8eW4aXq2Vk7Mo5Ni";
const AT: &str = "2100-01-01T00:00:00Z";

/// A daemon on the store of a place, with a token of each scope.
struct Served {
    place: Place,
    url: String,
    running: Running,
}

impl Served {
    fn new(settings: &[&str]) -> Self {
        let place = Place::new(settings);
        let mut serve = place.command();
        serve.args(["serve", "--listen", "127.0.0.1:0"]);
        for (name, token, scope) in [("OPS", ADMIN, "admin"), ("APP", WRITE, "write"), ("EYES", READ, "read")] {
            serve.env(format!("SECRET_{name}"), token);
            serve.env(format!("FOREWARN_TOKEN__{name}__SECRET_ENV"), format!("SECRET_{name}"));
            serve.env(format!("FOREWARN_TOKEN__{name}__SCOPES"), scope);
        }
        let running = Running::start(serve);
        let line = running.says("forewarn serves");
        let (_, rest) = line.split_once("url=\"").unwrap_or_else(|| panic!("no URL in {line}"));
        let url = rest.split('"').next().unwrap().to_owned();
        Self { place, url, running }
    }

    /// A command through the daemon by the bearer of this token.
    fn command(&self, token: &str) -> Command {
        let mut command = bare();
        command.env("FOREWARN_SERVER", &self.url).env("FOREWARN_TOKEN", token);
        command
    }

    fn run_as(&self, token: &str, words: &[&str]) -> Ended {
        let mut command = self.command(token);
        command.args(words.iter().map(|&word| if word == "NS" { &self.place.namespace } else { word }));
        end(command)
    }
}

/// Two namespaces that are treated alike: one on the store itself, one through the daemon.
struct Twins {
    served: Served,
    there: String,
}

impl Twins {
    fn new(settings: &[&str]) -> Self {
        let twins = Self { served: Served::new(settings), there: harness::namespace() };
        twins.served.run_as(ADMIN, &[&["namespace", "apply", &twins.there], settings].concat()).done();
        twins
    }

    fn commands(&self, words: &[OsString]) -> [Command; 2] {
        let here = &self.served.place.namespace;
        let mut commands = [self.served.place.command(), self.served.command(ADMIN)];
        for (command, namespace) in commands.iter_mut().zip([here, &self.there]) {
            command.args(words.iter().map(|word| if word == "NS" { namespace.into() } else { word.clone() }));
        }
        commands
    }

    /// Both ways end alike.
    #[track_caller]
    fn alike(&self, words: &[OsString]) -> Ended {
        let [here, there] = self.commands(words).map(end);
        let masked = |ended: &Ended| {
            let text = |text: &str| mask(&text.replace(&self.served.place.namespace, "NS").replace(&self.there, "NS"));
            (ended.code, text(&ended.out), text(&ended.err))
        };
        assert_eq!(masked(&here), masked(&there), "{words:?}");
        there
    }

    #[track_caller]
    fn both(&self, words: &[&str]) -> Ended {
        self.alike(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }
}

/// A text without what differs from run to run: instants, spans, event ids, versions, handles, alignment.
fn mask(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || ".:-~".contains(c);
    let mut words: Vec<String> = Vec::new();
    for c in text.chars() {
        match words.last_mut().filter(|last| is_word(c) && last.chars().all(is_word)) {
            Some(last) => last.push(c),
            None => words.push(c.to_string()),
        }
    }
    let is_span = |word: &str| {
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
        word.len() > unit.len() && ["ms", "s", "m", "h", "d"].contains(&unit)
    };
    let masked = words.into_iter().map(|word| match word.trim_end_matches([':', '.']) {
        word if word.len() >= 20 && word.starts_with("20") && word.contains('T') && word.ends_with('Z') => {
            "<at>".to_owned()
        }
        word if word.len() >= 12 && word.chars().all(|c| c.is_ascii_hexdigit()) => "<hex>".to_owned(),
        word if word.contains('~') => "<handle>".to_owned(),
        word if is_span(word) => "<span>".to_owned(),
        _ => word,
    });
    let mut text = masked.collect::<String>();
    for (from, to) in [("  ", " "), ("<span> <span>", "<span>"), ("---", "--")] {
        while text.contains(from) {
            text = text.replace(from, to);
        }
    }
    match text.split_once("\"oldest_due_ms\":") {
        Some((before, after)) => format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit())),
        None => text,
    }
}

#[test]
fn every_id_goes_through_a_daemon_as_it_is() {
    let twins = Twins::new(&["--remind", "10m"]);
    let mut ids: Vec<Vec<u8>> = ["a/b", "..", ".", "%2F", "é", "a\nb", "-", "?", "#", "a+b&c=d", " ", "//"]
        .map(|id| id.as_bytes().to_vec())
        .to_vec();
    ids.extend([vec![b'x'; 1024], b"\xFF{:}\xF0".to_vec()]);
    for id in ids {
        let with = |words: &[&str]| {
            let words =
                words.iter().map(|&word| if word == "ID" { OsString::from_vec(id.clone()) } else { word.into() });
            twins.alike(&words.collect::<Vec<_>>())
        };
        with(&["track", "NS", "--at", AT, "--payload", r#"{"z":1.0,"a":2}"#, "--json", "--", "ID"]).done();
        let shown = with(&["show", "NS", "--", "ID"]).done();
        assert!(shown.out.contains(r#"{"z":1.0,"a":2}"#), "{shown:?}");
        with(&["show", "NS", "--json", "--", "ID"]).done();
        with(&["renew", "NS", "--at-ms", "4102444800001", "--", "ID"]).done();
        with(&["list", "NS", "--json"]).done();
        with(&["track", "NS", "--at", AT, "--replaces", "nobody", "--", "ID"]).done();
        with(&["expire", "NS", "--json", "--", "ID"]).done();
        with(&["remove", "NS", "--json", "--", "ID"]).done();
        with(&["show", "NS", "--", "ID"]).failed();
    }
    twins.both(&["track", "NS", "--id-base64", "_w", "--at", AT, "--json"]).done();
    twins.both(&["show", "NS", "--id-base64", "_w", "--json"]).done();
    twins.both(&["remove", "NS", "--id-base64", "_w"]).done();
}

#[test]
fn commands_on_deadlines_end_alike() {
    let twins = Twins::new(&["--remind", "2h,10m", "--history", "100"]);
    for words in [
        &["track", "NS", "a", "--at", AT][..],
        &["track", "NS", "a", "--at", AT, "--mode", "create"],
        &["track", "NS", "a", "--at-ms", "4102444800000", "--mode", "extend_only"],
        &["track", "NS", "b", "--in", "1h"],
        &["track", "NS", "c", "--at-ms", "1000000000000", "--json"],
        &["track", "NS", "new", "--at", AT, "--replaces", "a", "--json"],
        &["track", "NS", "new", "--at", AT, "--replaces", "new"],
        &["renew", "NS", "new", "--at", AT],
        &["renew", "NS", "nobody", "--at", AT],
        &["renew", "NS", "c", "--at", AT],
        &["show", "NS", "b"],
        &["show", "NS", "b", "--json"],
        &["show", "NS", "nobody"],
        &["list", "NS"],
        &["list", "NS", "--limit", "1"],
        &["list", "NS", "--within", "2h", "--json"],
        &["list", "NS", "--after", "4102444800000:YQ"],
        &["stats", "NS"],
        &["stats", "NS", "--json"],
        &["remove", "NS", "nobody"],
        &["expire", "NS", "nobody"],
        &["show", "unknown-one", "a"],
        &["track", "unknown-one", "a", "--in", "1h"],
        &["stats", "unknown-one"],
    ] {
        twins.both(words);
    }
    let large = format!("\"{}\"", "x".repeat(20_000));
    twins.both(&["track", "NS", "large", "--at", AT, "--payload", &large]).refused(&["payload", "16384"]);
}

#[test]
fn commands_on_namespaces_end_alike() {
    let twins = Twins::new(&["--remind", "10m", "--revision", "3"]);
    twins.both(&["track", "NS", "a", "--at", AT]).done();
    for words in [
        &["namespace", "show", "NS"][..],
        &["namespace", "show", "NS", "--json"],
        &["namespace", "show", "unknown-one"],
        &["namespace", "apply", "NS", "--remind", "1h,10m", "--revision", "4", "--route", "audit:cleanups"],
        &["namespace", "apply", "NS", "--remind", "10m", "--revision", "4", "--dry-run"],
        &["namespace", "apply", "NS", "--revision", "1"],
        &["namespace", "apply", "NS", "--revision", "4", "--shards", "2"],
        &["namespace", "apply", "NS", "--revision", "4", "--remind", "10m,10m"],
        &["namespace", "apply", "NS", "--revision", "4", "--drop-route", "nowhere", "--drop-route", "elsewhere"],
        &["namespace", "apply", "NS", "--revision", "4", "--drop-route", "audit"],
        &["namespace", "pause", "NS", "--reminders"],
        &["namespace", "pause", "NS", "--route", "main"],
        &["namespace", "pause", "NS", "--route", "nowhere"],
        &["namespace", "show", "NS"],
        &["show", "NS", "a"],
        &["namespace", "resume", "NS", "--route", "main"],
        &["namespace", "resume", "NS", "--rate", "unlimited"],
        &["stats", "NS"],
        &["namespace", "forget", "NS"],
        &["namespace", "forget", "NS", "--force"],
        &["namespace", "forget", "NS", "--force"],
    ] {
        twins.both(words);
    }
}

#[test]
fn work_and_what_is_parked_go_alike() {
    let twins = Twins::new(&["--history", "100"]);
    for id in ["a", "b", "c"] {
        twins.both(&["track", "NS", id, "--at-ms", "1000000000000", "--payload", r#"{"of":"test"}"#]).done();
    }
    let command = "echo no such bucket >&2; case $FOREWARN_ID in a) exit 65;; b) exit 82;; c) exit 65;; esac";
    let words = ["work", "NS", "--concurrency", "1", "--exec", command].map(OsString::from);
    for (work, name) in
        twins.commands(&words).map(Running::start).iter().zip([&twins.served.place.namespace, &twins.there])
    {
        let seen = Place { url: twins.served.place.url.clone(), namespace: name.clone() };
        seen.wait_for_stats("the parked ones", |stats| stats["dead"] == 2 && stats["review"] == 1);
        work.signal("TERM");
        assert!(work.says("stopped: ").contains("2 dead, 1 for review"));
    }
    for words in [
        &["dead", "list", "NS"][..],
        &["dead", "list", "NS", "--json"],
        &["dead", "list", "NS", "--limit", "1"],
        &["dead", "list", "NS", "--route", "nowhere"],
        &["review", "list", "NS", "--limit", "10000"],
        &["show", "NS", "a"],
        &["show", "NS", "b", "--json"],
        &["dead", "show", "NS", "00000000000000000000000000000000"],
        &["dead", "drop", "NS", "00000000000000000000000000000000"],
        &["track", "NS", "a", "--at", AT],
        &["dead", "requeue", "NS", "--all"],
        &["dead", "requeue", "NS", "--all", "--drop-void"],
        &["dead", "drop", "NS", "--all"],
        &["review", "drop", "NS", "--all", "--yes"],
    ] {
        twins.both(words);
    }
    let lines = twins.commands(&["work", "NS"].map(OsString::from)).map(|command| Running::start(command).line());
    let [here, there] = lines.map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap());
    assert_eq!((&here["subject"], &here["data"]["payload"]), (&"c".into(), &serde_json::json!({"of": "test"})));
    for field in ["id", "payload", "kind", "reason", "expires_at", "attempt"] {
        assert_eq!(here["data"][field], there["data"][field], "{field}");
    }
}

#[test]
fn a_token_opens_what_its_scope_says_and_is_shown_nowhere() {
    let served = Served::new(&["--sensitive-ids"]);
    let run = |token: &str, words: &[&str]| {
        let mut command = served.command(token);
        command.args(words.iter().map(|&word| if word == "NS" { &served.place.namespace } else { word }));
        let ended = end({
            command.env("FOREWARN_LOG", "trace");
            command
        });
        for secret in [ADMIN, WRITE, READ, "wrong-wrong-wrong"] {
            assert!(!ended.out.contains(secret) && !ended.err.contains(secret), "{ended:?}");
        }
        ended
    };
    let id = "sess-armed-Xa1uF7gKo2";
    assert_eq!(run(WRITE, &["track", "NS", id, "--in", "1h", "--json"]).code, 0);
    assert!(run(READ, &["track", "NS", id, "--in", "1h"]).failed().contains("token of scope write"));
    assert!(run(WRITE, &["namespace", "pause", "NS"]).failed().contains("this needs admin"));
    assert_eq!(run(READ, &["stats", "NS"]).code, 0);
    assert!(run(READ, &["list", "NS"]).failed().contains("scope"));
    assert!(run("wrong-wrong-wrong", &["stats", "NS"]).failed().contains("the token is not known"));
    assert!(run("", &["stats", "NS"]).failed().contains("FOREWARN_TOKEN"));
    assert_eq!(run("wrong\nwrong", &["stats", "NS"]).code, 2);

    let listed = served.run_as(ADMIN, &["list", "NS", "--json"]).json();
    assert_eq!(listed, served.place.run(&["list", "NS", "--json"]).json());
    let handle = listed["deadlines"][0]["handle"].as_str().unwrap();
    assert_eq!(served.run_as(ADMIN, &["list", "NS", "--json", "--reveal"]).json()["deadlines"][0]["id"], id);
    assert_eq!(served.run_as(ADMIN, &["show", "NS", "--handle", handle, "--reveal", "--json"]).json()["id"], id);
    assert_eq!(served.run_as(WRITE, &["track", "NS", id, "--in", "2h", "--json"]).json()["handle"], handle);
    let denied = served.run_as(WRITE, &["show", "NS", "--handle", handle]).failed();
    assert!(denied.contains("this needs admin"), "{denied}");

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, format!("{ADMIN}\n")).unwrap();
    let path = file.to_str().unwrap();
    served.run_as("wrong-wrong-wrong", &["stats", "NS", "--token-file", path]).done();
    std::fs::write(&file, "\n").unwrap();
    served.run_as(ADMIN, &["stats", "NS", "--token-file", path]).refused(&["--token-file", "empty"]);
    served.run_as(ADMIN, &["stats", "NS", "--token-file", "/nowhere/at/all"]).refused(&["/nowhere/at/all"]);
    served.running.signal("TERM");
    assert_eq!(served.running.end().code, 0);
}

#[test]
fn what_no_daemon_can_do_and_two_places_at_once_are_refused() {
    let run = |words: &[&str], env: &[(&str, &str)]| {
        let mut command = bare();
        command.args(words).envs(env.iter().copied());
        end(command)
    };
    let (server, store) = (("FOREWARN_SERVER", "http://127.0.0.1:1"), ("FOREWARN_STORE", "redis://127.0.0.1:1"));
    let flag = ["--server", "http://127.0.0.1:1"];
    for words in [&["demo"][..], &["serve"], &["config", "check"], &["store", "copy", "sqlite:a", "sqlite:b"]] {
        run(&[words, &flag].concat(), &[]).refused(&["does not work through a daemon"]);
    }
    run(&["demo"], &[server]).refused(&["demo does not work through a daemon"]);
    run(&["stats", "--store", "redis://h", "--server", "http://h"], &[]).refused(&["--store and --server", "one"]);
    run(&["stats"], &[server, store]).refused(&["FOREWARN_STORE and FOREWARN_SERVER"]);
    run(&["stats", "--token-file", "x"], &[store]).refused(&["--token-file", "--server"]);
    for url in ["redis://h", "localhost", "http://", "http://u:s3cret@h", "http://h/?a=b"] {
        let ended = run(&["stats", "--server", url], &[]);
        assert!(!ended.err.contains("s3cret"), "{ended:?}");
        ended.refused(&["server", "http://127.0.0.1:7878"]);
    }
    // A flag is stronger than the environment.
    assert!(
        run(&["stats", "--server", "http://127.0.0.1:2"], &[store, server]).failed().contains("http://127.0.0.1:2")
    );
    assert!(run(&["stats", "--store", "redis://127.0.0.1:2"], &[store, server]).failed().contains("127.0.0.1:2"));
}

#[test]
fn a_daemon_that_is_not_there_is_exit_1_in_one_line() {
    let at = |url: &str| {
        let mut command = bare();
        command.args(["show", "s", "secret-id", "--server", url]).env("FOREWARN_TOKEN", ADMIN);
        let ended = end(command);
        assert!(!ended.err.contains(ADMIN) && ended.err.lines().count() == 1, "{ended:?}");
        ended.failed()
    };
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let said = at(&nobody);
    assert!(said.contains(&nobody) && said.contains("refused"), "{said}");
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
        "SSH-2.0\r\n",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let other = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).unwrap() > 0);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let said = at(&url);
        assert!(said.contains(&url), "{said}");
        other.join().unwrap();
    }
}
