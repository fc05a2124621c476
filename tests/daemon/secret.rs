//! Ids that are secrets are shown by their handles, and connections over TLS.

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    harness::{Kind, Server, as_forewarn, free_port},
    stage::{Client, Daemon, Setup},
    token::{secret, token},
};

const ID: &str = "cookie-Zm9yZXdhcm4-and-more";

async fn shows_handles(daemon: Daemon) {
    let admin = daemon.client.bearing(&secret("admin"));
    let (read, write) = (daemon.client.bearing(&secret("read")), daemon.client.bearing(&secret("write")));
    let namespace = admin.apply(json!({"sensitive_ids": true, "history": 100, "remind": ["10m"]})).await;
    let base = format!("/v1/namespaces/{namespace}");
    for id in [ID, "another", "a third"] {
        write.put(&format!("{base}/deadlines/{}", id.replace(' ', "%20")), json!({"ttl": "1h"})).await.json(201);
    }
    let listed = read.get(&format!("{base}/deadlines")).await.json(200);
    let of = |entry: &Value| entry["handle"].as_str().unwrap_or_else(|| panic!("no handle in {entry}")).to_owned();
    let handles: Vec<String> = listed["deadlines"].as_array().unwrap().iter().map(of).collect();
    assert!(handles.len() == 3 && listed["deadlines"][0]["id"].is_null(), "{listed}");
    // Page by page with a cursor that tells nothing, either.
    let (mut paged, mut path) = (Vec::new(), format!("{base}/deadlines?limit=1"));
    loop {
        let page = read.get(&path).await;
        assert!(!page.text.contains(ID), "{page:?}");
        let page = page.json(200);
        paged.extend(page["deadlines"].as_array().unwrap().iter().map(of));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("{base}/deadlines?limit=1&cursor={next}");
    }
    assert_eq!(paged, handles);
    // Whose is it?
    let shown = read.get(&format!("{base}/deadlines/{ID}")).await;
    assert!(!shown.text.contains(ID), "{shown:?}");
    let handle = of(&shown.json(200));
    assert!(handles.contains(&handle));
    let by_handle = format!("{base}/deadlines/-?handle={}", handle.replace('~', "%7E"));
    assert_eq!(read.get(&by_handle).await.json(200)["handle"], handle.as_str());
    assert_eq!(admin.get(&by_handle).await.json(200)["id"], ID);
    let ids: Vec<Value> =
        admin.get(&format!("{base}/deadlines")).await.json(200)["deadlines"].as_array().unwrap().clone();
    assert!(ids.iter().any(|entry| entry["id"] == ID), "{ids:?}");
    // By its handle it is renewed, ended, and looked for when it is dead.
    let verb = |verb: &str| by_handle.replace("/-?", &format!("/-/{verb}?"));
    write.post(&verb("renew"), json!({"ttl": "2h"})).await.json(200);
    write.post(&verb("expire"), json!({})).await.json(200);
    let claims = write.claim(&namespace, 10).await;
    // Who handles it is given it.
    assert_eq!(claims[0]["id"], ID);
    let failed = json!({"claims": [{"token": claims[0]["token"], "summary": format!("{ID} is not there")}]});
    write.post(&format!("{base}/claims/reject"), failed).await.json(200);
    let event_id = claims[0]["notice"]["event_id"].as_str().unwrap();
    for path in
        ["dead", "history", &format!("dead/{event_id}/main"), &format!("dead?id={ID}"), &format!("history?id={ID}")]
    {
        let reply = read.get(&format!("{base}/{path}")).await;
        reply.json(200);
        assert!(!reply.text.contains(ID) && reply.text.contains(&handle), "{path}: {reply:?}");
    }
    assert!(admin.get(&format!("{base}/dead")).await.text.contains(ID));
    let log = daemon.process.log.items().join("\n");
    assert!(!log.contains(ID), "{log}");
    assert!(!daemon.get("/metrics").await.text.contains(ID));
}

fn tokens() -> String {
    ["read", "write", "admin"].map(|scope| token(scope, scope, "") + "\n").concat() + "[log]\nfilter = \"debug\"\n"
}

#[tokio::test]
async fn ids_that_are_secrets_are_shown_to_administrators_alone_on_redis() {
    shows_handles(Setup::shared().config(&tokens()).start().await).await;
}

#[tokio::test]
async fn ids_that_are_secrets_are_shown_to_administrators_alone_on_a_file() {
    shows_handles(Setup::on_file().config(&tokens()).start().await).await;
}

/// A CA, and a certificate of its own for this machine.
const CERTIFICATES: &str = r#"set -e
key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }
key ca.key; key server.key
openssl req -x509 -new -key ca.key -subj "/CN=a CA of the tests" -days 2 -out ca.pem \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
openssl req -new -key server.key -subj /CN=localhost -out server.csr
echo subjectAltName=DNS:localhost,IP:127.0.0.1 > names
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem
"#;

/// The store over TLS, the listener over TLS before it and before a file, both by a CA of one's own.
#[tokio::test]
async fn the_listener_and_the_store_speak_tls() {
    let certificates = tempfile::tempdir().unwrap();
    let made = Command::new("sh").args(["-c", CERTIFICATES]).current_dir(&certificates).output().unwrap();
    assert!(made.status.success(), "openssl, which `make test` installs, fails: {made:?}");
    let file = |name: &str| certificates.path().join(name).display().to_string();
    let port = free_port();
    let tls = ["--port", "0", "--tls-port", &port.to_string(), "--tls-auth-clients", "no"].map(str::to_owned);
    let files = [("cert", "server.pem"), ("key", "server.key"), ("ca-cert", "ca.pem")];
    let files = files.iter().flat_map(|(option, name)| [format!("--tls-{option}-file"), file(name)]);
    let arguments: Vec<String> = tls.into_iter().chain(files).collect();
    let _server = Server::start_with(Kind::Redis, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let config = format!("[tls]\ncert_file = \"{}\"\nkey_file = \"{}\"\n", file("server.pem"), file("server.key"));
    let setup = Setup::on(as_forewarn(&format!("rediss://localhost:{port}"))).config(&config);
    let daemon = setup.variable("SSL_CERT_FILE", &file("ca.pem")).start().await;
    let on_file = Setup::on_file().config(&config).start().await;
    let ca = reqwest::Certificate::from_pem(&std::fs::read(file("ca.pem")).unwrap()).unwrap();
    for daemon in [daemon, on_file] {
        assert!(daemon.url.starts_with("https://127.0.0.1:"), "{}", daemon.url);
        let client = Client::with(&daemon.url, |builder| builder.tls_certs_only([ca.clone()]));
        let namespace = client.apply(json!({})).await;
        client.put(&format!("/v1/namespaces/{namespace}/deadlines/a"), json!({"ttl": "1h"})).await.json(201);
        // In the clear there is no answer.
        let plain = crate::raw::send(daemon.port(), crate::raw::request("GET", "/healthz", "")).await;
        assert_ne!(plain.status, 200);
    }
    let broken = format!("[tls]\ncert_file = \"{}\"\nkey_file = \"{}\"\n", file("server.pem"), file("ca.key"));
    let (status, said) = Setup::on_file().config(&broken).refused().await;
    assert!(matches!(status, 1 | 2) && said.contains("ca.key"), "{status} {said}");
}
