//! Two daemons on one Redis: what one leaves the other has, at once if it was told to go, after the lease if it was not.

use std::{collections::HashSet, time::Duration};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, time::Instant};

use crate::{
    harness::{Inbox, Server, within},
    raw,
    stage::{Client, Daemon, Setup},
};

/// Far longer than any test waits: what comes sooner did not come by its end.
const LONG_LEASE: &str = "10m";

async fn pair(lease: &str) -> (Daemon, Daemon, String) {
    let (one, other) = tokio::join!(Setup::shared().start(), Setup::shared().start());
    let namespace = one.apply(json!({"lease": lease})).await;
    (one, other, namespace)
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("id {i}")).collect()
}

fn id(claim: &Value) -> String {
    claim["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn each_notice_is_handed_out_once_between_them() {
    let (one, other, namespace) = pair(LONG_LEASE).await;
    let got = Inbox::new();
    let work = async |client: &Client| {
        loop {
            let claims = client.claim(&namespace, 3).await;
            if !claims.is_empty() {
                client.ack(&namespace, &claims).await;
            }
            claims.iter().for_each(|claim| got.push(id(claim)));
        }
    };
    let track = async {
        for ids in names(300).chunks(20) {
            one.track_expired(&namespace, ids).await;
        }
        got.wait_for(300).await
    };
    let workers = join_all([&one, &other, &one, &other, &one, &other].map(|daemon| work(&daemon.client)));
    tokio::select! {
        _ = workers => unreachable!(),
        _ = track => {}
    }
    let got = got.items();
    assert_eq!(got.len(), 300);
    assert_eq!(got.into_iter().collect::<HashSet<_>>(), names(300).into_iter().collect());
    let stats = one.get(&format!("/v1/namespaces/{namespace}/stats")).await.json(200);
    assert_eq!((&stats["armed"], &stats["open"]), (&json!(0), &json!(0)), "{stats}");
    assert_eq!(stats["counters"]["handed_out"], 300, "{stats}");
}

#[tokio::test]
async fn told_to_go_it_answers_those_that_wait_and_leaves_the_rest_to_the_other() {
    for round in 0..5 {
        let (one, other, namespace) = pair(LONG_LEASE).await;
        let path = format!("/v1/namespaces/{namespace}/claims");
        let waiting: Vec<_> = (0..20)
            .map(|_| {
                let (client, path) = (one.client.clone(), path.clone());
                tokio::spawn(async move { client.post(&path, json!({"wait": "60s"})).await })
            })
            .collect();
        // They wait: the daemon counts them.
        crate::harness::eventually("those that wait", async || {
            one.get("/metrics").await.text.contains("in_flight{source=\"process\"} 21").then_some(())
        })
        .await;
        let all = names(20);
        // What comes due and the signal cross.
        let signal = async { one.process.signal("TERM") };
        if round % 2 == 0 {
            tokio::join!(other.track_expired(&namespace, &all), signal);
        } else {
            tokio::join!(signal, other.track_expired(&namespace, &all));
        }
        let replies = within("those that wait", join_all(waiting)).await;
        let mut got: Vec<String> = Vec::new();
        for reply in replies {
            let claims = reply.unwrap().json(200)["claims"].as_array().unwrap().clone();
            if !claims.is_empty() {
                other.ack(&namespace, &claims).await;
            }
            got.extend(claims.iter().map(id));
        }
        while got.len() < all.len() {
            let claims = other.claim(&namespace, 20).await;
            assert!(!claims.is_empty(), "round {round}: after {} of {} nothing comes", got.len(), all.len());
            got.extend(claims.iter().map(id));
        }
        assert_eq!(got.iter().cloned().collect::<HashSet<_>>(), all.into_iter().collect());
        assert_eq!(got.len(), 20, "something came twice");
        let (status, log) = one.process.end().await;
        assert_eq!(status, 0, "{log:#?}");
    }
}

#[tokio::test]
async fn killed_what_it_had_handed_out_comes_again_after_the_lease() {
    let (one, other, namespace) = pair("2s").await;
    one.track_expired(&namespace, &names(1)).await;
    let claims = one.claim(&namespace, 1).await;
    assert_eq!((id(&claims[0]), &claims[0]["attempt"]), ("id 0".to_owned(), &json!(1)));
    one.process.signal("KILL");
    assert_eq!(one.process.end().await.0, -1);
    let body = json!({"wait": "15s"});
    let again = other.post(&format!("/v1/namespaces/{namespace}/claims"), body).await.json(200);
    assert_eq!((id(&again["claims"][0]), &again["claims"][0]["attempt"]), ("id 0".to_owned(), &json!(2)));
    // Both as the store's clock says, in one notation.
    assert!(again["now"].as_str() >= claims[0]["lease_until"].as_str(), "{again} after {claims:?}");
    let late =
        other.post(&format!("/v1/namespaces/{namespace}/claims/ack"), json!({"tokens": [claims[0]["token"]]})).await;
    assert_eq!(late.json(200)["results"][0]["result"], "stale");
}

#[tokio::test]
async fn a_client_that_goes_away_while_it_waits_loses_nothing() {
    let (one, other, namespace) = pair(LONG_LEASE).await;
    let request = raw::request("POST", &format!("/v1/namespaces/{namespace}/claims"), r#"{"wait":"60s"}"#);
    for round in 0..40 {
        let mut stream = raw::connect(one.port()).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        if round % 4 == 0 {
            // It certainly waits.
            crate::harness::eventually("the one that waits", async || {
                one.get("/metrics").await.text.contains("in_flight{source=\"process\"} 2").then_some(())
            })
            .await;
        }
        // Gone, just before something is due, or while it is claimed.
        drop(stream);
        one.track_expired(&namespace, &[format!("id {round}")]).await;
        let begun = Instant::now();
        let claims = other.claim(&namespace, 1).await;
        assert!(!claims.is_empty(), "round {round}: it does not come by itself");
        assert_eq!((id(&claims[0]), &claims[0]["attempt"]), (format!("id {round}"), &json!(1)));
        assert!(begun.elapsed() < Duration::from_secs(10));
        other.ack(&namespace, &claims).await;
    }
}

/// The store is held still, so that the client certainly goes away between the claim's request to it and its answer.
async fn goes_away_during_its_claim(is_told_to_go: bool) {
    let server = Server::start();
    let one = Setup::on(server.url()).config("log.filter = \"info,forewarn::http=debug\"\n");
    let (one, other) = tokio::join!(one.start(), Setup::on(server.url()).start());
    let namespace = one.apply(json!({})).await;
    one.track_expired(&namespace, &names(1)).await;
    let body = format!(r#"{{"lease":"{LONG_LEASE}"}}"#);
    let request = raw::request("POST", &format!("/v1/namespaces/{namespace}/claims"), &body);
    server.pause();
    let mut stream = raw::connect(one.port()).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    one.process.says("/claims\"}: forewarn::http::pass: received").await;
    drop(stream);
    one.process.says("the client went away").await;
    if is_told_to_go {
        one.process.signal("TERM");
        one.process.says("stopping").await;
    }
    server.resume();
    // The other must not come first.
    let counters = async || {
        let stats = other.get(&format!("/v1/namespaces/{namespace}/stats")).await.json(200);
        (stats["counters"]["handed_out"].clone(), stats["counters"]["lapsed"].clone())
    };
    crate::harness::eventually("the claim", async || (counters().await.0 == 1).then_some(())).await;
    let claims = other.claim(&namespace, 1).await;
    assert!(!claims.is_empty(), "it does not come by itself");
    assert_eq!((id(&claims[0]), &claims[0]["attempt"]), ("id 0".to_owned(), &json!(1)));
    // Given back, not lapsed.
    assert_eq!(counters().await, (json!(2), json!(0)));
    if is_told_to_go {
        assert_eq!(one.process.end().await.0, 0);
    }
}

#[tokio::test]
async fn a_client_that_goes_away_during_its_claim_loses_nothing() {
    goes_away_during_its_claim(false).await;
}

#[tokio::test]
async fn told_to_go_it_gives_back_what_nobody_got() {
    goes_away_during_its_claim(true).await;
}
