//! A diary that the commands of `--exec` write: which worker's command began with which notice, and which came to its end.
//!
//! It lies in a directory of its own, in which a test may also leave signs for commands that wait.

use std::{collections::BTreeMap, path::PathBuf};

use tempfile::TempDir;

use crate::harness::eventually;

/// One run of the command.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) worker: usize,
    pub(crate) id: String,
    pub(crate) event_id: String,
    pub(crate) attempt: u32,
    pub(crate) pid: u32,
    pub(crate) has_ended: bool,
}

pub(crate) struct Diary {
    directory: TempDir,
}

impl Diary {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// A command that writes down that it begins, does this, and writes down that it has ended.
    pub(crate) fn command(&self, does: &str) -> String {
        let fields = "$WORKER $$ $FOREWARN_ATTEMPT $FOREWARN_EVENT_ID $FOREWARN_ID";
        let file = self.file("diary");
        let file = file.display();
        format!(r#"echo "begin {fields}" >> "{file}"; {does}; echo "end {fields}" >> "{file}""#)
    }

    /// Words for the shell that wait for a sign whose name may hold variables.
    pub(crate) fn wait_for_sign(&self, name: &str) -> String {
        format!(r#"until [ -e "{}" ]; do sleep 0.02; done"#, self.file(name).display())
    }

    /// Leaves a sign.
    pub(crate) fn leave_sign(&self, name: &str) {
        std::fs::write(self.file(name), "").unwrap();
    }

    /// All runs so far, in the order in which they began. None may have begun twice.
    pub(crate) fn runs(&self) -> Vec<Run> {
        let text = std::fs::read_to_string(self.file("diary")).unwrap_or_default();
        let (mut runs, mut known) = (Vec::<Run>::new(), BTreeMap::new());
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let fields: Vec<&str> = line.splitn(6, ' ').collect();
            let [what, worker, pid, attempt, event_id, id]: [&str; 6] = fields.try_into().unwrap();
            let attempt: u32 = attempt.parse().unwrap();
            let hand_out = (event_id.to_owned(), attempt);
            if what == "end" {
                let at: usize = known[&hand_out];
                runs[at].has_ended = true;
                continue;
            }
            let before = known.insert(hand_out, runs.len());
            assert_eq!(before, None, "attempt {attempt} of {id} was begun twice: {:?}", before.map(|at| &runs[at]));
            runs.push(Run {
                worker: worker.parse().unwrap(),
                id: id.to_owned(),
                event_id: event_id.to_owned(),
                attempt,
                pid: pid.parse().unwrap(),
                has_ended: false,
            });
        }
        runs
    }

    /// The runs that have not come to their end, by their workers.
    pub(crate) fn unfinished(&self) -> BTreeMap<usize, Vec<Run>> {
        let mut unfinished = BTreeMap::<usize, Vec<Run>>::new();
        for run in self.runs().into_iter().filter(|run| !run.has_ended) {
            unfinished.entry(run.worker).or_default().push(run);
        }
        unfinished
    }

    /// Waits until so many runs have begun.
    pub(crate) async fn begun(&self, runs: usize) -> Vec<Run> {
        eventually(&format!("{runs} runs to begin"), async || Some(self.runs()).filter(|all| all.len() >= runs)).await
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}
