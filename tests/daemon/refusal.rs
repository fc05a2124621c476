//! Requests that cannot be carried out: each has its status, and a problem that says what to do.

use reqwest::Method;
use serde_json::json;

use crate::{
    harness::eventually,
    stage::{Daemon, Reply, Setup, defaults},
};

async fn place() -> (Daemon, String) {
    let (daemon, namespace) = Daemon::with_namespace(defaults()).await;
    (daemon, format!("/v1/namespaces/{namespace}/deadlines"))
}

#[tokio::test]
async fn a_deadline_that_cannot_be_is_refused_by_its_field() {
    let (daemon, deadlines) = place().await;
    for (body, field, words) in [
        (json!({"ttl": 0}), "ttl", "is 0"),
        (json!({"ttl": "0s"}), "ttl", "is 0"),
        (json!({"ttl": -5}), "ttl", ""),
        (json!({"ttl": "-5m"}), "ttl", ""),
        (json!({"ttl": "soon"}), "ttl", ""),
        (json!({"ttl": 1e300}), "ttl", ""),
        (json!({"ttl": u64::MAX}), "ttl", ""),
        (json!({"expires_at": "2026-12-01T10:00:00"}), "expires_at", "offset"),
        (json!({"expires_at": "tomorrow"}), "expires_at", "offset"),
        (json!({"expires_at": 1_796_119_200}), "expires_at", "seconds"),
        (json!({"expires_at": 1_796_119_200_000_000_i64}), "expires_at", ""),
        (json!({"expires_at": i64::MAX}), "expires_at", ""),
        (json!({"expires_at": 1.5}), "expires_at", ""),
        (json!({"expires_at": null, "ttl": null}), "expires_at", "give expires_at or ttl"),
        (json!({}), "expires_at", "give expires_at or ttl"),
        (json!({"ttl": "1h", "expires_at": 1_796_119_200_000_i64}), "expires_at", "one of them"),
        (json!({"ttl": "1h", "payload": 1, "payload_base64": "YQ"}), "payload", "one of them"),
        (json!({"ttl": "1h", "payload_base64": "%"}), "payload_base64", "base64"),
        (json!({"ttl": "1h", "payload": "x".repeat(20_000)}), "payload", ""),
        (json!({"tll": "1h"}), "tll", "ttl"),
        (json!({"ttl": "1h", "payload": {}, "more": 1}), "more", ""),
        (json!([1]), "body", ""),
        (json!("text"), "body", ""),
        (json!(null), "body", ""),
    ] {
        let problem = daemon.put(&format!("{deadlines}/a"), body.clone()).await.problem(422);
        assert_eq!(problem["field"], field, "{body}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{body}: {problem}");
        daemon.post(&format!("{deadlines}/a/renew"), body).await.problem(422);
    }
    daemon.get(&format!("{deadlines}/a")).await.problem(404);
}

#[tokio::test]
async fn values_in_a_row_are_no_object_wherever_one_is_meant() {
    let (daemon, deadlines) = place().await;
    let namespace = deadlines.trim_end_matches("/deadlines");
    for (path, body, field) in [
        (deadlines.clone(), json!({"action": "remove", "entries": [{"id": "a"}, ["b"]]}), "entries[1]"),
        (format!("{namespace}/claims/retry"), json!({"claims": [["token"]]}), "claims[0]"),
        (format!("{namespace}/dead"), json!({"action": "drop", "entries": [["0", "main"]]}), "entries[0]"),
    ] {
        let problem = daemon.post(&path, body).await.problem(422);
        assert_eq!(problem["field"], field, "{problem}");
    }
    for (body, field) in [(json!({"settings": [["10m"]]}), "settings"), (json!({"routes": [["main"]]}), "routes[0]")] {
        let problem = daemon.put(namespace, body).await.problem(422);
        assert_eq!(problem["field"], field, "{problem}");
    }
    assert_eq!(daemon.get(&format!("{namespace}/notices?kinds=reminder")).await.problem(422)["field"], "kinds");
}

#[tokio::test]
async fn an_expiry_that_has_passed_is_accepted_and_told() {
    let (daemon, deadlines) = place().await;
    let put = daemon.put(&format!("{deadlines}/a"), json!({"expires_at": "2020-01-01T00:00:00+01:00"})).await.json(201);
    assert_eq!((&put["result"], &put["already_expired"]), (&json!("created"), &json!(true)));
    assert_eq!(put["expires_at"], "2019-12-31T23:00:00.000Z");
}

