//! A daemon in this process, and a client of it.

use std::{net::SocketAddr, time::Duration};

use forewarn::config::{Config, Layers};
use forewarn::daemon::{Daemon, DaemonError, Ended};
use forewarn::{Forewarn, Settings};
use futures::{StreamExt as _, stream::BoxStream};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use sse_stream::{Sse, SseStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The longest any test waits for something that has to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The tokens of the stage, by their scopes.
pub(crate) const READ: &str = "reader-reader-reader";
pub(crate) const ADMIN: &str = "admin-admin-admin-admin";

/// A daemon on a new file.
pub(crate) struct Stage {
    pub(crate) forewarn: Forewarn,
    address: SocketAddr,
    stop: CancellationToken,
    running: Option<JoinHandle<Result<Ended, DaemonError>>>,
    client: Client,
    _directory: tempfile::TempDir,
}

impl Stage {
    /// Starts one with a namespace `cart` of these settings.
    pub(crate) async fn new(settings: Settings) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let directory = tempfile::tempdir().unwrap();
        let forewarn = Forewarn::open_file(&directory.path().join("forewarn.db")).await.unwrap();
        forewarn.namespace("cart").apply(settings).await.unwrap();
        let daemon = Daemon::bind(forewarn.clone(), config()).unwrap();
        let (address, stop) = (daemon.address(), CancellationToken::new());
        let running = Some(tokio::spawn(daemon.run(stop.clone().cancelled_owned())));
        Self { forewarn, address, stop, running, client: Client::new(), _directory: directory }
    }

    /// A request for the namespace, by the bearer of this token.
    pub(crate) fn request(&self, method: Method, path: &str, token: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}/v1/namespaces/cart{path}", self.address)).bearer_auth(token)
    }

    /// Asks as an administrator, and reads what has to be a good answer.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Value) -> Value {
        let response = self.request(method, path, ADMIN).json(&body).send().await.unwrap();
        assert!(response.status().is_success(), "{path}: {}", response.text().await.unwrap());
        response.json().await.unwrap_or(Value::Null)
    }

    /// Tracks an id that has expired, so that it is due at once.
    pub(crate) async fn due(&self, id: &str) {
        let body = json!({"expires_at": 1_000_000_000_000_i64});
        self.ask(Method::PUT, &format!("/deadlines/{id}"), body).await;
    }

    /// Claims one notice and answers with its claim.
    pub(crate) async fn claim(&self, route: &str) -> Value {
        let claims = self.ask(Method::POST, "/claims", json!({"route": route, "wait": "10s"})).await;
        claims["claims"][0].clone()
    }

    /// Watches.
    pub(crate) async fn watch(&self, query: &str, last: Option<&str>, token: &str) -> Watching {
        let mut request = self.request(Method::GET, &format!("/notices{query}"), token);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let events = SseStream::from_bytes_stream(response.bytes_stream());
        Watching(events.map(|event| event.unwrap()).boxed())
    }

    /// Stops the daemon; it has to end in good order.
    pub(crate) async fn stop(&mut self) {
        self.stop.cancel();
        let running = self.running.take().unwrap();
        let ended = tokio::time::timeout(PATIENCE, running).await.expect("it ends").unwrap().unwrap();
        assert_eq!(ended.cut, 0);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A stream of events.
pub(crate) struct Watching(BoxStream<'static, Sse>);

impl Watching {
    /// The next event; `None` if the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Sse> {
        tokio::time::timeout(PATIENCE, self.0.next()).await.expect("an event, or the end")
    }

    /// The next event, which is a notice: its id, and what it says.
    pub(crate) async fn notice(&mut self) -> (String, Value) {
        let event = self.next().await.expect("an event");
        (event.id.expect("an id"), serde_json::from_str(&event.data.expect("data")).unwrap())
    }
}

fn config() -> Config {
    let mut layers = Layers::default();
    let given = [
        ("FOREWARN_STORE", "sqlite:unused.db"),
        ("FOREWARN_LISTEN", "127.0.0.1:0"),
        ("READ", READ),
        ("ADMIN", ADMIN),
        ("FOREWARN_TOKEN__READER__SECRET_ENV", "READ"),
        ("FOREWARN_TOKEN__READER__SCOPES", "read"),
        ("FOREWARN_TOKEN__OPS__SECRET_ENV", "ADMIN"),
        ("FOREWARN_TOKEN__OPS__SCOPES", "admin"),
    ];
    layers.env.extend(given.map(|(name, value)| (name.into(), value.into())));
    layers.load().unwrap().config
}
