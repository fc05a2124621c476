//! Programs beside a test: their lines as they come, signals, and an end in any case.

use std::{
    io::{BufRead as _, BufReader, Read},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
};

/// Sends a process a signal, as `kill` does.
#[track_caller]
pub(crate) fn signal(pid: u32, name: &str) {
    let kill = format!("kill -{name} {pid}");
    let status = Command::new("sh").args(["-c", &kill]).status().expect("sh runs");
    assert!(status.success(), "{kill}: {status}");
}

/// A program beside the test. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Beside {
    child: Child,
    /// The lines of its stdout that nobody has taken yet.
    pub(crate) out: Receiver<String>,
    /// Those of its stderr.
    pub(crate) err: Receiver<String>,
}

impl Beside {
    pub(crate) fn start(command: Command) -> Self {
        let mut beside = Self::start_to(Stdio::piped(), command);
        beside.out = lines(beside.child.stdout.take().expect("piped"));
        beside
    }

    /// Starts it with a stdout of the test's own.
    pub(crate) fn start_to(stdout: impl Into<Stdio>, mut command: Command) -> Self {
        let mut child = command.stdout(stdout).stderr(Stdio::piped()).spawn().expect("a program");
        let err = lines(child.stderr.take().expect("piped"));
        Self { child, out: lines(std::io::empty()), err }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    #[track_caller]
    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Waits for its end, which is at hand once its outputs are closed; answers with the exit code, -1 for none.
    pub(crate) fn code(mut self) -> i32 {
        self.child.wait().expect("a child of the test").code().unwrap_or(-1)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            if tell.send(line.expect("a line of text")).is_err() {
                break;
            }
        }
    });
    told
}
