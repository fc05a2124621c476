//! Workers as processes of their own: killed at any instant, or held still for longer than their leases.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Stdio,
};

use forewarn::store::{ParkedQuery, Shelf};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    sync::mpsc,
};

use crate::book::arm;
use crate::harness::{Server, eventually, within};
use crate::stage::{Stage, lease};

/// A line that a worker printed: which worker, and the event.
type Line = (usize, Value);

/// Workers of one namespace that print what they get.
struct Crew {
    url: String,
    namespace: String,
    children: BTreeMap<usize, Child>,
    started: usize,
    tell: mpsc::Sender<Line>,
    lines: mpsc::Receiver<Line>,
}

impl Crew {
    fn new(server: &Server, stage: &Stage) -> Self {
        let (tell, lines) = mpsc::channel(16);
        let namespace = stage.namespace.name().unwrap().to_string();
        Self { url: server.url(), namespace, children: BTreeMap::new(), started: 0, tell, lines }
    }

    /// Starts one more; answers with its number.
    fn start(&mut self) -> usize {
        self.start_with(&[])
    }

    /// Starts one more with further arguments.
    fn start_with(&mut self, arguments: &[&str]) -> usize {
        self.started += 1;
        let worker = self.started;
        let mut child = Command::new(env!("CARGO_BIN_EXE_forewarn"))
            .args(["work", &self.namespace, "--store", &self.url])
            .args(arguments)
            .env("FOREWARN_LOG", "off")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
        let tell = self.tell.clone();
        tokio::spawn(async move {
            // A line cut off by the kill is none.
            while let Ok(Some(line)) = printed.next_line().await {
                let Ok(event) = serde_json::from_str(&line) else { break };
                if tell.send((worker, event)).await.is_err() {
                    break;
                }
            }
        });
        self.children.insert(worker, child);
        worker
    }

    /// Ends one as a crash would.
    async fn kill(&mut self, worker: usize) {
        let mut child = self.children.remove(&worker).unwrap();
        within("the crash", child.kill()).await.unwrap();
    }

    async fn signal(&self, worker: usize, name: &str) {
        let kill = format!("kill -{name} {}", self.children[&worker].id().unwrap());
        let status = Command::new("sh").args(["-c", &kill]).status().await.unwrap();
        assert!(status.success(), "{kill}");
    }

    async fn line(&mut self) -> Line {
        within("a line", self.lines.recv()).await.unwrap()
    }
}

/// What was printed: each hand-out, which must come only once.
#[derive(Default)]
struct Printed {
    hand_outs: BTreeSet<(String, u64)>,
    ids: BTreeSet<String>,
}

impl Printed {
    fn add(&mut self, event: &Value) {
        let id = event["subject"].as_str().unwrap().to_owned();
        let attempt = event["data"]["attempt"].as_u64().unwrap();
        assert!(self.hand_outs.insert((id.clone(), attempt)), "attempt {attempt} of {id} was handed out twice");
        self.ids.insert(id);
    }
}

/// Nothing is left in the store; answers with the number of lapses.
async fn settled(stage: &Stage) -> usize {
    let lapsed = eventually("everything to be settled", async || {
        let stats = stage.namespace.stats().await.unwrap();
        (stats.armed + stats.open == 0 && stats.routes[0].pending == 0).then_some(stats.counters.lapsed)
    })
    .await;
    usize::try_from(lapsed).unwrap()
}

#[tokio::test]
async fn workers_killed_at_any_instant_leave_no_cleanup_undone() {
    let server = Server::start();
    let stage = Stage::on(&server, lease(1_000)).await;
    let (mut crew, mut printed) = (Crew::new(&server, &stage), Printed::default());
    crew.start();
    crew.start();
    arm(&server, &stage, 600, 1_500).await;
    let mut lines = 0;
    while printed.ids.len() < 600 {
        let (worker, event) = crew.line().await;
        printed.add(&event);
        lines += 1;
        if lines % 60 == 0 && crew.children.contains_key(&worker) {
            crew.kill(worker).await;
            crew.start();
        }
    }
    assert!(crew.started >= 8, "{} workers", crew.started);
    // What was printed and not acked comes once more.
    let settling = settled(&stage);
    let lapsed = tokio::select! {
        lapsed = settling => lapsed,
        () = async { loop { let (_, event) = crew.line().await; printed.add(&event); } } => unreachable!(),
    };
    let repeats = printed.hand_outs.len() - 600;
    assert!(repeats <= lapsed, "{repeats} repeats, and {lapsed} lapses");
}

#[tokio::test]
async fn a_worker_held_still_past_its_leases_repeats_nothing_of_its_own() {
    let server = Server::start();
    let stage = Stage::on(&server, lease(1_000)).await;
    let (mut crew, mut printed) = (Crew::new(&server, &stage), Printed::default());
    let (first, _) = (crew.start(), crew.start());
    arm(&server, &stage, 400, 1_000).await;
    let mut of_first = 0;
    while of_first < 20 {
        let (worker, event) = crew.line().await;
        printed.add(&event);
        of_first += usize::from(worker == first);
    }
    crew.signal(first, "STOP").await;
    while printed.ids.len() < 350 {
        printed.add(&crew.line().await.1);
    }
    stage.pass(1_200).await;
    crew.signal(first, "CONT").await;
    while printed.ids.len() < 400 {
        printed.add(&crew.line().await.1);
    }
    let settling = settled(&stage);
    let lapsed = tokio::select! {
        lapsed = settling => lapsed,
        () = async { loop { let (_, event) = crew.line().await; printed.add(&event); } } => unreachable!(),
    };
    let repeats = printed.hand_outs.len() - 400;
    assert!(repeats <= lapsed, "{repeats} repeats, and {lapsed} lapses");
}

#[tokio::test]
async fn a_notice_that_ends_its_worker_each_time_takes_no_other_along_into_the_dead_letters() {
    let server = Server::start();
    let mut settings = lease(500);
    settings.max_deliveries = 5;
    let stage = Stage::on(&server, settings).await;
    let mut crew = Crew::new(&server, &stage);
    arm(&server, &stage, 32, 0).await;
    // It ends its worker before any other is done.
    let poison = r#"if [ "$FOREWARN_ID" = "id 7" ]; then kill -9 $PPID; else sleep 0.1; fi"#;
    let mut crashes = 0;
    loop {
        let worker = crew.start_with(&["--exec", poison, "--concurrency", "16"]);
        let ended = async { crew.children.get_mut(&worker).unwrap().wait().await.unwrap() };
        tokio::select! {
            ended = within("the crash, or everything to be settled", ended) => {
                assert!(!ended.success(), "{ended}");
                crashes += 1;
            }
            _ = settled(&stage) => break,
        }
    }
    let page = stage.namespace.parked(Shelf::Dead, &ParkedQuery::default()).await.unwrap();
    let dead: Vec<String> = page.entries.iter().map(|parked| parked.notice.id.to_string()).collect();
    assert_eq!((dead, crashes), (vec!["id 7".to_owned()], 5));
}
