//! `demo`: the story, its table, its remains, and no server to play on.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    harness::Server,
    process::{bare, end},
};

#[test]
fn the_demo_plays_in_under_20_seconds_and_everything_is_as_expected() {
    let server = Server::start();
    let demo = || {
        let mut command = bare();
        command.args(["demo", "--store", &server.url()]);
        end(command)
    };
    let begin = Instant::now();
    let ended = demo().done();
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    for part in [
        "session:anna stays: renewed",
        "session:ben logs out",
        "session:cleo: cleanup, attempt 1: fails",
        "session:cleo: cleanup, attempt 2: succeeds",
        "everything happened as expected",
    ] {
        assert!(ended.out.contains(part), "no {part:?} in {}", ended.out);
    }
    let rows =
        |name: &str| ended.out.lines().filter(|line| line.starts_with(name) && line.contains("as expected")).count();
    assert_eq!((rows("session:anna"), rows("session:ben"), rows("session:cleo")), (2, 1, 3), "{}", ended.out);

    // Only settings are left: nothing armed, nothing pending, and a second demo adds nothing.
    let mut connection = server.blocking_connection();
    let mut keys = || -> Vec<String> {
        let mut keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
        keys.sort();
        keys
    };
    let before = keys();
    assert!(
        !before.iter().any(|key| key.ends_with(":exp") || key.ends_with(":payload") || key.ends_with(":fail")),
        "{before:?}"
    );
    demo().done();
    assert_eq!(keys(), before);
}

#[test]
fn a_demo_that_goes_another_way_is_exit_1() {
    let server = Server::start();
    let run = |words: &[&str]| {
        let mut command = bare();
        command.args(words).env("FOREWARN_STORE", server.url());
        end(command)
    };
    run(&["namespace", "apply", "forewarn-demo"]).done();
    run(&["namespace", "pause", "forewarn-demo", "--cleanups"]).done();
    let said = run(&["demo"]).failed();
    assert!(said.contains("DIFFERS") && said.contains("not what was expected"), "{said}");
    let stats = run(&["stats", "forewarn-demo", "--json"]).json();
    assert_eq!((&stats["armed"], &stats["open"]), (&0.into(), &0.into()));
}

#[test]
fn with_nothing_listening_the_demo_says_how_to_get_a_redis() {
    let mut command = bare();
    command.args(["demo", "--store", "redis://127.0.0.1:1"]);
    let said = end(command).failed();
    assert!(said.contains("apt-get install redis-server") && said.contains("redis-server --port 6379"), "{said}");
}
