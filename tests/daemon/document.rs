//! The document that the server publishes: it is held to it by a tester, and a client made from it works.

use std::path::Path;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::stage::{Daemon, Setup, defaults};

/// How many requests are made up for each operation.
const EXAMPLES: &str = "20";

/// A program of the Python packages that `make test` installs.
fn program(name: &str) -> Command {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(".test-tools/python/bin").join(name);
    assert!(path.is_file(), "{} is missing; `make test-tools` installs it", path.display());
    let mut command = Command::new(path);
    command.env("NO_PROXY", "*").env("PYTHONDONTWRITEBYTECODE", "1").kill_on_drop(true);
    command
}

/// Something of each kind, so that requests which name it get beyond `404`.
async fn furnish(daemon: &Daemon) -> Value {
    let base = "/v1/namespaces/session";
    daemon.put(base, json!({"settings": {"remind": ["10m"], "history": 100}})).await.json(201);
    daemon.track_expired("session", &["dead".to_owned(), "review".to_owned(), "due".to_owned()]).await;
    daemon.put(&format!("{base}/deadlines/armed"), json!({"ttl": "1h"})).await.json(201);
    let mut event_ids = json!({});
    for (verb, claim) in [("reject", "dead"), ("review", "reviews")].into_iter().zip(daemon.claim("session", 2).await) {
        let (verb, shelf) = verb;
        let body = json!({"claims": [{"token": claim["token"]}]});
        daemon.post(&format!("{base}/claims/{verb}"), body).await.json(200);
        event_ids[shelf] = claim["notice"]["event_id"].clone();
    }
    event_ids
}

/// What the tester is told besides the document: which namespace and notices there are. The one it may delete is another.
fn hints(event_ids: &Value) -> String {
    let mut hints = r#"
[parameters]
ns = "session"
route = "main"

[[operations]]
include-name = "DELETE /v1/namespaces/{ns}"
parameters = { ns = "another" }
"#
    .to_owned();
    for shelf in ["dead", "reviews"] {
        hints += &format!(
            "\n[[operations]]\ninclude-path-regex = \"/{shelf}/\"\nparameters = {{ event_id = {}, ns = \"session\", route = \
             \"main\" }}\n",
            event_ids[shelf]
        );
    }
    hints
}

#[tokio::test]
async fn no_made_up_request_is_answered_beyond_the_document() {
    let daemon = Setup::shared().start().await;
    let event_ids = furnish(&daemon).await;
    let directory = daemon.process.directory();
    std::fs::write(directory.join("schemathesis.toml"), hints(&event_ids)).unwrap();
    let mut tester = program("schemathesis");
    tester.arg("--config-file").arg(directory.join("schemathesis.toml"));
    tester.args(["run", &format!("{}/openapi.json", daemon.url)]);
    tester.args([
        "--phases",
        "examples,coverage,fuzzing",
        "--seed",
        "20261201",
        "--max-examples",
        EXAMPLES,
        "--no-color",
    ]);
    tester.args([
        "--workers",
        "2",
        "--continue-on-failure",
        "--request-timeout",
        "20",
        "--generation-database",
        "none",
    ]);
    // Streams do not end.
    tester.args(["--exclude-path-regex", "/(notices|wakeups)$", "--warnings", "off"]);
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
    let output = tester.args(["--checks", checks]).current_dir(directory).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("No issues found"), "{said}");
}

#[tokio::test]
async fn a_client_made_from_the_document_tracks_renews_and_removes() {
    let (daemon, namespace) = Daemon::with_namespace(defaults()).await;
    let directory = daemon.process.directory();
    let document: Value = daemon.get("/openapi.json").await.json(200);
    std::fs::write(directory.join("openapi.json"), document.to_string()).unwrap();
    let mut generator = program("openapi-python-client");
    generator.args(["generate", "--path", "openapi.json", "--output-path", "made", "--meta", "none"]);
    // No formatter is needed.
    std::fs::write(directory.join("generator.yaml"), "post_hooks: []\n").unwrap();
    let made = generator.args(["--config", "generator.yaml"]).current_dir(&directory).output().await.unwrap();
    assert!(made.status.success(), "{made:?}");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/daemon/client.py");
    let mut client = program("python");
    client.arg(script).args([&daemon.url, &namespace]).env("PYTHONPATH", &directory).current_dir(&directory);
    let output = client.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "created renewed removed 404\n");
}

#[tokio::test]
async fn the_document_names_itself_and_every_operation_once() {
    let daemon = Setup::shared().start().await;
    let document: Value = daemon.get("/openapi.json").await.json(200);
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    let mut ids = std::collections::HashSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap_or_else(|| panic!("{method} {path} has no operationId"));
            assert!(ids.insert(id.to_owned()), "{id} twice");
            assert!(operation["summary"].is_string(), "{method} {path} has no summary");
        }
    }
    assert!(ids.len() > 30, "{ids:?}");
    let page = daemon.get("/docs/").await;
    page.is(200);
    assert!(!page.text.contains("https://"), "the page needs the internet: {}", page.text);
}
