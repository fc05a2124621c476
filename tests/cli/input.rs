//! Bad input: the field and the fix are named, and nothing is written.

use crate::{
    harness::{Kind, Server},
    process::{Place, bare, end},
};

/// Runs each command, which must be refused with these words, and compares the store before and after.
fn nothing_is_written(place: &Place, refused: &[(&[&str], &[&str])]) {
    let before = contents(place);
    for (words, parts) in refused {
        place.run(words).refused(parts);
    }
    assert_eq!(contents(place), before);
}

/// The keys of the namespace with what they hold.
fn contents(place: &Place) -> Vec<(String, Option<Vec<u8>>)> {
    let mut connection = Server::shared(Kind::Redis).blocking_connection();
    let pattern = format!("fw:{{{}:*", place.namespace);
    let either = format!("{{fw:{}:*", place.namespace);
    let mut keys: Vec<String> = Vec::new();
    for pattern in [pattern, either] {
        keys.extend(redis::cmd("KEYS").arg(pattern).query::<Vec<String>>(&mut connection).unwrap());
    }
    keys.sort();
    keys.into_iter()
        .map(|key| {
            let dump = redis::cmd("DUMP").arg(&key).query(&mut connection).unwrap();
            (key, dump)
        })
        .collect()
}

#[test]
fn a_deadline_that_cannot_be_is_refused_by_field() {
    let place = Place::new(&["--remind", "10m"]);
    let long = "x".repeat(1025);
    nothing_is_written(
        &place,
        &[
            (&["track", "NS", "", "--in", "1h"], &["id is empty", "1 to 1024"]),
            (&["track", "NS", &long, "--in", "1h"], &["id has 1025 bytes", "1024"]),
            (&["track", "NS", "--in", "1h"], &["ID", "--id-base64"]),
            (&["track", "NS", "--id-base64", "?", "--in", "1h"], &["id_base64 is not base64"]),
            (&["track", "NS", "a", "--id-base64", "YQ", "--in", "1h"], &["cannot be used with"]),
            (&["track", "NS", "a"], &["--in", "--at", "--at-ms"]),
            (&["track", "NS", "a", "--in", "1h", "--at-ms", "1796083200000"], &["cannot be used with"]),
            (&["track", "NS", "a", "--in", "15x"], &["unknown unit \"x\"", "ms, s, m, h or d"]),
            (&["track", "NS", "a", "--in", "15"], &["in \"15\" has no unit"]),
            (&["track", "NS", "a", "--in", "-5m"], &["in \"-5m\" is negative"]),
            (&["list", "NS", "--within", "-5m"], &["within \"-5m\" is negative"]),
            (&["track", "NS", "a", "--in", "3000y"], &["longer than"]),
            (&["track", "NS", "a", "--at", "2026-12-01T10:00:00"], &["at \"2026", "offset", "2026-12-01T10:00:00Z"]),
            (&["track", "NS", "a", "--at", "1960-12-01T10:00:00Z"], &["expires_at", "not after 1970"]),
            (&["track", "NS", "a", "--at-ms", "1796083200"], &["looks like seconds", "1796083200000"]),
            (&["track", "NS", "a", "--at-ms", "1796083200000000"], &["microseconds", "1796083200000"]),
            (&["track", "NS", "a", "--at-ms", "-5"], &["not after 1970"]),
            (&["track", "NS", "a", "--at-ms", "soon"], &["at_ms", "milliseconds"]),
            (&["track", "NS", "a", "--in", "1h", "--payload", "{user"], &["payload is not JSON", "quote"]),
            (&["track", "NS", "a", "--in", "1h", "--mode", "maybe"], &["upsert", "create", "extend_only"]),
            (&["track", "NS", "a", "--in", "1h", "--replaces", "a"], &["replaces", "old id"]),
            (&["track", "N S", "a", "--in", "1h"], &["namespace \"N S\"", "a-z"]),
            (&["renew", "NS", "a", "--in", "1h", "--payload", "{user"], &["payload is not JSON", "quote"]),
            (&["renew", "NS", "a", "--at-ms", "1796083200"], &["looks like seconds"]),
            (&["list", "NS", "--within", "soon"], &["within", "10m"]),
            (&["list", "NS", "--limit", "0"], &["--limit"]),
            (&["list", "NS", "--after", "x"], &["after is no cursor"]),
            (&["dead", "show", "NS", "abc"], &["event id \"abc\"", "32 hex digits"]),
            (&["dead", "requeue", "NS"], &["EVENT_ID"]),
            (&["dead", "drop", "NS", "--all", "d7d489ae72018e6431c0e0ca54a7d333"], &["--all"]),
        ],
    );
}