#[tokio::test]
async fn what_conflicts_or_is_too_late_has_its_own_status() {
    let (daemon, deadlines) = place().await;
    let a = format!("{deadlines}/a");
    daemon.post(&format!("{a}/renew"), json!({"ttl": "1h"})).await.problem(404);
    daemon.post(&format!("{a}/expire"), json!({})).await.problem(404);
    daemon.delete(&a).await.problem(404);
    assert_eq!(daemon.put(&format!("{a}?mode=create"), json!({"ttl": "1h"})).await.json(201)["result"], "created");
    assert_eq!(daemon.put(&format!("{a}?mode=create"), json!({"ttl": "2h"})).await.problem(409)["code"], "exists");
    let kept = daemon.put(&format!("{a}?mode=extend_only"), json!({"ttl": "1m"})).await.json(200);
    assert_eq!(kept["result"], "kept");
    assert_eq!(daemon.put(&a, json!({"ttl": "3h"})).await.json(200)["result"], "moved");
    daemon.put(&a, json!({"expires_at": 1_000_000_000_000_i64})).await.json(200);
    assert_eq!(daemon.post(&format!("{a}/renew"), json!({"ttl": "1h"})).await.problem(410)["code"], "expired");
    daemon.put(&format!("{a}?mode=replace"), json!({"ttl": "1h"})).await.problem(422);
    // A word that is spelt wrongly must not do something else.
    let problem = daemon.put(&format!("{a}?replace=b"), json!({"ttl": "1h"})).await.problem(422);
    assert_eq!(problem["field"], "replace");
    assert!(problem["detail"].as_str().unwrap().contains("replaces"), "{problem}");
    daemon.put(&format!("{a}?replaces=a"), json!({"ttl": "1h"})).await.problem(422);
    daemon.put(&format!("{a}?replaces=b&replaces_base64=Yg"), json!({"ttl": "1h"})).await.problem(422);
}

