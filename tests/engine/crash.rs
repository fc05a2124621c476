//! Workers as processes of their own that are killed in the middle of their work.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use forewarn::store::{ParkedQuery, Shelf};
use tokio::process::Command;

use crate::book::{arm, arm_some};
use crate::chance::Chance;
use crate::crew::Crew;
use crate::diary::{Diary, Run};
use crate::harness::{PATIENCE, Server};
use crate::stage::{Stage, lease};

#[tokio::test]
async fn workers_killed_a_hundred_times_in_the_middle_of_cleanups_lose_none_and_repeat_only_what_was_cut_off() {
    const KILLS: usize = 100;
    let (server, mut chance, diary) = (Server::start(), Chance::new(), Diary::new());
    let mut settings = lease(3_000);
    // So many deaths in so short a time may meet the same notice again and again.
    settings.max_deliveries = 100;
    let stage = Stage::on(&server, settings).await;
    let mut crew = Crew::new(&server, &stage);
    let command = diary.command("sleep 0.08");
    let arguments = ["--exec", &command, "--concurrency", "4"];
    (0..3).for_each(|_| _ = crew.start_with(&arguments));

    let (mut killed, mut armed, mut in_the_middle) = (BTreeSet::new(), 0, 0);
    let mut kill_in_the_middle = async || {
        let begun: BTreeSet<String> = diary.runs().into_iter().map(|run| run.event_id).collect();
        if armed < begun.len() + 60 {
            arm_some(&server, &stage, armed..armed + 80, 200, 500).await;
            armed += 80;
        }
        chance.pause(Duration::from_millis(120)).await;
        let running = diary.unfinished();
        let at_work: Vec<usize> = crew.at_work().into_iter().filter(|worker| running.contains_key(worker)).collect();
        if at_work.is_empty() {
            return false;
        }
        let worker = chance.pick(&at_work);
        crew.kill(worker).await;
        killed.insert(worker);
        crew.start_with(&arguments);
        // What it had begun ends with it, in the middle, unless it has just come to its end.
        let Some(cut_off) = diary.unfinished().remove(&worker) else { return false };
        end_groups(&cut_off).await;
        true
    };
    let killing = async {
        while in_the_middle < KILLS {
            in_the_middle += usize::from(kill_in_the_middle().await);
        }
    };
    tokio::time::timeout(PATIENCE * 3, killing).await.unwrap();

    let counters = stage.settled().await;
    let mut notices: BTreeMap<String, Vec<Run>> = BTreeMap::new();
    diary.runs().into_iter().for_each(|run| notices.entry(run.id.clone()).or_default().push(run));
    assert_eq!(notices.len(), armed, "cleanups");
    let events: BTreeSet<&str> = notices.values().flatten().map(|run| run.event_id.as_str()).collect();
    assert_eq!(events.len(), armed, "the same event id at every attempt, and another for every notice");
    let mut lapses = 0;
    for runs in notices.values() {
        let (last, earlier) = runs.split_last().unwrap();
        assert!(last.has_ended, "never done: {runs:?}");
        assert!(runs.is_sorted_by(|a, b| a.attempt < b.attempt), "{runs:?}");
        let explained = earlier.iter().all(|run| killed.contains(&run.worker));
        assert!(explained, "a repeat without a kill: {runs:?}");
        lapses += u64::from(last.attempt - 1);
    }
    // A worker may have been killed between its claim and the command: that lapse has no run of its own.
    assert_eq!((counters.acked, counters.lapsed), (armed as u64, lapses), "{counters:?}");
    assert_eq!((counters.dead, counters.failed), (0, 0), "{counters:?}");
}

/// Ends commands with all that they have started.
async fn end_groups(commands: &[Run]) {
    let groups: String = commands.iter().map(|run| format!(" -{}", run.pid)).collect();
    // One that has ended meanwhile is none to end.
    Command::new("sh").args(["-c", &format!("kill -KILL -- {groups} 2>&-")]).status().await.unwrap();
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
        tokio::select! {
            ended = crew.ended(worker) => {
                assert!(!ended.success(), "{ended}");
                crashes += 1;
            }
            _ = stage.settled() => break,
        }
    }
    let page = stage.namespace.parked(Shelf::Dead, &ParkedQuery::default()).await.unwrap();
    let dead: Vec<String> = page.entries.iter().map(|parked| parked.notice.id.to_string()).collect();
    assert_eq!((dead, crashes), (vec!["id 7".to_owned()], 5));
}
