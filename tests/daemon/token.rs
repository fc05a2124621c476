//! Who may do what: tokens with scopes and namespaces, addresses that others can reach, names of this machine.

use reqwest::Method;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::{
    raw,
    stage::{Client, Daemon, Reply, Setup},
};

/// A secret that is long enough for a token, by its short name.
pub(crate) fn secret(name: &str) -> String {
    format!("secret-of-{name}-0123456789")
}

/// A token of the configuration.
pub(crate) fn token(name: &str, scope: &str, more: &str) -> String {
    let hash: String = Sha256::digest(secret(name)).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[token.{name}]\nhash = \"sha256:{hash}\"\nscopes = [\"{scope}\"]\n{more}\n")
}

fn config() -> String {
    ["[namespace.session]\n[namespace.upload]\n".to_owned()]
        .into_iter()
        .chain(["read", "write", "admin"].map(|scope| token(scope, scope, "")))
        .chain([
            token("uploads", "write", "namespaces = [\"upload\"]"),
            token("ruler", "admin", "namespaces = [\"upload\"]"),
        ])
        .collect()
}

fn by(daemon: &Daemon, name: &str) -> Client {
    daemon.client.bearing(&secret(name))
}

#[tokio::test]
async fn a_token_is_needed_and_does_what_its_scope_says() {
    let daemon = Setup::shared().config(&config()).start().await;
    let a = "/v1/namespaces/session/deadlines/a";
    let paths = [
        (Method::GET, "/v1/namespaces"),
        (Method::GET, a),
        (Method::PUT, a),
        (Method::POST, "/v1/namespaces/session/claims"),
        (Method::GET, "/v1/time"),
        (Method::GET, "/v1/namespaces/session/notices"),
    ];
    for (method, path) in paths {
        for request in [
            daemon.request(method.clone(), path),
            daemon.request(method.clone(), path).bearer_auth("wrong"),
            daemon.request(method.clone(), path).bearer_auth(""),
            daemon.request(method.clone(), path).basic_auth("admin", Some(secret("admin"))),
            daemon.request(method.clone(), path).header("authorization", secret("admin")),
            daemon.request(method.clone(), path).header("authorization", vec![0xFF, 0xFE]),
        ] {
            let reply = Reply::to(request).await;
            assert_eq!(reply.problem(401)["code"], "unauthenticated", "{method} {path}");
            assert!(reply.header("www-authenticate").starts_with("Bearer"), "{reply:?}");
            assert!(!reply.text.contains("0123456789"), "{reply:?}");
        }
    }
    let body = json!({"ttl": "1h"});
    assert_eq!(by(&daemon, "read").put(a, body.clone()).await.problem(403)["code"], "forbidden");
    by(&daemon, "write").put(a, body.clone()).await.json(201);
    by(&daemon, "read").get(a).await.json(200);
    for client in ["read", "write"] {
        for (method, path) in
            [(Method::PUT, ""), (Method::DELETE, ""), (Method::POST, "/pause"), (Method::POST, "/resume")]
        {
            let path = format!("/v1/namespaces/session{path}");
            let reply = Reply::to(by(&daemon, client).request(method, &path).json(&json!({}))).await;
            assert!(reply.problem(403)["detail"].as_str().unwrap().contains("admin"));
        }
    }
    by(&daemon, "admin").post("/v1/namespaces/session/pause", json!({})).await.is(204);
    by(&daemon, "admin").post("/v1/namespaces/session/resume", json!({})).await.is(204);
    by(&daemon, "read").post("/v1/namespaces/session/claims", json!({})).await.problem(403);
    by(&daemon, "admin").delete(a).await.json(200);
}

