//! The store goes away and comes back: the daemon stays, says so, answers in time, and loses nothing.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::{
    harness::{Kind, Server, eventually, free_port},
    stage::{Daemon, Setup},
};

/// How long the store is away; `FOREWARN_OUTAGE_SECS` says otherwise.
fn outage() -> Duration {
    let seconds = std::env::var("FOREWARN_OUTAGE_SECS").map_or(20, |text| text.parse().unwrap());
    Duration::from_secs(seconds)
}

/// What has been answered is on disk.
fn lasting() -> Server {
    Server::start_with(Kind::Redis, &["--appendonly", "yes", "--appendfsync", "always"])
}

async fn turns(daemon: &Daemon, status: u16) -> Duration {
    let begun = Instant::now();
    eventually("another state", async || (daemon.get("/readyz").await.status == status).then_some(())).await;
    begun.elapsed()
}

/// Everything a client may ask of a store that is away.
async fn is_told_in_time(daemon: &Daemon, namespace: &str) {
    let base = format!("/v1/namespaces/{namespace}");
    let ask = async |what: &str| {
        let begun = Instant::now();
        let reply = match what {
            "put" => daemon.put(&format!("{base}/deadlines/x"), json!({"expires_at": 2_000_000_000_000_i64})).await,
            "batch" => daemon.post(&format!("{base}/deadlines"), json!({"entries": [{"id": "x", "ttl": "1h"}]})).await,
            "delete" => daemon.delete(&format!("{base}/deadlines/x")).await,
            "claim" => daemon.post(&format!("{base}/claims"), json!({})).await,
            "wait" => daemon.post(&format!("{base}/claims"), json!({"wait": "20s"})).await,
            path => daemon.get(&path.replace("NS", &base)).await,
        };
        assert_eq!(reply.problem(503)["code"], "store_unavailable", "{what}");
        assert!(reply.header("retry-after").parse::<u32>().unwrap() >= 1, "{what}: {reply:?}");
        assert!(begun.elapsed() < Duration::from_secs(8), "{what} took {:?}", begun.elapsed());
    };
    futures::future::join_all(
        [
            "put",
            "batch",
            "delete",
            "claim",
            "wait",
            "NS",
            "NS/deadlines",
            "NS/stats",
            "NS/dead",
            "/v1/namespaces",
            "/v1/time",
        ]
        .map(ask),
    )
    .await;
}

#[tokio::test]
async fn a_store_that_goes_away_for_a_while_costs_time_and_nothing_else() {
    let server = lasting();
    let config = "[namespace.session]\nremind = [\"10m\"]\n";
    let daemon = Setup::on(server.url()).config(config).start().await;
    assert!(turns(&daemon, 200).await < Duration::from_secs(10));
    let base = "/v1/namespaces/session";
    // They come due while it is away, one by one.
    let entries: Vec<Value> =
        (0..100).map(|i| json!({"id": format!("id {i}"), "ttl": format!("{}ms", 1500 + 50 * i)})).collect();
    daemon.post(&format!("{base}/deadlines"), json!({"entries": entries})).await.json(200);
    let waiting = {
        let (client, path) = (daemon.client.clone(), format!("{base}/claims"));
        tokio::spawn(async move { client.post(&path, json!({"wait": "60s", "route": "main"})).await })
    };
    let before = daemon.process.log.items().len();
    server.kill();
    let begun = Instant::now();
    assert!(turns(&daemon, 503).await < Duration::from_secs(10));
    // It had been waiting; it is told, or waited on.
    is_told_in_time(&daemon, "session").await;
    daemon.get("/healthz").await.is(200);
    assert!(daemon.get("/metrics").await.text.contains("forewarn_store_up{source=\"process\"} 0"));
    // Clients go on asking, as clients do.
    while begun.elapsed() < outage().saturating_sub(Duration::from_secs(2)) {
        is_told_in_time(&daemon, "session").await;
    }
    sleep_until(begun + outage()).await;
    server.restart();
    assert!(turns(&daemon, 200).await < Duration::from_secs(10));
    let lasted = begun.elapsed().as_secs();
    let mut got = Vec::new();
    let waited = waiting.await.unwrap();
    if waited.status == 200 {
        let claims = waited.json(200)["claims"].as_array().unwrap().clone();
        got.extend(claims.iter().map(|claim| claim["id"].as_str().unwrap().to_owned()));
    }
    while got.len() < 100 {
        let claims = daemon.claim("session", 50).await;
        assert!(!claims.is_empty(), "after {} of 100 nothing comes", got.len());
        daemon.ack("session", &claims).await;
        got.extend(claims.iter().map(|claim| claim["id"].as_str().unwrap().to_owned()));
    }
    got.sort_unstable();
    got.dedup();
    assert_eq!(got.len(), 100, "something came twice");
    let log = daemon.process.log.items();
    let said = u64::try_from(log.len() - before).unwrap();
    assert!(said <= lasted, "{said} lines in {lasted} s: {log:#?}");
    assert!(log.iter().any(|line| line.contains("the store does not answer")), "{log:#?}");
    assert!(log.iter().any(|line| line.contains("the store answers again")), "{log:#?}");
}

#[tokio::test]
async fn a_store_that_hangs_makes_nobody_wait_for_ever() {
    let server = Server::start();
    let daemon = Setup::on(server.url()).config("[namespace.session]\n").start().await;
    turns(&daemon, 200).await;
    server.pause();
    assert!(turns(&daemon, 503).await < Duration::from_secs(10));
    is_told_in_time(&daemon, "session").await;
    server.resume();
    assert!(turns(&daemon, 200).await < Duration::from_secs(10));
    daemon.put("/v1/namespaces/session/deadlines/a", json!({"ttl": "1h"})).await.is(201);
}

#[tokio::test]
async fn a_store_that_is_not_there_yet_is_waited_for() {
    let server = Server::start();
    server.kill();
    let starting = Setup::on(server.url()).config("[namespace.session]\n").spawn();
    let line = starting.says("nothing is served until then").await;
    assert!(line.contains("WARN") && line.contains(&server.port().to_string()), "{line}");
    server.restart();
    let daemon = starting.serves().await;
    turns(&daemon, 200).await;
    daemon.put("/v1/namespaces/session/deadlines/a", json!({"ttl": "1h"})).await.json(201);
}

#[tokio::test]
async fn told_to_go_while_it_waits_for_a_store_it_goes() {
    let starting = Setup::on(format!("redis://127.0.0.1:{}", free_port())).spawn();
    starting.says("nothing is served until then").await;
    starting.signal("TERM");
    assert_eq!(starting.end().await.0, 0);
}
