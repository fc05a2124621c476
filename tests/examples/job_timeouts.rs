//! `job_timeouts`: who runs too long is warned of and killed, also if it does not want to end.
//!
//! The limits here are a minute, and warned of almost from the beginning, so that a machine that stands still for a while hides
//! nothing. When one is to pass, the test says so.

use std::{path::Path, process::Command};

use forewarn::store::{ParkedQuery, Shelf};
use forewarn::{Forewarn, Namespace};
use tempfile::TempDir;

use crate::harness::eventually;
use crate::process::{Running, example};

/// The file on which runners rest their limits.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.directory.path().join("jobs.db").display())
    }

    fn runner(&self, jobs: &[&str]) -> Running {
        let mut command = example("job_timeouts");
        command.args(["--store", &self.url(), "--limit", "60s", "--warn", "59500ms", "--owner", "wang"]).args(jobs);
        Running::start(command)
    }

    async fn runs(&self) -> Namespace {
        Forewarn::connect(&self.url()).await.unwrap().namespace("run")
    }
}

/// Waits until a job has begun; answers with the id of its run.
fn begun(runner: &mut Running, job: &str) -> String {
    let end = format!(" has begun: {job}");
    runner.says(&end).replace(&end, "")
}

fn is_alive(id: &str) -> bool {
    let pid = id.strip_prefix("run:").unwrap();
    // One that nobody has waited for yet stays as a zombie, with an empty command line.
    std::fs::read(Path::new("/proc").join(pid).join("cmdline")).is_ok_and(|line| !line.is_empty())
}

#[tokio::test]
async fn jobs_that_exceed_their_limit_are_warned_of_and_killed() {
    let place = Place::new();
    let stubborn = "trap '' TERM; while :; do sleep 1; done";
    let mut runner = place.runner(&["exit 0", "sleep 600", stubborn]);
    let [quick, slow, stubborn] = ["exit 0", "sleep 600", stubborn].map(|job| begun(&mut runner, job));
    let runs = place.runs().await;
    for id in [&slow, &stubborn] {
        runner.says(&format!("wang: {id} is about to exceed its limit"));
    }
    for id in [&slow, &stubborn] {
        runs.expire(&**id).await.unwrap();
    }
    let (code, lines) = runner.end();
    assert_eq!(code, 1, "{lines:#?}");
    let told = |line: String| lines.iter().filter(|it| it.starts_with(&line)).count();
    assert_eq!(told(format!("{quick} has ended: exit status: 0")), 1, "{lines:#?}");
    assert_eq!(told(format!("{quick} has exceeded")), 0, "{lines:#?}");
    for id in [&slow, &stubborn] {
        assert_eq!(told(format!("{id} has exceeded its limit: SIGTERM")), 1, "{lines:#?}");
        assert!(!is_alive(id), "{id} still runs");
    }
    assert_eq!(told(format!("{slow} has ended: signal: 15")), 1, "{lines:#?}");
    assert_eq!(told(format!("{stubborn} has exceeded its limit: SIGKILL")), 1, "{lines:#?}");
    assert_eq!(told(format!("{stubborn} has ended: signal: 9")), 1, "{lines:#?}");
    let stats = runs.stats().await.unwrap();
    assert_eq!((stats.armed, stats.open, stats.dead), (0, 0, 0));
}

#[test]
fn an_interrupt_ends_the_jobs_with_the_runner() {
    let place = Place::new();
    let mut runner = place.runner(&["sleep 600"]);
    let id = begun(&mut runner, "sleep 600");
    runner.signal("INT");
    let (code, lines) = runner.end();
    assert_eq!(code, 1, "{lines:#?}");
    assert!(!is_alive(&id), "{lines:#?}");
}

#[tokio::test]
async fn the_jobs_of_a_runner_that_was_killed_are_parked_by_the_next() {
    let place = Place::new();
    let mut first = place.runner(&["sleep 600"]);
    let left = begun(&mut first, "sleep 600");
    // Killed.
    drop(first);
    let mut second = place.runner(&["sleep 600"]);
    begun(&mut second, "sleep 600");
    let runs = place.runs().await;
    runs.expire(&*left).await.unwrap();
    let parked = eventually("a review", async || {
        let page = runs.parked(Shelf::Review, &ParkedQuery::default()).await.unwrap();
        page.entries.into_iter().next()
    })
    .await;
    assert_eq!(parked.notice.id.to_string(), left);
    assert!(parked.failures[0].summary.contains("of a runner that is gone"), "{parked:?}");
    second.signal("INT");
    assert_eq!(second.end().0, 1);
    assert!(is_alive(&left));
    let kill = format!("kill {}", left.strip_prefix("run:").unwrap());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
}
