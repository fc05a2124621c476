//! `demo`: the story, its table, its remains, and no server to play on.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    harness::Server,
    process::{Running, bare, end},
};

#[test]
fn the_demo_plays_in_under_20_seconds_and_everything_is_as_expected() {
    let server = Server::start();
    let mut demo = bare();
    demo.args(["demo", "--store", &server.url()]);
    let begin = Instant::now();
    let ended = end(demo).done();
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

    assert_eq!(keys(&server), [""; 0]);
}

/// All keys on the server.
fn keys(server: &Server) -> Vec<String> {
    redis::cmd("KEYS").arg("*").query(&mut server.blocking_connection()).unwrap()
}

/// Starts a demo and waits for the name of its namespace.
fn start(server: &Server) -> (Running, String) {
    let mut command = bare();
    command.args(["demo", "--store", &server.url()]);
    let demo = Running::start(command);
    let line = demo.line();
    let name = line.strip_prefix("namespace ").and_then(|rest| rest.split(':').next()).unwrap().to_owned();
    (demo, name)
}

#[test]
fn a_demo_that_goes_another_way_is_exit_1() {
    let server = Server::start();
    let (demo, name) = start(&server);
    let mut pause = bare();
    pause.args(["namespace", "pause", &name, "--cleanups", "--store", &server.url()]);
    end(pause).done();
    let said = demo.end().failed();
    assert!(said.contains("DIFFERS") && said.contains("not what was expected"), "{said}");
    assert_eq!(keys(&server), [""; 0]);
}

#[test]
fn an_interrupted_demo_leaves_nothing() {
    let server = Server::start();
    let (demo, _) = start(&server);
    demo.line();
    demo.signal("INT");
    assert!(demo.end().failed().contains("interrupted"));
    assert_eq!(keys(&server), [""; 0]);
}

#[test]
fn with_nothing_listening_the_demo_says_how_to_get_a_redis() {
    let mut command = bare();
    command.args(["demo", "--store", "redis://127.0.0.1:1"]);
    let said = end(command).failed();
    assert!(said.contains("apt-get install redis-server") && said.contains("redis-server --port 6379"), "{said}");
}
