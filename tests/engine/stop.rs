//! How a worker stops: what it finishes, gives back and reports.

#[cfg(feature = "cli")]
use std::collections::BTreeSet;
use std::{future::pending, sync::Arc, time::Duration};

use forewarn::{Delivery, Outcome, Settings};
use tokio::{sync::Notify, time::Instant};

#[cfg(feature = "cli")]
use crate::book::arm;
#[cfg(feature = "cli")]
use crate::crew::Crew;
#[cfg(feature = "cli")]
use crate::diary::Diary;
use crate::faulty_store::Fault;
use crate::harness::{Inbox, Server};
use crate::stage::{Running, Seen, Stage, failure};

#[tokio::test]
async fn a_stop_finishes_what_ends_in_time_and_gives_back_the_rest() {
    let stage = Stage::new(Settings::default()).await;
    let (started, go) = (Arc::new(Inbox::new()), Arc::new(Notify::new()));
    let handler = {
        let (started, go) = (Arc::clone(&started), Arc::clone(&go));
        move |delivery: Delivery| {
            let (started, go) = (Arc::clone(&started), Arc::clone(&go));
            async move {
                started.push(delivery.id().to_string());
                match delivery.id().as_text() {
                    Some("quick") => go.notified().await,
                    // Fails because it is told to give up: no failure of the notice.
                    Some("obedient") => {
                        delivery.cancelled().await;
                        return Outcome::retry(failure("interrupted"));
                    }
                    _ => pending().await,
                }
                Outcome::Done
            }
        }
    };
    let builder = stage.builder().stop_timeout(Duration::from_millis(300)).on_cleanup(handler);
    let running = Running::start(builder).await;
    for id in ["quick", "obedient", "stubborn"] {
        stage.track(id, 10).await;
    }
    started.wait_for(3).await;
    let finishing = tokio::spawn({
        let seen = Arc::clone(&running.seen);
        async move {
            seen.wait_until("the stop", |seen| seen.contains(&Seen::Stopping)).await;
            go.notify_one();
        }
    });
    let report = running.stop().await;
    finishing.await.unwrap();
    assert_eq!((report.finished, report.released, report.lost), (1, 2, 0), "{report:?}");

    // The lease of a minute is not waited for, and no attempt is burnt.
    let (attempts, second) = (Arc::new(Inbox::new()), stage.builder());
    let running = Running::start(second.on_cleanup({
        let attempts = Arc::clone(&attempts);
        move |delivery: Delivery| {
            attempts.push((delivery.id().to_string(), delivery.attempt()));
            async {}
        }
    }))
    .await;
    let mut attempts = attempts.wait_for(2).await;
    attempts.sort();
    assert_eq!(attempts, [("obedient".to_owned(), 1), ("stubborn".to_owned(), 1)]);
    running.stop().await;
}

#[cfg(feature = "cli")]
#[tokio::test]
async fn fifty_in_flight_go_to_another_worker_at_once_when_theirs_is_told_to_end() {
    let (server, diary) = (Server::start(), Diary::new());
    let stage = Stage::on(&server, Settings::default()).await;
    let mut crew = Crew::new(&server, &stage);
    let command = diary.command("sleep 10");
    let first = crew.start_with(&["--exec", &command, "--concurrency", "50", "--stop-timeout", "2s"]);
    arm(&server, &stage, 50, 0).await;
    let runs = diary.begun(50).await;
    let second = crew.start_with(&["--concurrency", "50"]);
    crew.says(second, "the start", |said| said.iter().any(|line| line.contains("working on route"))).await;

    let begun = Instant::now();
    let stopped = crew.stop(first).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(stopped.contains("finished 0, gave back 50, lost 0"), "{stopped}");
    let ended = Instant::now();
    let mut ids = BTreeSet::new();
    while ids.len() < 50 {
        let (worker, event) = crew.line().await;
        assert_eq!((worker, event["data"]["attempt"].as_u64()), (second, Some(1)), "{event}");
        assert!(ids.insert(event["id"].as_str().unwrap().to_owned()), "twice: {event}");
    }
    assert!(ended.elapsed() < Duration::from_secs(2), "the lease of a minute is not waited for: {:?}", ended.elapsed());
    assert_eq!(ids, runs.iter().map(|run| run.event_id.clone()).collect());
    // Two are never at the same thing: the commands are gone with their worker.
    for run in runs {
        // One that is dead and that nobody has looked after yet has no command line any more.
        let words = std::fs::read(format!("/proc/{}/cmdline", run.pid)).unwrap_or_default();
        assert!(words.is_empty(), "{run:?} still runs");
    }
    let counters = stage.settled().await;
    assert_eq!((counters.acked, counters.lapsed, counters.failed), (50, 0, 0), "{counters:?}");
}

#[tokio::test]
async fn what_is_removed_during_a_stop_is_reported_as_void() {
    let stage = Stage::new(Settings::default()).await;
    let (started, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let running = Running::start(stage.builder().on_cleanup({
        let (started, go) = (Arc::clone(&started), Arc::clone(&go));
        move |_| {
            let (started, go) = (Arc::clone(&started), Arc::clone(&go));
            async move {
                started.notify_one();
                go.notified().await;
            }
        }
    }))
    .await;
    stage.track("a", 10).await;
    started.notified().await;
    let seen = Arc::clone(&running.seen);
    let (report, ()) = tokio::join!(running.stop(), async {
        seen.wait_until("the stop", |seen| seen.contains(&Seen::Stopping)).await;
        stage.namespace.remove("a").await.unwrap();
        go.notify_one();
    });
    assert_eq!((report.finished, report.voided, report.lost), (0, 1, 0), "{report:?}");
}

#[tokio::test]
async fn what_a_claim_under_way_at_the_stop_takes_is_given_back() {
    let stage = Stage::new(Settings::default()).await;
    let (handled, go) = (Arc::new(Inbox::new()), Arc::new(Notify::new()));
    stage.store.fail("claim", Fault::Held(Arc::clone(&go)), 1);
    let running = Running::start(stage.builder().on_cleanup({
        let handled = Arc::clone(&handled);
        move |_| {
            handled.push(());
            async {}
        }
    }))
    .await;
    stage.track("a", 10).await;
    stage.store.called("claim that took something", 1).await;
    let (report, ()) = tokio::join!(running.stop(), async {
        tokio::task::yield_now().await;
        go.notify_one();
    });
    assert_eq!((report.finished, report.released, report.lost), (0, 1, 0), "{report:?}");
    assert_eq!(handled.items().len(), 0);
}

#[tokio::test]
async fn a_stop_ends_although_the_store_is_gone() {
    let server = Server::start();
    let stage = Stage::on(&server, Settings::default()).await;
    let started = Arc::new(Inbox::new());
    let running = Running::start(stage.builder().stop_timeout(Duration::from_millis(50)).on_cleanup({
        let started = Arc::clone(&started);
        move |_| {
            started.push(());
            pending::<()>()
        }
    }))
    .await;
    stage.track("a", 10).await;
    started.wait_for(1).await;
    server.kill();
    let begun = Instant::now();
    let report = running.stop().await;
    assert_eq!((report.released, report.lost), (0, 1), "{report:?}");
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_idle_worker_stops_at_once() {
    let stage = Stage::new(Settings::default()).await;
    let running = Running::start(stage.builder().on_cleanup(|_| async {})).await;
    let begun = Instant::now();
    let report = running.stop().await;
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    assert_eq!(report, forewarn::StopReport::default());
}
