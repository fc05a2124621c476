//! Passwords in store URLs: never in output, logs, errors or process listings.

use crate::{
    harness::{Kind, PASSWORD as SECRET, Server},
    process::{Ended, Place, Running, bare, end},
};

#[track_caller]
fn keeps_it(ended: &Ended) {
    assert!(!ended.out.contains(SECRET) && !ended.err.contains(SECRET), "{ended:?}");
}

#[test]
fn no_command_shows_the_password_whatever_its_log_level() {
    let server = Server::start();
    let url = server.url();
    assert!(url.contains(SECRET));
    for words in [
        &["namespace", "apply", "s", "--remind", "10m"][..],
        &["track", "s", "a", "--in", "1h"],
        &["show", "s", "a"],
        &["stats", "--json"],
        &["namespace", "show", "s", "--json"],
        &["track", "s", "a", "--in", "x"],
        &["show", "unknown", "a"],
        &["track", "--help"],
    ] {
        for by_flag in [false, true] {
            let mut command = bare();
            command.args(words).env("FOREWARN_LOG", "trace");
            if by_flag {
                command.args(["--store", &url])
            } else {
                command.env("FOREWARN_STORE", &url)
            };
            let ended = end(command);
            keeps_it(&ended);
            assert!(ended.code != 1, "{words:?}: {ended:?}");
        }
    }
}

#[test]
fn no_error_shows_the_password() {
    let port = Server::shared(Kind::Redis).port();
    for (url, code) in [
        (format!("redis://forewarn:{SECRET}x@127.0.0.1:{port}"), 1),
        (format!("redis://:{SECRET}x@127.0.0.1:{port}"), 1),
        (format!("redis://user:{SECRET}@127.0.0.1:{port}"), 1),
        (format!("redis://:{SECRET}@127.0.0.1:1"), 1),
        (format!("redis://:{SECRET}@127.0.0.1:99999"), 2),
        (format!("redis://:{SECRET}@127.0.0.1/db"), 2),
        (format!("redis://:{SECRET}@127.0.0.1:{port}/0?prefix=NO"), 2),
        (format!("redis://:{SECRET}@"), 2),
        (format!("http://:{SECRET}@127.0.0.1"), 2),
        (SECRET.to_owned(), 2),
    ] {
        for words in [&["stats"][..], &["demo"], &["work", "s"]] {
            let mut command = bare();
            command.args(words).env("FOREWARN_STORE", &url).env("FOREWARN_LOG", "trace");
            let ended = end(command);
            keeps_it(&ended);
            assert_eq!(ended.code, code, "{url} {words:?}: {ended:?}");
        }
    }
}

#[test]
fn a_store_given_by_environment_is_in_no_process_listing() {
    let place = Place::new(&[]);
    let mut command = place.command();
    command.args(["work", &place.namespace, "--exec", "tr '\\0' ' ' < /proc/$$/cmdline >&2; echo . >&2"]);
    let work = Running::start(command);
    work.says("working on");
    let listing = std::fs::read_to_string(format!("/proc/{}/cmdline", work.pid())).unwrap();
    assert!(listing.contains("work") && !listing.contains(SECRET), "{listing}");
    place.track_expired("a");
    let child = work.says("sh -c");
    assert!(!child.contains(SECRET), "{child}");
    work.signal("TERM");
    keeps_it(&work.end());
}