#[test]
fn a_payload_over_the_limit_is_refused_and_nothing_is_written() {
    let place = Place::new(&["--max-payload", "10"]);
    nothing_is_written(
        &place,
        &[(&["track", "NS", "a", "--in", "1h", "--payload", "\"123456789\""], &["payload", "11", "10"])],
    );
    place.run(&["track", "NS", "a", "--in", "1h", "--payload", "\"12345678\""]).done();
}

#[test]
fn settings_that_cannot_work_are_refused_by_field() {
    let place = Place::unconfigured();
    nothing_is_written(
        &place,
        &[
            (&["namespace", "apply", "NS", "--remind", "15x"], &["lead time \"15x\"", "unknown unit"]),
            (&["namespace", "apply", "NS", "--remind", "0s"], &["lead time of 0 ms"]),
            (&["namespace", "apply", "NS", "--remind", "1m", "--remind", "60s"], &["remind names 1m twice"]),
            (&["namespace", "apply", "NS", "--lease", "0s"], &["lease is 0s"]),
            (&["namespace", "apply", "NS", "--shards", "0"], &["shards is 0"]),
            (&["namespace", "apply", "NS", "--shards", "100000"], &["shards is 100000; give 1 to 1024"]),
            (&["namespace", "apply", "NS", "--late", "never"], &["crossing", "skip", "fire"]),
            (&["namespace", "apply", "NS", "--first-start", "loud"], &["speak", "silent"]),
            (&["namespace", "apply", "NS", "--on-rearm", "x"], &["supersede", "deliver"]),
            (&["namespace", "apply", "NS", "--route", "x:y"], &["NAME:reminders"]),
            (&["namespace", "apply", "NS", "--manage-keys"], &["manage_keys", "set key_backed, too"]),
            (&["namespace", "apply", "NS", "--key", "a[b"], &["keys \"a[b\"", "without its ]"]),
            (&["namespace", "apply", "NS", "--key-backed", "--recheck-interval", "9ms"], &["recheck_interval is 9ms"]),
            (&["namespace", "apply", "NS", "--dry-run", "--shards", "0"], &["shards is 0"]),
            (&["namespace", "apply", "Session"], &["namespace \"Session\"", "a-z"]),
        ],
    );
}

#[test]
fn an_unknown_namespace_is_exit_2_with_the_command_that_creates_it() {
    let place = Place::unconfigured();
    let create = format!("forewarn namespace apply {}", place.namespace);
    let fix: &[&str] = &["is not configured", &create];
    nothing_is_written(
        &place,
        &[
            (&["track", "NS", "a", "--in", "1h"], fix),
            (&["renew", "NS", "a", "--in", "1h"], fix),
            (&["remove", "NS", "a"], fix),
            (&["expire", "NS", "a"], fix),
            (&["show", "NS", "a"], fix),
            (&["list", "NS"], fix),
            (&["stats", "NS"], fix),
            (&["dead", "list", "NS"], fix),
            (&["namespace", "show", "NS"], fix),
            (&["namespace", "pause", "NS"], fix),
            (&["work", "NS"], fix),
        ],
    );
}

#[test]
fn a_bad_worker_is_exit_2() {
    let place = Place::new(&[]);
    nothing_is_written(
        &place,
        &[
            (&["work", "NS", "--concurrency", "0"], &["concurrency \"0\"", "give 1 or more"]),
            (&["work", "NS", "--stop-timeout", "x"], &["stop_timeout"]),
            (&["work", "NS", "--retry-delays", "30s,x"], &["retry_delays"]),
            (&["work", "NS", "--max-failures", "0"], &["max failures is 0"]),
            (&["work", "NS", "--exec", ""], &["--exec"]),
            (&["work", "NS", "--route", "No"], &["route \"No\""]),
        ],
    );
}

#[test]
fn control_characters_in_bad_input_do_not_reach_the_terminal_raw() {
    let mut command = bare();
    command.args(["track", "\u{1b}[31m", "a", "--in", "1h"]);
    let ended = end(command);
    assert!(ended.err.contains("\\u{1b}"), "{ended:?}");
}
