//! Runs the built examples beside the test, and reads what they print line by line.

use std::{
    io::{BufRead as _, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::SystemTime,
};

use crate::harness::PATIENCE;

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
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    heard: Vec<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Self { child, out, err, heard: Vec::new() }
    }

    /// Waits until a line that contains this has come; answers with it.
    pub(crate) fn says(&mut self, part: &str) -> String {
        loop {
            if let Some(line) = self.heard.iter().find(|line| line.contains(part)) {
                return line.clone();
            }
            match self.out.recv_timeout(PATIENCE) {
                Ok(line) => self.heard.push(line),
                Err(error) => {
                    let err: Vec<String> = self.err.try_iter().collect();
                    panic!("waited in vain for {part:?} ({error}); heard {:#?}, and on stderr {err:#?}", self.heard)
                }
            }
        }
    }

    /// Sends it a signal, as `kill` does.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
    }

    /// Waits for its end; answers with the exit code, -1 for none, and all that it has printed.
    pub(crate) fn end(mut self) -> (i32, Vec<String>) {
        let mut heard = std::mem::take(&mut self.heard);
        loop {
            match self.out.recv_timeout(PATIENCE) {
                Ok(line) => heard.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end; heard {heard:#?}"),
            }
        }
        let status = self.child.wait().unwrap();
        let err: Vec<String> = self.err.iter().collect();
        assert!(err.is_empty(), "on stderr: {err:#?}");
        (status.code().unwrap_or(-1), heard)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                break;
            }
        }
    });
    told
}