#[tokio::test]
async fn a_token_of_some_namespaces_sees_no_others() {
    let daemon = Setup::shared().config(&config()).start().await;
    for name in ["uploads", "ruler"] {
        let client = by(&daemon, name);
        let list = client.get("/v1/namespaces").await.json(200);
        let names: Vec<&str> =
            list["namespaces"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["upload"]);
        let a = format!("/v1/namespaces/upload/deadlines/{name}");
        client.put(&a, json!({"ttl": "1h"})).await.json(201);
        client.delete(&a).await.json(200);
        for path in ["", "/deadlines", "/deadlines/a", "/stats", "/dead", "/history", "/notices"] {
            client.get(&format!("/v1/namespaces/session{path}")).await.problem(403);
        }
        client.put("/v1/namespaces/session/deadlines/a", json!({"ttl": "1h"})).await.problem(403);
        client.post("/v1/namespaces/session/claims", json!({})).await.problem(403);
    }
    by(&daemon, "ruler").post("/v1/namespaces/upload/pause", json!({})).await.is(204);
    by(&daemon, "ruler").post("/v1/namespaces/upload/resume", json!({})).await.is(204);
    by(&daemon, "ruler").post("/v1/namespaces/session/pause", json!({})).await.problem(403);
}

#[tokio::test]
async fn an_address_that_others_reach_needs_tokens() {
    let (status, said) = Setup::on_file().listen("0.0.0.0:0").refused().await;
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("insecure") && said.contains("token"), "{said}");
    let open = Setup::on_file().listen("0.0.0.0:0").words(&["--insecure"]).start().await;
    let client = Client::to(&format!("http://127.0.0.1:{}", open.port()));
    client.get("/v1/namespaces").await.json(200);
    // Whoever is asked for by another name is answered, too: the operator has said that it may be.
    let foreign = client.request(Method::GET, "/v1/namespaces").header("host", "forewarn.example:80");
    Reply::to(foreign).await.is(200);
}

#[tokio::test]
async fn where_others_reach_it_its_figures_need_a_token_and_its_life_does_not() {
    let daemon = Setup::on_file().listen("0.0.0.0:0").config(&token("read", "read", "")).start().await;
    let client = Client::to(&format!("http://127.0.0.1:{}", daemon.port()));
    for path in ["/metrics", "/docs/", "/openapi.json", "/v1/namespaces"] {
        client.get(path).await.problem(401);
        client.bearing(&secret("read")).get(path).await.is(200);
    }
    client.get("/healthz").await.is(200);
    crate::harness::eventually("ready", async || (client.get("/readyz").await.status == 200).then_some(())).await;
    let loopback = Setup::on_file().config(&token("read", "read", "")).start().await;
    for path in ["/metrics", "/docs/", "/openapi.json", "/healthz"] {
        loopback.get(path).await.is(200);
    }
    loopback.get("/v1/namespaces").await.problem(401);
}

#[tokio::test]
async fn without_tokens_only_names_of_this_machine_are_answered() {
    let daemon = Setup::on_file().start().await;
    for path in ["/v1/namespaces", "/metrics", "/openapi.json", "/docs/"] {
        for host in ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            assert_eq!(raw::send(daemon.port(), request).await.status, 403, "{host:?} {path}");
        }
        for host in ["localhost", "127.0.0.1:1", "[::1]:80"] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            assert_eq!(raw::send(daemon.port(), request).await.status, 200, "{host:?} {path}");
        }
    }
}

#[tokio::test]
async fn a_token_is_changed_without_a_restart() {
    let daemon = Setup::on_file().config(&token("old", "admin", "")).start().await;
    by(&daemon, "old").get("/v1/namespaces").await.json(200);
    daemon.process.edit(&(token("old", "admin", "") + &token("new", "admin", "")));
    daemon.process.signal("HUP");
    daemon.process.says("read again").await;
    crate::harness::eventually("the new token", async || {
        (by(&daemon, "new").get("/v1/namespaces").await.status == 200).then_some(())
    })
    .await;
    by(&daemon, "old").get("/v1/namespaces").await.json(200);
    daemon.process.edit(&token("new", "admin", ""));
    daemon.process.signal("HUP");
    crate::harness::eventually("the end of the old one", async || {
        (by(&daemon, "old").get("/v1/namespaces").await.status == 401).then_some(())
    })
    .await;
    by(&daemon, "new").get("/v1/namespaces").await.json(200);
    let log = daemon.process.log.items().join("\n");
    assert!(!log.contains(&secret("old")) && !log.contains(&secret("new")), "{log}");
}
