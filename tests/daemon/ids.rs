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

/// Where notices are parked: its place in the API, what puts one there, and the answer to that.
struct Shelf {
    path: &'static str,
    verb: &'static str,
    word: &'static str,
}

const SHELVES: [Shelf; 2] =
    [Shelf { path: "dead", verb: "reject", word: "dead" }, Shelf { path: "reviews", verb: "review", word: "review" }];

impl Shelf {
    /// Claims this many notices and parks them; answers with their ids.
    async fn park(&self, client: &Client, namespace: &str, count: usize) -> Vec<Vec<u8>> {
        let mut claims = Vec::new();
        while claims.len() < count {
            claims.extend(client.claim(namespace, 100).await);
        }
        let tokens: Vec<Value> = claims.iter().map(|claim| json!({"token": claim["token"], "summary": "no"})).collect();
        let path = format!("/v1/namespaces/{namespace}/claims/{}", self.verb);
        let answer = client.post(&path, json!({"claims": tokens})).await.json(200);
        all_are(&answer, count, self.word);
        claims.iter().map(id_in).collect()
    }
}

#[track_caller]
fn all_are(answer: &Value, count: usize, word: &str) {
    let results = answer["results"].as_array().unwrap();
    assert!(results.len() == count && results.iter().all(|result| result["result"] == word), "{word}: {answer}");
}

/// An id as an entry of a body names it.
fn named(id: &[u8]) -> Value {
    match std::str::from_utf8(id) {
        Ok(text) => json!({"id": text}),
        Err(_) => json!({"id_base64": base64(id)}),
    }
}

/// The ways to ask for one id in a query.
fn queries(id: &[u8]) -> Vec<String> {
    let mut queries = vec![format!("id_base64={}", base64(id))];
    if std::str::from_utf8(id).is_ok() {
        queries.push(format!("id={}", encode(id)));
    }
    queries
}

async fn ends(client: &Client, namespace: &str, shelf: &Shelf, id: &[u8]) {
    let base = format!("/v1/namespaces/{namespace}");
    let way = &ways(&format!("{base}/deadlines"), id)[0];
    client.put(&way.path, json!({"ttl": "1h"})).await.json(201);
    assert_eq!(client.post(&way.under("/expire"), json!({})).await.json(200)["result"], "ended");
    assert_eq!(shelf.park(client, namespace, 1).await, [id]);
    let mut event_id = String::new();
    for query in queries(id) {
        let parked = client.get(&format!("{base}/{}?{query}", shelf.path)).await.json(200);
        assert_eq!(parked["entries"].as_array().unwrap().len(), 1, "{query}: {parked}");
        assert_eq!(id_in(&parked["entries"][0]), id);
        event_id = parked["entries"][0]["notice"]["event_id"].as_str().unwrap_or_default().to_owned();
    }
    let one = format!("{base}/{}/{event_id}/main", shelf.path);
    assert_eq!(id_in(&client.get(&one).await.json(200)), id);
    client.post(&format!("{one}/requeue"), json!({})).await.is(204);
    assert_eq!(shelf.park(client, namespace, 1).await, [id]);
    client.delete(&one).await.is(204);
    client.get(&one).await.problem(404);
    for query in queries(id) {
        let history = client.get(&format!("{base}/history?{query}")).await.json(200);
        let entries = history["entries"].as_array().unwrap();
        assert!(!entries.is_empty() && entries.iter().all(|entry| id_in(entry) == id), "{query}: {history}");
    }
}

/// One call for all of the odd ids.
async fn batch(client: &Client, namespace: &str, action: &str, ttl: Option<&str>, word: &str) {
    let ids = odd();
    let entry = |id: &Vec<u8>| {
        let mut entry = named(id);
        if let Some(ttl) = ttl {
            entry["ttl"] = ttl.into();
        }
        entry
    };
    let entries: Vec<Value> = ids.iter().map(entry).collect();
    let path = format!("/v1/namespaces/{namespace}/deadlines");
    let answer = client.post(&path, json!({"action": action, "entries": entries})).await.json(200);
    all_are(&answer, ids.len(), word);
}

