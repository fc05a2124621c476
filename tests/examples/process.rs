//! Runs the built examples beside the test, and reads what they print line by line.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc::RecvTimeoutError,
    time::SystemTime,
};

use crate::harness::{Beside, PATIENCE};

/// The program of an example, as cargo has built it along with the tests.
pub(crate) fn example(name: &str) -> Command {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    let fix = "build it with `cargo build --examples`, as `cargo test` without `--test` does";
    assert!(program.is_file(), "{} is missing; {fix}", program.display());
    let changed = |path: &Path| -> SystemTime { path.metadata().unwrap().modified().unwrap() };
    let is_old = sources(name).iter().any(|source| changed(source) > changed(&program));
    assert!(!is_old, "{} is older than its source; {fix}", program.display());
    let mut command = Command::new(program);
    command.env_remove("FOREWARN_STORE").stdin(Stdio::null());
    command
}

fn sources(name: &str) -> Vec<PathBuf> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let file = examples.join(format!("{name}.rs"));
    match std::fs::read_dir(examples.join(name)) {
        Ok(directory) => directory.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => vec![file],
    }
}

/// An example beside the test. Dropped, it is killed.
pub(crate) struct Running {
    beside: Beside,
    heard: Vec<String>,
}

impl Running {
    pub(crate) fn start(command: Command) -> Self {
        Self { beside: Beside::start(command), heard: Vec::new() }
    }

    /// Waits until a line that contains this has come; answers with it.
    pub(crate) fn says(&mut self, part: &str) -> String {
        loop {
            if let Some(line) = self.heard.iter().find(|line| line.contains(part)) {
                return line.clone();
            }
            match self.beside.out.recv_timeout(PATIENCE) {
                Ok(line) => self.heard.push(line),
                Err(error) => {
                    let err: Vec<String> = self.beside.err.try_iter().collect();
                    panic!("waited in vain for {part:?} ({error}); heard {:#?}, and on stderr {err:#?}", self.heard)
                }
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        self.beside.signal(name);
    }

    /// Waits for its end; answers with the exit code, -1 for none, and all that it has printed.
    pub(crate) fn end(mut self) -> (i32, Vec<String>) {
        let mut heard = std::mem::take(&mut self.heard);
        loop {
            match self.beside.out.recv_timeout(PATIENCE) {
                Ok(line) => heard.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end; heard {heard:#?}"),
            }
        }
        let err: Vec<String> = self.beside.err.iter().collect();
        assert!(err.is_empty(), "on stderr: {err:#?}");
        (self.beside.code(), heard)
    }
}