#[tokio::test]
async fn a_batch_answers_for_each_of_its_entries() {
    let (daemon, deadlines) = place().await;
    let entries = json!([
        {"id": "a", "ttl": "1h"}, {"id": "b"}, {"ttl": "1h"}, {"id": "", "ttl": "1h"}, {"id": "c", "ttl": 0},
        {"id": "d", "id_base64": "ZA", "ttl": "1h"}, {"id": "e", "expires_at": 1_796_119_200}, {"id": "f", "ttl": 90},
    ]);
    let answer = daemon.post(&deadlines, json!({"entries": entries})).await.json(200);
    let told: Vec<(&str, &str)> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["result"].as_str().unwrap(), one["error"]["field"].as_str().unwrap_or_default()))
        .collect();
    let rejected = |field| ("rejected", field);
    let created = ("created", "");
    assert_eq!(
        told,
        [
            created,
            rejected("expires_at"),
            rejected("id"),
            rejected("id"),
            rejected("ttl"),
            rejected("id"),
            rejected("expires_at"),
            created
        ]
    );
    for (body, field) in [
        (json!({"entries": []}), "entries"),
        (json!({}), "body"),
        (json!({"action": "tracks", "entries": [{"id": "a"}]}), "action"),
        (json!({"entries": [{"id": "a", "tll": 1}]}), "entries[0].tll"),
        (json!({"entries": vec![json!({"id": "a", "ttl": 1}); 1001]}), "entries"),
    ] {
        let problem = daemon.post(&deadlines, body).await.problem(422);
        assert_eq!(problem["field"], field, "{problem}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_a_problem_too() {
    let (daemon, deadlines) = place().await;
    for path in
        ["/v1", "/v1/", "/v2/namespaces", "/v1/namespaces/", "/favicon.ico", &format!("{deadlines}/"), "/x/../y"]
    {
        let problem = daemon.get(path).await.problem(404);
        assert_eq!(problem["code"], "not_found", "{path}");
        assert!(problem["detail"].as_str().unwrap().contains("/openapi.json"));
    }
    for (method, path) in [
        (Method::DELETE, "/v1/namespaces"),
        (Method::PATCH, deadlines.as_str()),
        (Method::POST, &format!("{deadlines}/a")),
        (Method::GET, &format!("{deadlines}/a/renew")),
        (Method::PUT, "/healthz"),
        (Method::POST, "/metrics"),
    ] {
        let reply = Reply::to(daemon.request(method.clone(), path)).await;
        assert_eq!(reply.problem(405)["code"], "method_not_allowed", "{method} {path}");
        assert!(!reply.header("allow").is_empty(), "{method} {path}: {reply:?}");
    }
    daemon.get("/v1/namespaces/nobody-has-this").await.problem(404);
    daemon.put("/v1/namespaces/nobody-has-this/deadlines/a", json!({"ttl": "1h"})).await.problem(404);
    daemon.get("/v1/namespaces/Not%20A%20Name").await.problem(422);
    let claims = deadlines.replace("deadlines", "claims");
    assert_eq!(daemon.post(&claims, json!({"route": "nowhere"})).await.problem(404)["code"], "unknown_route");
    for (body, field) in [
        (json!({"limit": 501}), "limit"),
        (json!({"wait": "61s"}), "wait"),
        (json!({"lease": "0s"}), "lease"),
        (json!({"lease": "25h"}), "lease"),
        (json!({"route": "Not A Name"}), "route"),
        (json!({"limits": 5}), "limits"),
    ] {
        assert_eq!(daemon.post(&claims, body).await.problem(422)["field"], field);
    }
    let tokens = json!({"tokens": ["bm9uc2Vuc2U"]});
    assert_eq!(daemon.post(&format!("{claims}/ack"), tokens).await.problem(422)["field"], "token");
    for query in ["limti=1", "limit=0", "limit=1001", "limit=x", "cursor=x", "within=soon"] {
        let problem = daemon.get(&format!("{deadlines}?{query}")).await.problem(422);
        assert_eq!(problem["field"], query.split('=').next().unwrap(), "{problem}");
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_has_its_own_status() {
    let (daemon, deadlines) = place().await;
    let send = async |content_type: Option<&str>, body: Vec<u8>| {
        let mut request = daemon.request(Method::PUT, &format!("{deadlines}/a")).body(body);
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        Reply::to(request).await
    };
    for bytes in [&b"{"[..], b"", b"{\"ttl\": 1h}", b"\xFF", b"{\"ttl\":\"\xFF\"}", b"{} {}", &b"[".repeat(100_000)] {
        assert_eq!(send(Some("application/json"), bytes.to_vec()).await.problem(400)["code"], "malformed");
    }
    for content_type in [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("application/jsonx")]
    {
        send(content_type, b"{\"ttl\": \"1h\"}".to_vec()).await.problem(415);
    }
    for content_type in ["application/json", "APPLICATION/JSON; charset=utf-8", "application/cloudevents+json"] {
        assert!(send(Some(content_type), b"{\"ttl\": \"1h\"}".to_vec()).await.status < 300);
    }
    let problem = send(Some("application/json"), vec![b' '; 5 << 20]).await.problem(413);
    assert!(problem["detail"].as_str().unwrap().contains("limits.max_body"), "{problem}");
}

#[tokio::test]
async fn more_at_once_than_allowed_is_told_to_come_back() {
    let daemon = Setup::shared().config("[limits]\nmax_waiting = 1\nmax_requests = 1\n").start().await;
    let namespace = daemon.apply(defaults()).await;
    let claims = format!("/v1/namespaces/{namespace}/claims");
    let (client, path) = (daemon.client.clone(), claims.clone());
    let waiting = tokio::spawn(async move { client.post(&path, json!({"wait": "30s"})).await });
    eventually("the one that waits", async || {
        daemon.get("/metrics").await.text.contains("in_flight{source=\"process\"} 2").then_some(())
    })
    .await;
    // While it waits it takes no place of a request.
    eventually("its place", async || (daemon.get("/v1/time").await.status == 200).then_some(())).await;
    let refused = daemon.post(&claims, json!({"wait": "30s"})).await;
    let problem = refused.problem(429);
    assert_eq!(problem["code"], "too_many");
    assert!(problem["detail"].as_str().unwrap().contains("limits.max_waiting"), "{problem}");
    assert_eq!(refused.header("retry-after"), "1");
    daemon.track_expired(&namespace, &["a".to_owned()]).await;
    assert_eq!(waiting.await.unwrap().json(200)["claims"][0]["id"], "a");
}
