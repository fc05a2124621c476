//! `work --exec`: one notice handled by one command, whose exit status is the outcome.
//!
//! Each command is the leader of a process group of its own, so that it ends with all that it started when its claim is
//! lost, and does not hear the Ctrl-C meant for the worker. No command outlives the future that runs it.

use std::{
    collections::VecDeque,
    ffi::OsStr,
    io::{self, Write as _},
    os::unix::{ffi::OsStrExt as _, process::ExitStatusExt as _},
    process::{ExitStatus, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use forewarn::{
    Kind,
    engine::{Delivery, Outcome},
    model::{Class, Failure, Name},
};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStderr, ChildStdin, Command},
    time::timeout,
};
use tracing::warn;

/// How long a command may take to end after SIGTERM before it is killed.
const TERM_DELAY: Duration = Duration::from_secs(5);

/// How long what a command left running may keep its standard error open before we stop listening.
const DRAIN_DELAY: Duration = Duration::from_secs(1);

/// A command that handles notices.
#[derive(Debug)]
pub(super) struct Exec {
    command: String,
    route: Name,
    /// Whether it has been said that the shell cannot run the command: once is enough.
    is_warned: AtomicBool,
}

impl Exec {
    /// A command for `sh -c` that handles the notices of a route.
    pub(super) fn new(command: String, route: Name) -> Self {
        Self { command, route, is_warned: AtomicBool::new(false) }
    }

    /// Runs the command for one notice, with `event` on its standard input.
    pub(super) async fn handle(&self, delivery: &Delivery, event: String) -> Outcome {
        let mut child = match self.start(delivery) {
            Ok(child) => child,
            Err(e) => {
                let summary = format!("the command could not be started: {e}");
                return Outcome::retry(Failure::new(Class::Failed, summary).at_stage("start"));
            }
        };
        let group = Group::led_by(&child);
        let feeding = child.stdin.take().map(|stdin| tokio::spawn(feed(stdin, event)));
        let tail = Tail::default();
        let listening = child.stderr.take().map(|stderr| tokio::spawn(listen(stderr, tail.clone())));

        let ended = tokio::select! {
            ended = child.wait() => ended,
            () = delivery.cancelled() => end(&mut child, &group).await,
        };
        group.leader_is_gone();
        if let Some(feeding) = feeding {
            feeding.abort();
        }
        if let Some(mut listening) = listening
            && timeout(DRAIN_DELAY, &mut listening).await.is_err()
        {
            listening.abort();
        }
        match ended {
            Ok(status) => {
                if let Some(problem) = shell_problem(status)
                    && !self.is_warned.swap(true, Ordering::Relaxed)
                {
                    warn!(problem, "the shell cannot run the command of --exec; its notices are retried");
                }
                outcome(status, tail.text())
            }
            Err(e) => Outcome::retry(Failure::new(Class::Failed, format!("the command cannot be waited for: {e}"))),
        }
    }

    fn start(&self, delivery: &Delivery) -> io::Result<Child> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.command).stdin(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        command
            .env("FOREWARN_EVENT_ID", delivery.event_id().to_string())
            .env("FOREWARN_NAMESPACE", delivery.namespace().as_str())
            .env("FOREWARN_ROUTE", self.route.as_str())
            .env("FOREWARN_KIND", delivery.kind().as_str())
            .env("FOREWARN_ATTEMPT", delivery.attempt().to_string())
            .env("FOREWARN_ID_BASE64", delivery.id().to_base64());
        match delivery.kind() {
            Kind::Reminder(lead) => command.env("FOREWARN_LEAD_MS", lead.as_millis().to_string()),
            Kind::Cleanup(reason) => command.env("FOREWARN_REASON", reason.as_str()),
        };
        // A variable cannot hold a zero byte; such an id comes in base64 only.
        if !delivery.id().as_bytes().contains(&0) {
            command.env("FOREWARN_ID", OsStr::from_bytes(delivery.id().as_bytes()));
        }
        command.spawn()
    }
}

/// What an exit status means. `said` is the end of the command's standard error.
fn outcome(status: ExitStatus, said: String) -> Outcome {
    if let Some(problem) = shell_problem(status) {
        let summary = if said.is_empty() { problem.to_owned() } else { format!("{problem}: {said}") };
        return Outcome::retry(Failure::new(Class::Failed, summary).at_stage("start"));
    }
    let fail = |class| Failure::new(class, if said.is_empty() { reading(status) } else { said.clone() });
    match status.code() {
        Some(0) => Outcome::Done,
        Some(65) => Outcome::Reject(fail(Class::Rejected)),
        Some(69 | 75) => Outcome::retry(fail(Class::Timeout)),
        Some(77) => Outcome::Reject(fail(Class::Denied)),
        Some(80) => Outcome::noted(fail(Class::Missing).summary),
        Some(81) => Outcome::Superseded,
        Some(82) => Outcome::Review(fail(Class::Conflict)),
        _ => Outcome::retry(fail(Class::Failed)),
    }
}

