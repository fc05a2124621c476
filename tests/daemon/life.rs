//! From its start to its end: what it says of itself, whom it tells, how it stops.

use std::{net::TcpListener, os::unix::net::UnixDatagram, time::Duration};

use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, time::Instant};

use crate::{
    harness::{Inbox, within},
    raw,
    stage::{Daemon, Setup, defaults},
};

#[tokio::test]
async fn its_start_says_what_it_is_and_where() {
    let daemon = Setup::on_file().config("[namespace.session]\n").start().await;
    let log = daemon.process.log.items();
    let line = log.iter().find(|line| line.contains("forewarn serves")).unwrap();
    for part in [
        "INFO",
        &format!("version=\"{}\"", env!("CARGO_PKG_VERSION")),
        "url=\"http://127.0.0.1:",
        "store=\"sqlite:",
        "namespaces=",
        "tokens=0",
        "forewarn.toml",
    ] {
        assert!(line.contains(part), "no {part} in {line}");
    }
    let json = Setup::on_file().config("[log]\nformat = \"json\"\n").spawn();
    let line = json.says("forewarn serves").await;
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["message"], "forewarn serves");
    assert_eq!((&line["level"], &line["version"]), (&json!("INFO"), &json!(env!("CARGO_PKG_VERSION"))));
}

#[tokio::test]
async fn the_service_manager_hears_of_its_start_and_its_end() {
    let setup = Setup::on_file();
    let path = setup.directory().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let heard = std::sync::Arc::new(Inbox::new());
    let told = std::sync::Arc::clone(&heard);
    std::thread::spawn(move || {
        let mut datagram = [0; 4096];
        while let Ok(length) = manager.recv(&mut datagram) {
            told.push(String::from_utf8(datagram[..length].to_vec()).unwrap());
        }
    });
    let setup = setup.variable("NOTIFY_SOCKET", path.to_str().unwrap()).variable("WATCHDOG_USEC", "400000");
    let daemon = setup.start().await;
    let says = async |word: &str| {
        heard.wait_until(word, |told| told.iter().any(|told| told.lines().any(|line| line == word))).await;
    };
    says("READY=1").await;
    says("WATCHDOG=1").await;
    daemon.get("/healthz").await.is(200);
    daemon.process.signal("TERM");
    says("STOPPING=1").await;
    assert_eq!(daemon.process.end().await.0, 0);
    let told = heard.items();
    let place = |word: &str| told.iter().position(|told| told.contains(word)).unwrap();
    assert!(place("READY=1") < place("STOPPING=1"), "{told:?}");
}

/// A request whose head has arrived and whose body has not.
async fn begin_slowly(daemon: &Daemon, path: &str) -> tokio::net::TcpStream {
    let mut stream = raw::connect(daemon.port()).await;
    let head = format!(
        "PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    crate::harness::eventually("the request", async || {
        daemon.get("/metrics").await.text.contains("in_flight{source=\"process\"} 2").then_some(())
    })
    .await;
    stream
}

#[tokio::test]
async fn told_to_go_it_finishes_what_it_has_begun() {
    let (daemon, namespace) = Daemon::with_namespace(defaults()).await;
    for signal in ["TERM", "INT"] {
        let daemon = if signal == "TERM" { &daemon } else { &Setup::shared().start().await };
        let mut stream = begin_slowly(daemon, &format!("/v1/namespaces/{namespace}/deadlines/{signal}")).await;
        daemon.process.signal(signal);
        daemon.process.says("stopping").await;
        // Nobody new is served.
        let refused = async || match tokio::net::TcpStream::connect(("127.0.0.1", daemon.port())).await {
            Ok(_) => None,
            Err(_) => Some(()),
        };
        crate::harness::eventually("the listener to close", refused).await;
        stream.write_all(b"{\"ttl\":\"1h\"}").await.unwrap();
        let answer = raw::read(&mut stream).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    let (status, log) = daemon.process.end().await;
    assert_eq!(status, 0, "{log:#?}");
    assert!(log.last().unwrap().contains("forewarn has stopped"), "{log:#?}");
}

#[tokio::test]
async fn what_takes_longer_than_a_stop_waits_is_cut() {
    let daemon = Setup::shared().words(&["--stop-timeout", "500ms"]).start().await;
    let namespace = daemon.apply(defaults()).await;
    let _stream = begin_slowly(&daemon, &format!("/v1/namespaces/{namespace}/deadlines/a")).await;
    daemon.process.signal("TERM");
    let begun = Instant::now();
    let (status, log) = daemon.process.end().await;
    assert_eq!(status, 0, "{log:#?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(log.last().unwrap().contains("cut=1"), "{log:#?}");
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let (daemon, namespace) = Daemon::with_namespace(defaults()).await;
    let _stream = begin_slowly(&daemon, &format!("/v1/namespaces/{namespace}/deadlines/a")).await;
    daemon.process.signal("TERM");
    daemon.process.says("stopping").await;
    daemon.process.signal("INT");
    let (status, log) = daemon.process.end().await;
    assert_eq!(status, 1, "{log:#?}");
    assert!(log.last().unwrap().contains("at once"), "{log:#?}");
}

#[tokio::test]
async fn those_that_wait_are_answered_when_it_goes() {
    let (daemon, namespace) = Daemon::with_namespace(defaults()).await;
    let (client, path) = (daemon.client.clone(), format!("/v1/namespaces/{namespace}/claims"));
    let waiting = tokio::spawn(async move { client.post(&path, json!({"wait": "60s"})).await });
    crate::harness::eventually("the request", async || {
        daemon.get("/metrics").await.text.contains("in_flight{source=\"process\"} 2").then_some(())
    })
    .await;
    let mut stream =
        daemon.request(reqwest::Method::GET, &format!("/v1/namespaces/{namespace}/notices")).send().await.unwrap();
    let begun = Instant::now();
    daemon.process.signal("TERM");
    assert_eq!(waiting.await.unwrap().json(200)["claims"], json!([]));
    within("the end of the stream", async { while let Ok(Some(_)) = stream.chunk().await {} }).await;
    assert_eq!(daemon.process.end().await.0, 0);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_place_that_is_taken_is_a_clear_error() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let (status, said) = Setup::on_file().listen(listen.as_str()).refused().await;
    assert_eq!(status, 1, "{said}");
    assert!(said.contains(&listen) && said.contains("in use"), "{said}");
    let (status, said) = Setup::on_file().config("[namespace.session]\nlaese = \"5s\"\n").refused().await;
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("laese") && said.contains("lease"), "{said}");
    let (status, said) = Setup::on("http://127.0.0.1:1").refused().await;
    assert_eq!(status, 2, "{said}");
}
