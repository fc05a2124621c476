//! A job runner with time limits: who runs too long is warned of first and killed then.
//!
//! Run it with `cargo run --example job_timeouts -- --limit 5s --warn 2s 'sleep 1' 'sleep 60' 'trap "" TERM; sleep 60'`. Each
//! argument is a job for the shell, and all run at the same time. One sees the first end in time; of the others one is
//! told three seconds later that they are about to exceed their limit, and two seconds after that they are ended: with
//! SIGTERM, and the one that does not listen with SIGKILL. The exit status is 0 if all jobs ended well, else 1.
//!
//! The limits rest in a file, with `--store sqlite:PATH` in that one. Should the runner be killed, the next one on the same
//! file learns of the jobs it left behind, and parks them for a person: a process id may be somebody else's by then.
#![expect(clippy::print_stdout, reason = "an example may talk")]

use std::{
    collections::HashMap,
    process::{ExitCode, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use clap::Parser;
use forewarn::model::parse_span;
use forewarn::{Class, Delivery, Failure, Forewarn, LeadTime, Namespace, Outcome, Settings, Worker};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use tokio::process::{Child, Command};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc::{self, Receiver, Sender},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// How long a job has to end after SIGTERM.
const TERM_DELAY: Duration = Duration::from_millis(500);

#[derive(Parser)]
struct Args {
    /// How long a job may run
    #[arg(long, default_value = "1h", value_parser = |text: &str| parse_span("limit", text))]
    limit: Duration,
    /// How long before its limit the owner of a job is warned
    #[arg(long, default_value = "5m")]
    warn: LeadTime,
    /// Whom to warn
    #[arg(long, default_value = "nobody")]
    owner: String,
    /// Where the limits rest; default: a file that is removed at the end
    #[arg(long)]
    store: Option<String>,
    /// The jobs, each a command for the shell
    #[arg(required = true)]
    jobs: Vec<String>,
}

/// What the handlers have to know of a run.
#[derive(Serialize, Deserialize)]
struct Context {
    command: String,
    owner: String,
    pid: u32,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let scratch = tempfile::tempdir()?;
    let own = || format!("sqlite:{}", scratch.path().join("forewarn.db").display());
    let forewarn = Forewarn::connect(&args.store.clone().unwrap_or_else(own)).await?;
    let runs = forewarn.namespace("run");
    runs.apply(Settings::default().remind(args.warn)).await?;

    let running = Running::default();
    let stop = CancellationToken::new();
    let worker = Worker::builder(&runs)
        .on_reminder(warn)
        .on_cleanup({
            let running = running.clone();
            move |notice| end(running.clone(), notice)
        })
        .build()?;
    let working = tokio::spawn(worker.run(stop.clone().cancelled_owned()));

    // From before the first job on: none outlives its runner for an interrupt that came too early.
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut jobs = JoinSet::new();
    for command in &args.jobs {
        let child = start(command)?;
        let pid = child.id().context("a child that has just begun has an id")?;
        let id = format!("run:{pid}");
        let signals = running.add(&id);
        let context = Context { command: command.clone(), owner: args.owner.clone(), pid };
        runs.track_in(id.as_bytes(), args.limit).payload(&context)?.await?;
        println!("{id} has begun: {command}");
        jobs.spawn(attend(child, signals, id, runs.clone(), running.clone()));
    }
    let mut are_well = true;
    loop {
        tokio::select! {
            ended = jobs.join_next() => match ended {
                Some(ended) => are_well &= ended??.success(),
                None => break,
            },
            // The jobs do not hear it themselves: they are in groups of their own.
            Some(()) = interrupts.recv() => running.end_all(),
        }
    }
    stop.cancel();
    working.await??;
    Ok(if are_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Starts a job in a process group of its own, so that it can be ended with all that it started.
fn start(command: &str) -> anyhow::Result<Child> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).process_group(0).kill_on_drop(true);
    shell.spawn().with_context(|| format!("cannot start {command}"))
}

/// Waits for the end of a job. Then there is no limit any more that it could exceed.
async fn attend(
    mut child: Child,
    mut signals: Receiver<Signal>,
    id: String,
    runs: Namespace,
    running: Running,
) -> anyhow::Result<ExitStatus> {
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            // Here and nowhere else: before it has been waited for, nobody else can have its process id.
            Some(signal) = signals.recv() => {
                let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
                group.map_or(Ok(()), |group| kill_process_group(group, signal))?;
            }
        }
    };
    running.remove(&id);
    runs.remove(id.as_bytes()).await?;
    println!("{id} has ended: {status}");
    Ok(status)
}

/// The reminder: the owner may still do something about it.
async fn warn(notice: Delivery) -> anyhow::Result<()> {
    let Context { command, owner, .. } = notice.payload_json()?;
    println!("{owner}: {} is about to exceed its limit, at {}: {command}", notice.id(), notice.expires_at());
    Ok(())
}

/// The cleanup: SIGTERM at the first attempt, SIGKILL at the next.
async fn end(running: Running, notice: Delivery) -> anyhow::Result<Outcome> {
    let id = notice.id().to_string();
    let Some(run) = running.find(&id) else {
        let Context { command, pid, .. } = notice.payload_json()?;
        let summary = format!("of a runner that is gone; does process {pid} still run {command:?}?");
        return Ok(Outcome::Review(Failure::new(Class::Conflict, summary)));
    };
    let (signal, name) = if notice.attempt() == 1 { (Signal::TERM, "SIGTERM") } else { (Signal::KILL, "SIGKILL") };
    println!("{id} has exceeded its limit: {name}");
    // Nobody listens if it has ended in this very moment, and then there is nothing to wait for.
    run.signals.send(signal).await.ok();
    match timeout(TERM_DELAY, run.ended.cancelled()).await {
        Ok(()) => Ok(Outcome::Done),
        Err(_) => Ok(Outcome::retry_after(Duration::ZERO, Failure::new(Class::Timeout, "it does not end"))),
    }
}

/// The jobs of this runner that have not ended.
#[derive(Clone, Default)]
struct Running(Arc<Mutex<HashMap<String, Run>>>);

#[derive(Clone)]
struct Run {
    signals: Sender<Signal>,
    ended: CancellationToken,
}

impl Running {
    /// Adds a run; the signals it is to be sent come out at the other end.
    fn add(&self, id: &str) -> Receiver<Signal> {
        let (signals, to_send) = mpsc::channel(1);
        self.with(|runs| runs.insert(id.to_owned(), Run { signals, ended: CancellationToken::new() }));
        to_send
    }

    fn find(&self, id: &str) -> Option<Run> {
        self.with(|runs| runs.get(id).cloned())
    }

    fn end_all(&self) {
        for run in self.with(|runs| runs.values().cloned().collect::<Vec<_>>()) {
            // There is room unless it is being sent a signal already.
            run.signals.try_send(Signal::TERM).ok();
        }
    }

    fn remove(&self, id: &str) {
        if let Some(run) = self.with(|runs| runs.remove(id)) {
            run.ended.cancel();
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, Run>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