/// What the shell says by its own exit status about a command that it could not run.
fn shell_problem(status: ExitStatus) -> Option<&'static str> {
    match status.code() {
        Some(126) => Some("the command is not executable (exit status 126)"),
        Some(127) => Some("the command was not found (exit status 127)"),
        _ => None,
    }
}

fn reading(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the command exited with status {code} and said nothing"),
        (None, Some(signal)) => format!("the command was ended by signal {signal}"),
        (None, None) => format!("the command ended oddly: {status}"),
    }
}

/// Ends a command whose claim is lost, and all that it started.
async fn end(child: &mut Child, group: &Group) -> io::Result<ExitStatus> {
    group.signal(Signal::TERM);
    let ended = timeout(TERM_DELAY, child.wait()).await;
    group.signal(Signal::KILL);
    match ended {
        Ok(ended) => ended,
        Err(_) => child.wait().await,
    }
}

/// The process group of a command. Dropped while its leader may live, it kills the group.
#[derive(Debug)]
struct Group(Mutex<Option<Pid>>);

impl Group {
    fn led_by(child: &Child) -> Self {
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self(Mutex::new(pid))
    }

    fn leader_is_gone(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = *self.0.lock().unwrap_or_else(PoisonError::into_inner)
            && let Err(e) = kill_process_group(pid, signal)
            && e != rustix::io::Errno::SRCH
        {
            warn!(error = %e, "cannot end a command whose claim is lost");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Writes the event. A command that does not read it, or not all of it, is free to do so.
async fn feed(mut stdin: ChildStdin, event: String) {
    let written = async {
        stdin.write_all(event.as_bytes()).await?;
        stdin.write_all(b"\n").await
    };
    if let Err(e) = written.await
        && e.kind() != io::ErrorKind::BrokenPipe
    {
        warn!(error = %e, "cannot hand the event to the command");
    }
}

/// Passes a command's standard error on, and keeps its end.
async fn listen(mut stderr: ChildStderr, tail: Tail) {
    let mut buffer = [0; 4096];
    loop {
        match stderr.read(&mut buffer).await {
            Ok(0) => break,
            Ok(n) => {
                tail.keep(&buffer[..n]);
                // The operator's terminal may be gone; the summary is kept all the same.
                io::stderr().write_all(&buffer[..n]).unwrap_or_default();
            }
            Err(e) => {
                warn!(error = %e, "cannot read the standard error of the command");
                break;
            }
        }
    }
}

/// The last bytes of a stream.
#[derive(Debug, Clone, Default)]
struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let excess = kept.len().saturating_sub(Failure::MAX_SUMMARY);
        kept.drain(..excess);
    }

    /// As text, from its first whole character on, without space around it.
    fn text(&self) -> String {
        let kept: Vec<u8> = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let start = kept.iter().position(|byte| byte & 0xC0 != 0x80).unwrap_or(kept.len());
        String::from_utf8_lossy(&kept[start..]).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome_of(code: i32) -> Outcome {
        outcome(ExitStatus::from_raw(code << 8), "said".to_owned())
    }

    #[test]
    fn the_exit_status_is_the_outcome() {
        let failure = |class| Failure::new(class, "said");
        assert_eq!(outcome_of(0), Outcome::Done);
        assert_eq!(outcome_of(65), Outcome::Reject(failure(Class::Rejected)));
        assert_eq!(outcome_of(69), Outcome::retry(failure(Class::Timeout)));
        assert_eq!(outcome_of(75), Outcome::retry(failure(Class::Timeout)));
        assert_eq!(outcome_of(77), Outcome::Reject(failure(Class::Denied)));
        assert_eq!(outcome_of(80), Outcome::noted("said"));
        assert_eq!(outcome_of(81), Outcome::Superseded);
        assert_eq!(outcome_of(82), Outcome::Review(failure(Class::Conflict)));
        assert_eq!(outcome_of(1), Outcome::retry(failure(Class::Failed)));
    }

    #[test]
    fn a_command_that_the_shell_cannot_run_is_told_apart_from_one_that_failed() {
        let failure = |summary| Outcome::retry(Failure::new(Class::Failed, summary).at_stage("start"));
        assert_eq!(outcome_of(127), failure("the command was not found (exit status 127): said"));
        assert_eq!(outcome_of(126), failure("the command is not executable (exit status 126): said"));
    }

    #[test]
    fn a_silent_command_is_summed_up_by_its_end() {
        let killed = outcome(ExitStatus::from_raw(9), String::new());
        assert_eq!(killed, Outcome::retry(Failure::new(Class::Failed, "the command was ended by signal 9")));
    }

    #[test]
    fn the_summary_is_the_end_of_what_was_said_in_whole_characters() {
        let tail = Tail::default();
        tail.keep("é".repeat(1000).as_bytes());
        tail.keep(b"x\n");
        assert_eq!(tail.text(), format!("{}x", "é".repeat(511)));
    }
}
