//! A daemon beside the test, and a client of its API.

use std::{
    ops::Deref,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::harness::{Inbox, Kind, Server, namespace, signal, within};

/// How a daemon is to be started.
pub(crate) struct Setup {
    directory: tempfile::TempDir,
    store: String,
    listen: String,
    words: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Setup {
    /// On this store, on a free port of the loopback address, with an empty configuration.
    pub(crate) fn on(store: impl Into<String>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let setup = Self {
            directory,
            store: store.into(),
            listen: "127.0.0.1:0".to_owned(),
            words: Vec::new(),
            environment: Vec::new(),
        };
        setup.config("")
    }

    /// On the Redis that all tests share.
    pub(crate) fn shared() -> Self {
        Self::on(Server::shared(Kind::Redis).url())
    }

    /// On a file of its own.
    pub(crate) fn on_file() -> Self {
        let setup = Self::on("");
        let store = format!("sqlite:{}", setup.directory.path().join("store.db").display());
        Self { store, ..setup }
    }

    /// With this in its configuration file.
    pub(crate) fn config(self, text: &str) -> Self {
        std::fs::write(self.file(), text).unwrap();
        self
    }

    /// Listening there.
    pub(crate) fn listen(self, listen: impl Into<String>) -> Self {
        Self { listen: listen.into(), ..self }
    }

    /// With further words on its command line.
    pub(crate) fn words(mut self, words: &[&str]) -> Self {
        self.words.extend(words.iter().map(|&word| word.to_owned()));
        self
    }

    /// With a variable in its environment.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Its directory, gone when the daemon is.
    pub(crate) fn directory(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("forewarn.toml")
    }

    /// The command, with nothing of the tester's own environment in it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forewarn"));
        command.env_clear().env("HOME", "/nonexistent").env("NO_PROXY", "*");
        command.args(["serve", "--store", &self.store, "--listen", &self.listen, "--config"]).arg(self.file());
        command.args(&self.words).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Starts it.
    pub(crate) fn spawn(self) -> Process {
        let mut child = self.command().spawn().unwrap();
        let log = Arc::new(Inbox::new());
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let heard = Arc::clone(&log);
        let reader = tokio::spawn(async move {
            while let Some(line) = lines.next_line().await.unwrap() {
                heard.push(line);
            }
        });
        Process { child, log, reader, seen: AtomicUsize::new(0), setup: self }
    }

    /// Starts it, and waits until it serves.
    pub(crate) async fn start(self) -> Daemon {
        self.spawn().serves().await
    }

    /// Starts one that must not serve: its exit status, and what it says.
    pub(crate) async fn refused(self) -> (i32, String) {
        let (status, log) = self.spawn().end().await;
        (status, log.join("\n"))
    }
}

/// A daemon's process. Dropped, it is killed.
pub(crate) struct Process {
    child: Child,
    /// Each line of its log so far.
    pub(crate) log: Arc<Inbox<String>>,
    reader: tokio::task::JoinHandle<()>,
    seen: AtomicUsize,
    setup: Setup,
}

impl Process {
    /// Waits until it serves.
    pub(crate) async fn serves(self) -> Daemon {
        let line = self.says("forewarn serves").await;
        let url = line.split("url=\"").nth(1).and_then(|rest| rest.split('"').next());
        let client = Client::to(url.unwrap_or_else(|| panic!("no URL in {line}")));
        Daemon { process: self, client }
    }

    /// Waits for a line of the log that contains this, after those already waited for.
    pub(crate) async fn says(&self, part: &str) -> String {
        let from = self.seen.load(Ordering::Relaxed);
        let place = |lines: &[String]| Some(lines.iter().skip(from).position(|line| line.contains(part))? + from);
        let lines = self.log.wait_until(part, |lines| place(lines).is_some()).await;
        let place = place(&lines).unwrap();
        self.seen.store(place + 1, Ordering::Relaxed);
        lines[place].clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Sends it a signal, as `kill` does.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Waits for its end: the exit status, -1 for a signal, and its whole log.
    pub(crate) async fn end(mut self) -> (i32, Vec<String>) {
        let status = within("the end of the daemon", self.child.wait()).await.unwrap();
        within("the end of the log", self.reader).await.unwrap();
        (status.code().unwrap_or(-1), self.log.items())
    }

    /// Changes its configuration file, in one step as editors and deployments do.
    pub(crate) fn edit(&self, text: &str) {
        let next = self.setup.directory.path().join("next");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(next, self.setup.file()).unwrap();
    }

    /// Its directory, gone when it is.
    pub(crate) fn directory(&self) -> PathBuf {
        self.setup.directory()
    }

    /// A field of its status in `/proc`, in KiB.
    pub(crate) fn kib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

/// A daemon that serves.
pub(crate) struct Daemon {
    pub(crate) process: Process,
    pub(crate) client: Client,
}

impl Deref for Daemon {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Daemon {
    /// One on the shared Redis, and a fresh namespace with these settings.
    pub(crate) async fn with_namespace(settings: Value) -> (Self, String) {
        let daemon = Setup::shared().start().await;
        let namespace = daemon.apply(settings).await;
        (daemon, namespace)
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.url.rsplit(':').next().unwrap().parse().unwrap()
    }
}

/// A client of a daemon.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    pub(crate) url: String,
    token: Option<String>,
}

/// What settings of a namespace are in the API's words: the defaults.
pub(crate) fn defaults() -> Value {
    json!({})
}

impl Client {
    pub(crate) fn to(url: &str) -> Self {
        Self::with(url, |builder| builder)
    }

    /// One that is built specially.
    pub(crate) fn with(url: &str, build: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder) -> Self {
        // Another test may have done it already.
        rustls::crypto::ring::default_provider().install_default().ok();
        let builder = build(reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)));
        Self { http: builder.build().unwrap(), url: url.to_owned(), token: None }
    }

    /// The same with a token.
    pub(crate) fn bearing(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// A request to this path.
    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        Reply::to(self.request(Method::GET, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        Reply::to(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        Reply::to(self.request(Method::PUT, path).json(&body)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        Reply::to(self.request(Method::POST, path).json(&body)).await
    }

    /// A fresh namespace with these settings.
    pub(crate) async fn apply(&self, settings: Value) -> String {
        let name = namespace();
        self.put(&format!("/v1/namespaces/{name}"), json!({"settings": settings})).await.json(201);
        name
    }

    /// Tracks ids that have expired long ago: their cleanups are due at once.
    pub(crate) async fn track_expired(&self, namespace: &str, ids: &[String]) {
        let entries: Vec<Value> = ids.iter().map(|id| json!({"id": id, "expires_at": 1_000_000_000_000_i64})).collect();
        let answer = self.post(&format!("/v1/namespaces/{namespace}/deadlines"), json!({"entries": entries})).await;
        assert_eq!(answer.json(200)["results"].as_array().unwrap().len(), ids.len());
    }

    /// Claims, and waits until there is something.
    pub(crate) async fn claim(&self, namespace: &str, limit: u32) -> Vec<Value> {
        let body = json!({"limit": limit, "wait": "15s"});
        let answer = self.post(&format!("/v1/namespaces/{namespace}/claims"), body).await.json(200);
        answer["claims"].as_array().unwrap().clone()
    }

    /// Settles claims as done.
    pub(crate) async fn ack(&self, namespace: &str, claims: &[Value]) {
        let tokens: Vec<&Value> = claims.iter().map(|claim| &claim["token"]).collect();
        let answer = self.post(&format!("/v1/namespaces/{namespace}/claims/ack"), json!({"tokens": tokens})).await;
        let answer = answer.json(200);
        for result in answer["results"].as_array().unwrap() {
            assert_eq!(result["result"], "settled", "{answer}");
        }
    }
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) async fn to(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self { status, headers, text: response.text().await.unwrap() }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// It must have this status and JSON.
    #[track_caller]
    pub(crate) fn json(&self, status: u16) -> Value {
        assert_eq!((self.status, self.header("content-type")), (status, "application/json"), "{self:?}");
        serde_json::from_str(&self.text).unwrap()
    }

    /// It must have this status, and nothing besides.
    #[track_caller]
    pub(crate) fn is(&self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
    }

    /// It must be a problem with this status, whole and with something to do about it.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> Value {
        assert_eq!((self.status, self.header("content-type")), (status, "application/problem+json"), "{self:?}");
        let problem: Value = serde_json::from_str(&self.text).unwrap();
        let text = |key: &str| problem[key].as_str().unwrap_or_else(|| panic!("no {key} in {problem}"));
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(text("type"), format!("urn:forewarn:problem:{}", text("code")), "{problem}");
        assert!(!text("title").is_empty() && text("detail").len() > 15, "{problem}");
        problem
    }
}
