//! The servers of the tests themselves: they answer, come back, and never outlive the process that started them.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod harness;

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use forewarn::model::{Name, Settings};
use forewarn::store::redis::RedisStore;
use forewarn::store::{Change, Store as _};
use harness::{Kind, Server, eventually, servers};

/// Set for a run of this binary that is itself the subject of a test.
const INNER: &str = "FOREWARN_HARNESS_INNER";

#[tokio::test]
async fn every_server_at_hand_answers_on_its_port_and_its_socket() {
    for kind in servers() {
        let server = Server::start_with(kind, &["--maxmemory", "64mb"]);
        let mut connection = server.connection().await;
        let (_, limit): (String, String) =
            redis::cmd("CONFIG").arg("GET").arg("maxmemory").query_async(&mut connection).await.unwrap();
        assert_eq!(limit, "67108864", "{kind}");
        let by_socket = redis::Client::open(server.owner_socket_url()).unwrap();
        let pong: String = redis::cmd("PING").query(&mut by_socket.get_connection().unwrap()).unwrap();
        assert_eq!(pong, "PONG");
    }
}

#[tokio::test]
async fn forewarn_gets_nowhere_as_the_user_of_the_harness() {
    for kind in servers() {
        let server = Server::start_with(kind, &[]);
        let settings = Change::settings(Settings::default());
        let apply = async |url: &str, name: &str| {
            let store = RedisStore::connect(url).await.unwrap();
            store.configure(&Name::new("namespace", name).unwrap(), &settings).await
        };
        apply(&server.url(), "a").await.unwrap();
        let problem = apply(&server.owner_url(), "b").await.unwrap_err();
        assert!(format!("{problem:?}").contains("evalsha"), "{kind}: {problem:?}");
    }
}

#[tokio::test]
async fn a_restarted_server_has_its_port_and_what_it_persisted() {
    let server = Server::start_with(Kind::Redis, &["--appendonly", "yes"]);
    let pid = server.pid();
    let mut connection = server.connection().await;
    let () = redis::cmd("SET").arg("kept").arg("yes").query_async(&mut connection).await.unwrap();
    server.restart();
    assert_ne!(server.pid(), pid);
    let mut connection = server.connection().await;
    let kept: String = redis::cmd("GET").arg("kept").query_async(&mut connection).await.unwrap();
    assert_eq!(kept, "yes");
}

#[tokio::test]
async fn a_paused_server_is_silent_until_it_is_resumed() {
    let server = Server::start();
    let mut connection = server.connection().await;
    server.pause();
    let asked = tokio::spawn(async move { redis::cmd("PING").query_async::<String>(&mut connection).await });
    eventually("the server to stop", async || (state_of(server.pid()) == Some('T')).then_some(())).await;
    assert!(!asked.is_finished());
    server.resume();
    assert_eq!(asked.await.unwrap().unwrap(), "PONG");
}

#[tokio::test]
async fn a_server_that_is_dropped_leaves_nothing() {
    let server = Server::start();
    let (pid, socket) = (server.pid(), server.owner_socket_url().replace("redis+unix://", ""));
    assert!(std::path::Path::new(&socket).exists());
    drop(server);
    assert_eq!(state_of(pid), None);
    assert!(!std::path::Path::new(&socket).parent().unwrap().exists());
}

#[tokio::test]
async fn a_server_ends_with_a_process_that_was_killed() {
    if std::env::var_os(INNER).is_some() {
        let server = Server::shared(Kind::Redis);
        // stderr is not captured by a test run with --nocapture, and the outer test reads line by line.
        std::io::Write::write_all(&mut std::io::stderr(), format!("pid {}\n", server.pid()).as_bytes()).unwrap();
        return std::future::pending().await;
    }
    let mut inner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "a_server_ends_with_a_process_that_was_killed"])
        .env(INNER, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(inner.stderr.take().unwrap()).lines();
    let pid = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("pid ")?.parse().ok()).unwrap();
    assert!(state_of(pid).is_some());
    inner.kill().unwrap();
    inner.wait().unwrap();
    eventually("the server to end", async || state_of(pid).is_none().then_some(())).await;
}

/// The state letter the system shows for a process; `None` if it is gone.
fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.chars().next().filter(|&state| state != 'Z')
}
