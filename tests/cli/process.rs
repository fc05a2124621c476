//! Runs the binary: to its end, or beside the test.

use std::{
    process::{Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use crate::harness::{Beside, Kind, PATIENCE, Server, namespace};

/// The binary with nothing of the tester's own environment in its way, and no store.
pub(crate) fn bare() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forewarn"));
    for name in ["STORE", "SERVER", "TOKEN", "CONFIG", "LOG"] {
        command.env_remove(format!("FOREWARN_{name}"));
    }
    command.stdin(Stdio::null());
    // Nor the tester's own store: what would use it fails.
    command.env_remove("XDG_DATA_HOME").env("HOME", "/nonexistent");
    command
}

/// A store and a namespace of the test's own in it.
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) namespace: String,
}

impl Place {
    /// A fresh namespace, not configured, on the server all tests share.
    pub(crate) fn unconfigured() -> Self {
        Self { url: Server::shared(Kind::Redis).url(), namespace: namespace() }
    }

    /// A fresh namespace with these settings, in the words of `namespace apply`.
    pub(crate) fn new(settings: &[&str]) -> Self {
        let place = Self::unconfigured();
        place.apply(settings).done();
        place
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = bare();
        command.env("FOREWARN_STORE", &self.url);
        command
    }

    /// Runs a command of words; `NS` stands for the namespace.
    pub(crate) fn run(&self, words: &[&str]) -> Ended {
        let mut command = self.command();
        command.args(words.iter().map(|&word| if word == "NS" { &self.namespace } else { word }));
        end(command)
    }

    pub(crate) fn apply(&self, settings: &[&str]) -> Ended {
        self.run(&[&["namespace", "apply", "NS"], settings].concat())
    }

    /// Tracks an id that has expired long ago: its cleanup is due at once.
    pub(crate) fn track_expired(&self, id: &str) {
        let ended = self.run(&["track", "NS", id, "--at-ms", "1000000000000", "--payload", r#"{"of":"test"}"#]).done();
        assert!(ended.out.starts_with("created, already expired"), "{ended:?}");
    }

    /// Starts a command of words beside the test.
    pub(crate) fn start(&self, words: &[&str]) -> Running {
        let mut command = self.command();
        command.args(words.iter().map(|&word| if word == "NS" { &self.namespace } else { word }));
        Running::start(command)
    }

    /// Asks for the namespace's stats until they are as wished.
    pub(crate) fn wait_for_stats(&self, what: &str, wished: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let stats = self.run(&["stats", "NS", "--json"]).json();
            if wished(&stats) {
                return stats;
            }
            assert!(begin.elapsed() < PATIENCE, "waited in vain for {what}: {stats}");
        }
    }
}

/// What a command that has ended left behind.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn end(mut command: Command) -> Ended {
    let output = command.output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ended {
    /// It must have exited with 0 and said nothing on stderr.
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{self:?}");
        self
    }

    /// It must have exited with 0 and printed this line.
    #[track_caller]
    pub(crate) fn prints(self, line: &str) {
        let ended = self.done();
        assert_eq!(ended.out, format!("{line}\n"));
    }

    /// It must have exited with 1; answers with both outputs.
    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert_eq!(self.code, 1, "{self:?}");
        self.out + &self.err
    }

    /// It must have exited with 2, printed nothing and said all of these words.
    #[track_caller]
    pub(crate) fn refused(self, words: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (2, ""), "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "no {word:?} in {:?}", self.err);
        }
    }

    /// It must have exited with 0 and printed one line of JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let ended = self.done();
        assert_eq!(ended.out.matches('\n').count(), 1, "{ended:?}");
        serde_json::from_str(&ended.out).unwrap()
    }
}

/// A command that runs beside the test. Dropped, it is killed.
pub(crate) struct Running(Beside);

impl Running {
    pub(crate) fn start(command: Command) -> Self {
        Self(Beside::start(command))
    }

    /// Starts it with a stdout of the test's own.
    pub(crate) fn start_to(stdout: impl Into<Stdio>, command: Command) -> Self {
        Self(Beside::start_to(stdout, command))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// The next line on stdout.
    pub(crate) fn line(&self) -> String {
        self.0.out.recv_timeout(PATIENCE).expect("a line on stdout")
    }

    /// Waits for a line on stderr that contains this.
    pub(crate) fn says(&self, part: &str) -> String {
        let mut heard = Vec::new();
        loop {
            match self.0.err.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(part) => return line,
                Ok(line) => heard.push(line),
                Err(e) => panic!("waited in vain for {part:?} ({e}); heard {heard:#?}"),
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        self.0.signal(name);
    }

    /// Waits for its end; answers with the exit status and what it still printed.
    pub(crate) fn end(self) -> Ended {
        let (out, err) = (rest(&self.0.out), rest(&self.0.err));
        Ended { code: self.0.code(), out, err }
    }
}

/// All lines until the stream ends.
fn rest(lines: &Receiver<String>) -> String {
    let begin = Instant::now();
    let mut text = String::new();
    loop {
        match lines.recv_timeout(PATIENCE.saturating_sub(begin.elapsed()).max(Duration::from_millis(1))) {
            Ok(line) => text += &(line + "\n"),
            Err(RecvTimeoutError::Disconnected) => return text,
            Err(RecvTimeoutError::Timeout) => panic!("the command does not end; so far: {text}"),
        }
    }
}
