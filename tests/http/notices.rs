//! Notices as server-sent events: what is handed out to others, as it happens, and what was missed.

use forewarn::Settings;
use forewarn::model::Route;
use forewarn::store::Change;
use reqwest::Method;
use serde_json::json;

use crate::stage::{ADMIN, READ, Stage};

#[tokio::test]
async fn watchers_hear_what_others_claim_and_claim_nothing() {
    let stage = Stage::new(Settings::default()).await;
    let (mut one, mut other) = (stage.watch("", None, READ).await, stage.watch("", None, ADMIN).await);
    stage
        .ask(Method::PUT, "/deadlines/a%2Fb", json!({"expires_at": 1_000_000_000_000_i64, "payload": {"n": 1.50}}))
        .await;
    let claim = stage.claim("main").await;
    for watching in [&mut one, &mut other] {
        let (id, event) = watching.notice().await;
        assert_eq!(event["id"], claim["notice"]["event_id"]);
        assert_eq!(id, format!("{}.1.main", event["id"].as_str().unwrap()));
        assert_eq!(
            (&event["type"], &event["subject"], &event["route"]),
            (&json!("forewarn.cleanup"), &json!("a/b"), &json!("main"))
        );
        assert_eq!(event["data"]["payload"].to_string(), r#"{"n":1.5}"#);
    }
    // It is still the claimer's.
    let acked = stage.ask(Method::POST, "/claims/ack", json!({"tokens": [claim["token"]]})).await;
    assert_eq!(acked["results"][0]["result"], "settled");
}

#[tokio::test]
async fn a_repeat_is_told_with_its_attempt_and_another_id() {
    let stage = Stage::new(Settings::default()).await;
    let mut watching = stage.watch("", None, READ).await;
    stage.due("a").await;
    let claim = stage.claim("main").await;
    let failed = json!({"claims": [{"token": claim["token"], "delay": 0, "exact": true}]});
    assert_eq!(stage.ask(Method::POST, "/claims/retry", failed).await["results"][0]["result"], "retry");
    stage.claim("main").await;
    let (first, _) = watching.notice().await;
    let (second, event) = watching.notice().await;
    assert_eq!(event["data"]["attempt"], 2);
    assert_eq!((first.ends_with(".1.main"), second.ends_with(".2.main")), (true, true));
}

#[tokio::test]
async fn only_what_is_asked_for_is_told() {
    let stage = Stage::new(Settings::default().remind("10m".parse().unwrap())).await;
    let mail: Route = "mail:cleanups".parse().unwrap();
    stage.forewarn.namespace("cart").configure(&Change::add_route(mail)).await.unwrap();
    let mut reminders = stage.watch("?kind=reminder", None, READ).await;
    let mut mail = stage.watch("?route=mail", None, READ).await;
    stage.due("gone").await;
    stage.ask(Method::PUT, "/deadlines/soon", json!({"ttl": "11m"})).await;
    // From outside its lead to inside: the reminder speaks at once.
    stage.ask(Method::POST, "/deadlines/soon/renew", json!({"ttl": "5m"})).await;
    for route in ["main", "main", "mail"] {
        stage.claim(route).await;
    }
    assert_eq!(reminders.notice().await.1["subject"], "soon");
    let (_, event) = mail.notice().await;
    assert_eq!((&event["subject"], &event["route"]), (&json!("gone"), &json!("mail")));
}

#[tokio::test]
async fn who_comes_back_gets_what_was_missed() {
    let stage = Stage::new(Settings::default()).await;
    let mut watching = stage.watch("", None, READ).await;
    stage.due("a").await;
    stage.claim("main").await;
    let (last, _) = watching.notice().await;
    drop(watching);
    for id in ["b", "c"] {
        stage.due(id).await;
        stage.claim("main").await;
    }
    // By the header, as browsers do, and by the query, for those who cannot.
    let by_header = stage.watch("", Some(&last), READ).await;
    let by_query = stage.watch(&format!("?last_event_id={last}"), None, READ).await;
    stage.due("d").await;
    stage.claim("main").await;
    for mut watching in [by_header, by_query] {
        for subject in ["b", "c", "d"] {
            assert_eq!(watching.notice().await.1["subject"], subject);
        }
    }
}

#[tokio::test]
async fn what_is_not_remembered_is_told_as_a_gap() {
    let stage = Stage::new(Settings::default()).await;
    let mut watching = stage.watch("", Some("0123.1.main"), READ).await;
    assert_eq!(watching.next().await.unwrap().event.as_deref(), Some("gap"));
    stage.due("a").await;
    stage.claim("main").await;
    assert_eq!(watching.notice().await.1["subject"], "a");
}

#[tokio::test]
async fn secrets_are_told_by_their_handles_to_all_but_administrators() {
    let stage = Stage::new(Settings::default().sensitive_ids(true)).await;
    let (mut reader, mut admin) = (stage.watch("", None, READ).await, stage.watch("", None, ADMIN).await);
    stage.due("cookie-0123456789").await;
    stage.claim("main").await;
    let (_, event) = reader.notice().await;
    assert!(!event.to_string().contains("0123456789"), "{event}");
    let handle = event["data"]["handle"].as_str().unwrap();
    assert_eq!(event["subject"], handle);
    assert_eq!(admin.notice().await.1["data"]["id"], "cookie-0123456789");
    let shown = stage.request(Method::GET, &format!("/deadlines/-?handle={handle}"), READ).send().await.unwrap();
    assert_eq!(shown.status(), 200);
    assert_eq!(shown.json::<serde_json::Value>().await.unwrap()["handle"], handle);
}

#[tokio::test]
async fn a_stop_ends_streams_and_waiting_claims_at_once() {
    let mut stage = Stage::new(Settings::default()).await;
    let mut watching = stage.watch("", None, READ).await;
    let request = stage.request(Method::POST, "/claims", ADMIN).json(&json!({"wait": "60s"}));
    let waiting = tokio::spawn(request.send());
    stage.stop().await;
    assert!(watching.next().await.is_none());
    // Or it came too late to be let in.
    if let Ok(response) = waiting.await.unwrap() {
        assert_eq!(response.status(), 200);
    }
}

#[tokio::test]
async fn a_namespace_that_is_not_there_has_no_stream() {
    let stage = Stage::new(Settings::default()).await;
    stage.forewarn.namespace("cart").forget().await.unwrap();
    let response = stage.request(Method::GET, "/notices", READ).send().await.unwrap();
    assert_eq!(response.status(), 404);
    assert_eq!(response.json::<serde_json::Value>().await.unwrap()["code"], "unknown_namespace");
}

#[tokio::test]
async fn wake_ups_tell_workers_that_sleep_of_what_is_due_earlier() {
    let stage = Stage::new(Settings::default()).await;
    // The claim says until when it may sleep; what comes due before is told.
    stage.ask(Method::POST, "/claims", json!({})).await;
    let response = stage.request(Method::GET, "/wakeups", ADMIN).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let refused = stage.request(Method::GET, "/wakeups", READ).send().await.unwrap();
    assert_eq!(refused.status(), 403);
    let mut events = sse_stream::SseStream::from_bytes_stream(response.bytes_stream());
    stage.due("a").await;
    let event = tokio::time::timeout(crate::stage::PATIENCE, futures::StreamExt::next(&mut events)).await.unwrap();
    let at_ms: i64 = event.unwrap().unwrap().data.unwrap().trim().parse().unwrap();
    assert!(at_ms <= stage.forewarn.store().now().await.unwrap(), "{at_ms}: it is due already");
}
