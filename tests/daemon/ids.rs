//! Ids of any bytes: every route takes them and gives them back as they are.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::{
    raw,
    stage::{Client, Daemon, Setup, defaults},
};

fn odd() -> Vec<Vec<u8>> {
    let mut ids: Vec<Vec<u8>> = [
        "a/b",
        "..",
        ".",
        "%2F",
        "é",
        "line\nbreak",
        "\r\n",
        "-",
        "?",
        "#",
        " ",
        "+",
        "a+b c",
        "&id_base64=YQ",
        "%",
        "\0",
        "~",
        "/",
        "//",
        "a/../b",
        "\\",
        "\"quoted\"",
        "renew",
        "-?id_base64=YQ",
        "名前",
    ]
    .map(|id| id.as_bytes().to_vec())
    .into();
    ids.extend([vec![0xFF], vec![b'a', 0xC3, b'/'], vec![b'x'; 1024], "é".repeat(512).into_bytes()]);
    ids
}

/// Each byte encoded that does not stand for itself anywhere in a URL.
fn encode(bytes: &[u8]) -> String {
    let one = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => char::from(*byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    bytes.iter().map(one).collect()
}

fn base64(id: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(id)
}

/// The id that an answer holds, whichever way.
fn id_in(form: &Value) -> Vec<u8> {
    match (form["id"].as_str(), form["id_base64"].as_str()) {
        (Some(id), None) => id.as_bytes().to_vec(),
        (None, Some(text)) => URL_SAFE_NO_PAD.decode(text).unwrap(),
        _ => panic!("not one id in {form}"),
    }
}

/// One way to name an id: what follows `deadlines`, and `?` or `&` for what follows that.
struct Way {
    path: String,
    more: char,
}

impl Way {
    fn under(&self, verb: &str) -> String {
        match self.path.split_once('?') {
            Some((path, query)) => format!("{path}{verb}?{query}"),
            None => format!("{}{verb}", self.path),
        }
    }
}

fn ways(deadlines: &str, id: &[u8]) -> Vec<Way> {
    let mut ways = vec![Way { path: format!("{deadlines}/-?id_base64={}", base64(id)), more: '&' }];
    // Clients fold these, encoded or not; the next test sends them as bytes.
    if id != b"." && id != b".." {
        ways.push(Way { path: format!("{deadlines}/{}", encode(id)), more: '?' });
    }
    ways
}

async fn lives(client: &Client, deadlines: &str, id: &[u8]) {
    for Way { path, more } in ways(deadlines, id) {
        let way = Way { path: path.clone(), more };
        assert_eq!(
            client.put(&path, json!({"ttl": "1h", "payload": {"of": "it"}})).await.json(201)["result"],
            "created"
        );
        let shown = client.get(&path).await.json(200);
        assert_eq!(id_in(&shown), id, "{shown}");
        assert_eq!(client.post(&way.under("/renew"), json!({"ttl": "2h"})).await.json(200)["result"], "renewed");
        let other = format!("{deadlines}/another");
        for (key, value) in [("replaces", encode(id)), ("replaces_base64", base64(id))] {
            if key == "replaces" && String::from_utf8(id.to_vec()).is_err() {
                continue;
            }
            let there = client.put(&format!("{other}?{key}={value}"), json!({"ttl": "1h"})).await.json(201);
            assert_eq!(there["replaced"], true, "{key}={value}");
            client.get(&path).await.problem(404);
            let back = client.put(&format!("{path}{more}replaces=another"), json!({"ttl": "1h"})).await.json(201);
            assert_eq!(back["replaced"], true);
        }
        assert_eq!(client.delete(&path).await.json(200)["result"], "removed");
        client.get(&path).await.problem(404);
    }
}

async fn ends(client: &Client, namespace: &str, id: &[u8]) {
    let base = format!("/v1/namespaces/{namespace}");
    let way = &ways(&format!("{base}/deadlines"), id)[0];
    client.put(&way.path, json!({"ttl": "1h"})).await.json(201);
    assert_eq!(client.post(&way.under("/expire"), json!({})).await.json(200)["result"], "ended");
    let claims = client.claim(namespace, 10).await;
    assert_eq!(claims.iter().map(id_in).collect::<Vec<_>>(), [id]);
    let rejected = json!({"claims": [{"token": claims[0]["token"], "summary": "cannot be"}]});
    let rejected = client.post(&format!("{base}/claims/reject"), rejected).await.json(200);
    assert_eq!(rejected["results"][0]["result"], "dead", "{rejected}");
    let mut queries = vec![format!("id_base64={}", base64(id))];
    if String::from_utf8(id.to_vec()).is_ok() {
        queries.push(format!("id={}", encode(id)));
    }
    let mut event_id = String::new();
    for query in &queries {
        let dead = client.get(&format!("{base}/dead?{query}")).await.json(200);
        assert_eq!(dead["entries"].as_array().unwrap().len(), 1, "{query}: {dead}");
        assert_eq!(id_in(&dead["entries"][0]), id);
        event_id = dead["entries"][0]["notice"]["event_id"].as_str().unwrap_or_default().to_owned();
    }
    let one = format!("{base}/dead/{event_id}/main");
    assert_eq!(id_in(&client.get(&one).await.json(200)), id);
    client.post(&format!("{one}/requeue"), json!({})).await.is(204);
    let claims = client.claim(namespace, 10).await;
    assert_eq!(claims.iter().map(id_in).collect::<Vec<_>>(), [id]);
    let again = json!({"claims": [{"token": claims[0]["token"]}]});
    client.post(&format!("{base}/claims/reject"), again).await.json(200);
    client.delete(&one).await.is(204);
    client.get(&one).await.problem(404);
    for query in &queries {
        let history = client.get(&format!("{base}/history?{query}")).await.json(200);
        let entries = history["entries"].as_array().unwrap();
        assert!(!entries.is_empty() && entries.iter().all(|entry| id_in(entry) == id), "{query}: {history}");
    }
}

async fn batches(client: &Client, namespace: &str) {
    let base = format!("/v1/namespaces/{namespace}/deadlines");
    let ids = odd();
    let entry = |id: &Vec<u8>, ttl: Option<&str>| {
        let mut entry = match std::str::from_utf8(id) {
            Ok(text) => json!({"id": text}),
            Err(_) => json!({"id_base64": base64(id)}),
        };
        if let Some(ttl) = ttl {
            entry["ttl"] = ttl.into();
        }
        entry
    };
    let batch = async |action: &str, ttl: Option<&str>, word: &str| {
        let entries: Vec<Value> = ids.iter().map(|id| entry(id, ttl)).collect();
        let answer = client.post(&base, json!({"action": action, "entries": entries})).await.json(200);
        let results = answer["results"].as_array().unwrap();
        assert_eq!(results.len(), ids.len());
        assert!(results.iter().all(|result| result["result"] == word), "{action}: {answer}");
    };
    batch("track", Some("1h"), "created").await;
    batch("renew", Some("2h"), "renewed").await;
    let (mut listed, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = client.get(&format!("{base}?limit=4{cursor}")).await.json(200);
        listed.extend(page["deadlines"].as_array().unwrap().iter().map(id_in));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={}", encode(next.as_bytes()));
    }
    assert_eq!(listed, ids.iter().cloned().collect());
    batch("remove", None, "removed").await;
    batch("track", Some("1h"), "created").await;
    batch("expire", None, "ended").await;
    batch("remove", None, "voided").await;
}

async fn round_trip(daemon: Daemon) {
    let namespace = daemon.apply(json!({"history": 1000})).await;
    for id in odd() {
        lives(&daemon, &format!("/v1/namespaces/{namespace}/deadlines"), &id).await;
        ends(&daemon, &namespace, &id).await;
    }
    batches(&daemon, &namespace).await;
}

#[tokio::test]
async fn odd_ids_go_round_every_route_on_redis() {
    round_trip(Setup::shared().start().await).await;
}

#[tokio::test]
async fn odd_ids_go_round_every_route_on_a_file() {
    round_trip(Setup::on_file().start().await).await;
}

#[tokio::test]
async fn dots_that_clients_fold_are_ids_if_they_arrive() {
    let (daemon, namespace) = Daemon::with_namespace(defaults()).await;
    for (path, id) in [(".", "."), ("%2E%2E", ".."), ("..", ".."), ("%2e", ".")] {
        let path = format!("/v1/namespaces/{namespace}/deadlines/{path}");
        let put = raw::send(daemon.port(), raw::request("PUT", &path, r#"{"ttl":"1h"}"#)).await;
        assert_eq!(put.status, 201, "{put:?}");
        let shown = raw::send(daemon.port(), raw::request("GET", &path, "")).await;
        let shown: Value = serde_json::from_str(&shown.body).unwrap();
        assert_eq!(shown["id"], id);
        assert_eq!(raw::send(daemon.port(), raw::request("DELETE", &path, "")).await.status, 200);
    }
}

#[tokio::test]
async fn an_id_that_is_none_is_refused_with_its_reason() {
    let (daemon, namespace) = Daemon::with_namespace(defaults()).await;
    let deadlines = format!("/v1/namespaces/{namespace}/deadlines");
    for (path, field) in [
        ("x".repeat(1025), "id"),
        ("-?id_base64=".to_owned(), "id"),
        ("-?id_base64=%25".to_owned(), "id_base64"),
        ("a?id_base64=YQ".to_owned(), "id_base64"),
        ("-?id_base64=YQ&handle=~abc".to_owned(), "id_base64"),
        (format!("-?id_base64={}", "A".repeat(1400)), "id"),
    ] {
        let problem = daemon.put(&format!("{deadlines}/{path}"), json!({"ttl": "1h"})).await.problem(422);
        assert_eq!(problem["field"], field, "{path}: {problem}");
    }
}