async fn batches(client: &Client, namespace: &str) {
    let base = format!("/v1/namespaces/{namespace}/deadlines");
    batch(client, namespace, "track", Some("1h"), "created").await;
    batch(client, namespace, "renew", Some("2h"), "renewed").await;
    let (mut listed, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = client.get(&format!("{base}?limit=4{cursor}")).await.json(200);
        listed.extend(page["deadlines"].as_array().unwrap().iter().map(id_in));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={}", encode(next.as_bytes()));
    }
    assert_eq!(listed, odd().into_iter().collect());
    batch(client, namespace, "remove", None, "removed").await;
    batch(client, namespace, "track", Some("1h"), "created").await;
    batch(client, namespace, "expire", None, "ended").await;
    batch(client, namespace, "remove", None, "voided").await;
}

/// All of a shelf, page by page.
async fn parked(client: &Client, path: &str) -> Vec<Value> {
    let mut entries = Vec::new();
    loop {
        let page = client.get(&format!("{path}?limit=4&offset={}", entries.len())).await.json(200);
        let more = page["entries"].as_array().unwrap();
        if more.is_empty() {
            assert_eq!(page["total"], entries.len(), "{page}");
            return entries;
        }
        entries.extend(more.iter().cloned());
    }
}

/// What is parked goes back, or away, in batches: the notices of all odd ids, and of those of one id.
async fn parked_batches(client: &Client, namespace: &str, shelf: &Shelf) {
    let path = format!("/v1/namespaces/{namespace}/{}", shelf.path);
    let ids: BTreeSet<Vec<u8>> = odd().into_iter().collect();
    let name = |entry: &Value| json!({"event_id": entry["notice"]["event_id"], "route": entry["route"]});
    let act = async |action: &str, entries: &[Value], word: &str| {
        let entries: Vec<Value> = entries.iter().map(name).collect();
        let answer = client.post(&path, json!({"action": action, "entries": entries})).await.json(200);
        all_are(&answer, entries.len(), word);
    };
    batch(client, namespace, "track", Some("1h"), "created").await;
    batch(client, namespace, "expire", None, "ended").await;
    assert_eq!(shelf.park(client, namespace, ids.len()).await.into_iter().collect::<BTreeSet<_>>(), ids);
    let all = parked(client, &path).await;
    assert_eq!(all.iter().map(id_in).collect::<BTreeSet<_>>(), ids);
    act("requeue", &all, "requeued").await;
    assert_eq!(parked(client, &path).await, Vec::<Value>::new());
    act("requeue", &all, "unknown").await;
    assert_eq!(shelf.park(client, namespace, ids.len()).await.into_iter().collect::<BTreeSet<_>>(), ids);
    for (at, id) in ids.iter().enumerate() {
        for query in queries(id) {
            let found = client.get(&format!("{path}?{query}")).await.json(200);
            let found = found["entries"].as_array().unwrap();
            assert_eq!(found.iter().map(id_in).collect::<Vec<_>>(), std::slice::from_ref(id), "{query}");
            // Each leaves by the last of its queries, every other one for good.
            if queries(id).last() == Some(&query) {
                let (action, word) = if at % 2 == 0 { ("drop", "dropped") } else { ("requeue", "requeued") };
                act(action, found, word).await;
                act("drop", found, "unknown").await;
            }
        }
    }
    let back: BTreeSet<Vec<u8>> = ids.into_iter().skip(1).step_by(2).collect();
    assert_eq!(shelf.park(client, namespace, back.len()).await.into_iter().collect::<BTreeSet<_>>(), back);
    act("drop", &parked(client, &path).await, "dropped").await;
}

async fn round_trip(daemon: Daemon) {
    let namespace = daemon.apply(json!({"history": 1000})).await;
    for id in odd() {
        lives(&daemon, &format!("/v1/namespaces/{namespace}/deadlines"), &id).await;
        for shelf in &SHELVES {
            ends(&daemon, &namespace, shelf, &id).await;
        }
    }
    batches(&daemon, &namespace).await;
    for shelf in &SHELVES {
        parked_batches(&daemon, &namespace, shelf).await;
    }
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
