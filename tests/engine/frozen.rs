//! Workers held still for longer than their leases, as by a machine that is suspended: what they do when they wake up.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::book::arm;
use crate::crew::Crew;
use crate::diary::Diary;
use crate::harness::{Server, eventually};
use crate::stage::{Stage, lease};

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

#[tokio::test]
async fn a_worker_frozen_past_its_leases_acks_nothing_when_it_wakes_up_and_is_told_so() {
    let (server, diary) = (Server::start(), Diary::new());
    let stage = Stage::on(&server, lease(1_000)).await;
    let mut crew = Crew::new(&server, &stage);
    let command = diary.command(&diary.wait_for_sign("attempt-$FOREWARN_ATTEMPT"));
    let arguments = ["--exec", &command, "--concurrency", "8"];
    let first = crew.start_with(&arguments);
    arm(&server, &stage, 8, 0).await;
    diary.begun(8).await;
    crew.signal(first, "STOP").await;
    // Its commands are not frozen: they end well, and their worker knows nothing of it.
    diary.leave_sign("attempt-1");
    let second = crew.start_with(&arguments);
    let runs = diary.begun(16).await;
    let of = |worker| runs.iter().filter(move |run| run.worker == worker);
    let notices = |worker| of(worker).map(|run| run.event_id.clone()).collect::<BTreeSet<_>>();
    assert_eq!(notices(first), notices(second), "the same notices, by the same event ids");
    assert!(of(second).all(|run| run.attempt == 2), "{runs:?}");

    crew.signal(first, "CONT").await;
    // Together, but for one whose command was found at its end at this very moment.
    let warned = |said: &[String]| -> u64 {
        let warnings = said.iter().filter(|line| line.contains("WARN") && line.contains("claims were lost"));
        warnings.map(|line| line.split_once(" lost=").unwrap().1.parse::<u64>().unwrap()).sum()
    };
    crew.says(first, "the losses", |said| warned(said) == 8).await;
    let stats = stage.namespace.stats().await.unwrap();
    assert_eq!((stats.counters.acked, stats.open, stats.routes[0].pending), (0, 8, 8), "{stats:?}");
    assert_eq!(stats.counters.failed, 0, "{stats:?}");
    diary.leave_sign("attempt-2");
    eventually("the acks of the second", async || {
        let stats = stage.namespace.stats().await.unwrap();
        (stats.counters.acked == 8 && stats.open == 0).then_some(())
    })
    .await;

    // It goes on as before.
    let stopped = crew.stop(second).await;
    assert!(stopped.contains("since the start 8 done") && stopped.contains(" 0 lost"), "{stopped}");
    diary.leave_sign("attempt-1");
    stage.track("later", 10).await;
    diary.begun(17).await;
    let stopped = crew.stop(first).await;
    assert!(stopped.contains("since the start 1 done") && stopped.contains(" 8 lost"), "{stopped}");
    assert_eq!(diary.runs().len(), 17);
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
    let settling = stage.settled();
    let lapsed = tokio::select! {
        counters = settling => usize::try_from(counters.lapsed).unwrap(),
        () = async { loop { let (_, event) = crew.line().await; printed.add(&event); } } => unreachable!(),
    };
    let repeats = printed.hand_outs.len() - 400;
    assert!(repeats <= lapsed, "{repeats} repeats, and {lapsed} lapses");
}
