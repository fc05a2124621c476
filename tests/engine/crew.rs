//! A crew of workers, each a process of its own: what they print and say, and the signals that reach them.
//!
//! A worker that is left when the crew is dropped is killed. What its commands do after that is not seen here.

use std::{
    collections::BTreeMap,
    process::{ExitStatus, Stdio},
    sync::Arc,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::{Child, Command},
    sync::mpsc,
    task::JoinHandle,
};

use crate::harness::{Inbox, Server, within};
use crate::stage::Stage;

/// A line that a worker printed: which worker, and the event.
pub(crate) type Line = (usize, Value);

/// Workers of one namespace.
pub(crate) struct Crew {
    url: String,
    namespace: String,
    members: BTreeMap<usize, Member>,
    started: usize,
    tell: mpsc::Sender<Line>,
    lines: mpsc::Receiver<Line>,
}

/// One of them.
struct Member {
    child: Child,
    said: Arc<Inbox<String>>,
    hearing: JoinHandle<()>,
}

impl Crew {
    pub(crate) fn new(server: &Server, stage: &Stage) -> Self {
        let (tell, lines) = mpsc::channel(16);
        let namespace = stage.namespace.name().unwrap().to_string();
        Self { url: server.url(), namespace, members: BTreeMap::new(), started: 0, tell, lines }
    }

    /// Starts one more that prints; answers with its number.
    pub(crate) fn start(&mut self) -> usize {
        self.start_with(&[])
    }

    /// Starts one more with further arguments; its commands find its number in `WORKER`.
    pub(crate) fn start_with(&mut self, arguments: &[&str]) -> usize {
        self.started += 1;
        let worker = self.started;
        let mut child = Command::new(env!("CARGO_BIN_EXE_forewarn"))
            .args(["work", &self.namespace, "--store", &self.url])
            .args(arguments)
            .env_remove("FOREWARN_LOG")
            .env("WORKER", worker.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (printed, tell) = (child.stdout.take().unwrap(), self.tell.clone());
        tokio::spawn(read(printed, async move |line| {
            // A line cut off by a kill is none.
            let Ok(event) = serde_json::from_str(&line) else { return };
            // Nobody waits for it any more.
            tell.send((worker, event)).await.ok();
        }));
        let said = Arc::new(Inbox::new());
        let heard = Arc::clone(&said);
        let hearing = tokio::spawn(read(child.stderr.take().unwrap(), async move |line| heard.push(line)));
        self.members.insert(worker, Member { child, said, hearing });
        worker
    }

    /// The numbers of those that run.
    pub(crate) fn at_work(&self) -> Vec<usize> {
        self.members.keys().copied().collect()
    }

    /// Ends one as a crash would.
    pub(crate) async fn kill(&mut self, worker: usize) {
        let mut member = self.members.remove(&worker).unwrap();
        within("the crash", member.child.kill()).await.unwrap();
    }

    /// Waits until one ends without being told.
    pub(crate) async fn ended(&mut self, worker: usize) -> ExitStatus {
        self.members.get_mut(&worker).unwrap().child.wait().await.unwrap()
    }

    /// Tells one to stop; answers, when it has, with all that it said.
    pub(crate) async fn stop(&mut self, worker: usize) -> String {
        self.signal(worker, "TERM").await;
        let Member { mut child, said, hearing } = self.members.remove(&worker).unwrap();
        let status = within("the worker to stop", child.wait()).await.unwrap();
        within("its last word", hearing).await.unwrap();
        let said = said.items().join("\n");
        assert!(status.success(), "{status}: {said}");
        said
    }

    pub(crate) async fn signal(&self, worker: usize, name: &str) {
        let kill = format!("kill -{name} {}", self.members[&worker].child.id().unwrap());
        let status = Command::new("sh").args(["-c", &kill]).status().await.unwrap();
        assert!(status.success(), "{kill}");
    }

    /// Waits until one has said enough.
    pub(crate) async fn says(&self, worker: usize, what: &str, enough: impl Fn(&[String]) -> bool) -> Vec<String> {
        self.members[&worker].said.wait_until(what, enough).await
    }

    pub(crate) async fn line(&mut self) -> Line {
        within("a line", self.lines.recv()).await.unwrap()
    }
}

async fn read(stream: impl AsyncRead + Unpin, mut hear: impl AsyncFnMut(String)) {
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        hear(line).await;
    }
}
