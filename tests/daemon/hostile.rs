//! Clients that mean harm or are broken: bounded in time, in number and in memory.

use std::time::Duration;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::Instant,
};

use crate::{
    harness::{eventually, within},
    raw,
    stage::{Setup, defaults},
};

const QUICK: &str =
    "[limits]\nheader_timeout = \"1s\"\nrequest_timeout = \"1s\"\nmax_body = 4096\nmax_connections = 8\n";

#[tokio::test]
async fn a_head_that_comes_slowly_is_cut_off() {
    let daemon = Setup::shared().config(QUICK).start().await;
    for begin in ["", "GET /health", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "] {
        let mut stream = raw::connect(daemon.port()).await;
        stream.write_all(begin.as_bytes()).await.unwrap();
        let begun = Instant::now();
        // A letter now and then makes no difference; each of them may follow what was begun.
        let (mut reading, mut writing) = stream.into_split();
        let drip = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(Duration::from_millis(100));
            loop {
                ticks.tick().await;
                let letter: &[u8] = if begin.is_empty() { b"" } else { b"x" };
                if writing.write_all(letter).await.is_err() {
                    break;
                }
            }
        });
        let mut answer = Vec::new();
        within("the connection to be cut", reading.read_to_end(&mut answer)).await.ok();
        assert!(begun.elapsed() < Duration::from_secs(5), "{begin:?} was cut after {:?}", begun.elapsed());
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{begin:?}: {answer}");
        drip.abort();
    }
    daemon.get("/healthz").await.is(200);
}

#[tokio::test]
async fn a_body_that_comes_slowly_is_given_up() {
    let daemon = Setup::shared().config(QUICK).start().await;
    let namespace = daemon.apply(defaults()).await;
    let mut stream = raw::connect(daemon.port()).await;
    let head = format!(
        "PUT /v1/namespaces/{namespace}/deadlines/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = raw::read(&mut stream).await;
    assert_eq!(answer.status, 408, "{answer:?}");
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert!(answer.body.contains("too_slow"), "{answer:?}");
}

#[tokio::test]
async fn heads_and_bodies_have_an_end() {
    let daemon = Setup::shared().config(QUICK).start().await;
    let namespace = daemon.apply(defaults()).await;
    let path = format!("/v1/namespaces/{namespace}/deadlines/a");
    let port = daemon.port();
    let long = "x".repeat(40_000);
    let header = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: {long}\r\nConnection: close\r\n\r\n");
    assert_eq!(raw::send(port, header).await.status, 431);
    let many: String = (0..500).map(|i| format!("X-{i}: y\r\n")).collect();
    let many = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{many}Connection: close\r\n\r\n");
    assert_eq!(raw::send(port, many).await.status, 431);
    let line = format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(matches!(raw::send(port, line).await.status, 414 | 431));
    let told = format!(
        "PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\
         Connection: close\r\n\r\n"
    );
    assert_eq!(raw::send(port, told).await.status, 413);
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
    let untold = format!(
        "PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\
         Connection: close\r\n\r\n{chunk}{chunk}0\r\n\r\n"
    );
    assert_eq!(raw::send(port, untold).await.status, 413);
    let cut = format!(
        "PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\
         Connection: close\r\n\r\nnonsense\r\n"
    );
    assert_eq!(raw::send(port, cut).await.status, 400);
    for nonsense in
        ["\r\n\r\n\r\n", "GET\r\n\r\n", "\0\0\0\0", "GET / HTTP/9.9\r\n\r\n", "GET /\u{7f} HTTP/1.1\r\n\r\n"]
    {
        let answer = raw::send(port, format!("{nonsense}\r\n\r\n")).await;
        assert!(matches!(answer.status, 0 | 400 | 505), "{nonsense:?}: {answer:?}");
    }
    daemon.get("/healthz").await.is(200);
}

#[tokio::test]
async fn one_connection_too_many_is_closed_and_the_next_is_not() {
    let daemon =
        Setup::shared().config(&QUICK.replace("header_timeout = \"1s\"", "header_timeout = \"30s\"")).start().await;
    let mut open = Vec::new();
    for _ in 0..9 {
        open.push(raw::connect(daemon.port()).await);
    }
    // Not always the last: they are let in side by side.
    let ends = open.iter_mut().map(|stream| Box::pin(raw::read(stream)));
    let (refused, ..) = futures::future::select_all(ends).await;
    assert_eq!(refused.status, 0);
    open.clear();
    let healthz = raw::request("GET", "/healthz", "");
    eventually("a place", async || (raw::send(daemon.port(), &healthz).await.status == 200).then_some(())).await;
}

/// Each kind of request that is refused, in turn.
#[tokio::test]
async fn ten_thousand_hostile_requests_leave_no_memory_behind() {
    let daemon = Setup::shared().config("[limits]\nmax_body = 4096\n").start().await;
    let namespace = daemon.apply(defaults()).await;
    let port = daemon.port();
    let attack = async |count: usize, round: usize| {
        let attacker = async |from: usize| {
            for i in (from..count).step_by(8) {
                let path = format!("/v1/namespaces/{namespace}/deadlines/{round}-{i}");
                let request = match i % 8 {
                    0 => format!("GET /nothing/{round}/{i} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
                    1 => raw::request("PUT", &path, "{"),
                    2 => raw::request("PUT", &path, &"x".repeat(5000)),
                    3 => format!("METHOD{i} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
                    4 => raw::request("POST", &format!("/v1/namespaces/{round}-{i}/claims"), r#"{"wait":"1ms"}"#),
                    5 => format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "y".repeat(20_000)),
                    6 => format!("PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"),
                    _ => raw::request("DELETE", &path, ""),
                };
                let mut stream = raw::connect(port).await;
                stream.write_all(request.as_bytes()).await.ok();
                if i % 8 == 6 {
                    // Gone in the middle of its request.
                    continue;
                }
                assert!(matches!(raw::read(&mut stream).await.status, 0 | 400..500), "{request}");
            }
        };
        futures::future::join_all((0..8).map(attacker)).await;
    };
    attack(2_000, 0).await;
    let before = daemon.process.kib("VmRSS");
    attack(10_000, 1).await;
    let after = daemon.process.kib("VmRSS");
    assert!(after < before + 4096, "{before} KiB before, {after} KiB after");
    daemon.put(&format!("/v1/namespaces/{namespace}/deadlines/a"), json!({"ttl": "1h"})).await.json(201);
}
