//! What becomes of a notice after its handler has answered.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use forewarn::model::{Backoff, Class, Failure};
use forewarn::store::{ParkedQuery, Settled, Shelf, Store};
use forewarn::{Delivery, Kind, Outcome, Settings};
use tokio::sync::Notify;

use crate::harness::Inbox;
use crate::stage::{Running, Seen, Stage, failure, lead};

#[tokio::test]
async fn a_reminder_and_then_a_cleanup_are_handled_and_settled() {
    let stage = Stage::new(Settings::default().remind(lead(300))).await;
    let handled = Arc::new(Inbox::new());
    let handler = |handled: &Arc<Inbox<_>>| {
        let handled = Arc::clone(handled);
        move |delivery: Delivery| {
            let event = serde_json::to_value(delivery.event()).unwrap();
            let payload = delivery.payload_json::<serde_json::Value>().unwrap();
            handled.push((delivery.kind(), payload["user"].as_i64(), event["data"]["lateness_ms"].as_i64().unwrap()));
            async {}
        }
    };
    let running = Running::start(stage.builder().on_reminder(handler(&handled)).on_cleanup(handler(&handled))).await;
    let expires_at = forewarn::ExpiresAt::from_millis(stage.now().await + 400).unwrap();
    stage.namespace.track("a", expires_at).payload(&serde_json::json!({"user": 7})).unwrap().await.unwrap();

    let settled = running.settled("a", 2).await;
    assert!(settled.iter().all(|seen| matches!(seen, Seen::Settled { settled: Settled::Settled, attempt: 1, .. })));
    let handled = handled.items();
    assert!(matches!(handled[0].0, Kind::Reminder(_)) && matches!(handled[1].0, Kind::Cleanup(_)), "{handled:?}");
    for (_, user, lateness_ms) in handled {
        assert_eq!(user, Some(7));
        assert!(lateness_ms < 300, "{lateness_ms} ms late, though the worker knew when it would be due");
    }
    assert_eq!(stage.show("a").await, None);
    let report = running.stop().await;
    assert_eq!((report.totals.claimed, report.totals.done, report.lost), (2, 2, 0));
}

#[tokio::test]
async fn a_failure_is_recorded_and_the_retry_succeeds() {
    let stage = Stage::new(Settings::default()).await;
    let (second, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let handler = {
        let (second, go) = (Arc::clone(&second), Arc::clone(&go));
        move |delivery: Delivery| {
            let (second, go) = (Arc::clone(&second), Arc::clone(&go));
            async move {
                if delivery.attempt() == 1 {
                    let failure = failure("the file server does not answer").at_stage("verify");
                    return Outcome::retry_after(Duration::from_millis(20), failure);
                }
                second.notify_one();
                go.notified().await;
                Outcome::noted("gone already")
            }
        }
    };
    let running = Running::start(stage.builder().on_cleanup(handler)).await;
    stage.track("a", 10).await;
    second.notified().await;
    let view = stage.show("a").await.unwrap();
    let record = view.deliveries[0].failures.last().unwrap();
    assert_eq!((record.stage.as_str(), record.class, record.attempt), ("verify", Class::Timeout, 1));
    assert_eq!(record.summary, "the file server does not answer");
    go.notify_one();

    let settled = running.settled("a", 2).await;
    assert!(matches!(&settled[0], Seen::Settled { settled: Settled::Retry { .. }, attempt: 1, .. }), "{settled:?}");
    assert!(matches!(&settled[1], Seen::Settled { settled: Settled::Settled, attempt: 2, outcome: "noted", .. }));
    running.stop().await;
}

#[tokio::test]
async fn a_rejected_notice_is_a_dead_letter_and_a_review_waits_for_a_person() {
    let stage = Stage::new(Settings::default()).await;
    let running = Running::start(stage.builder().on_cleanup(|delivery: Delivery| async move {
        let failure = Failure::new(Class::Rejected, "no such bucket");
        if delivery.id().as_text() == Some("bad") { Outcome::Reject(failure) } else { Outcome::Review(failure) }
    }))
    .await;
    for (id, shelf, settled) in [("bad", Shelf::Dead, Settled::Dead), ("odd", Shelf::Review, Settled::Review)] {
        stage.track(id, 10).await;
        let answer = running.settled(id, 1).await;
        assert!(matches!(&answer[0], Seen::Settled { settled: found, .. } if *found == settled), "{answer:?}");
        let name = stage.namespace.name().unwrap();
        let page = stage.store.parked(name, shelf, &ParkedQuery::default()).await.unwrap();
        assert_eq!(page.total, 1);
        assert_eq!(page.entries[0].notice.id.as_text(), Some(id));
        assert_eq!(page.entries[0].failures.last().unwrap().summary, "no such bucket");
    }
    let totals = running.stop().await.totals;
    assert_eq!((totals.dead, totals.review, totals.done), (1, 1, 0));
}

#[tokio::test]
async fn a_handler_that_panics_is_retried_and_the_worker_lives_on() {
    let stage = Stage::new(Settings::default()).await;
    let backoff = Backoff::new(vec![Duration::from_millis(20)], 8).unwrap();
    let running = Running::start(stage.builder().backoff(backoff).on_cleanup(|delivery: Delivery| async move {
        assert!(delivery.attempt() > 1, "the first attempt is too much");
    }))
    .await;
    stage.track("a", 10).await;
    let settled = running.settled("a", 2).await;
    assert!(matches!(&settled[0], Seen::Settled { settled: Settled::Retry { .. }, .. }), "{settled:?}");
    assert!(matches!(&settled[1], Seen::Settled { settled: Settled::Settled, .. }), "{settled:?}");
    running.stop().await;
}

#[tokio::test]
async fn what_a_handler_releases_comes_again_without_a_burnt_attempt_and_without_a_busy_loop() {
    let stage = Stage::new(Settings::default()).await;
    let can_work = Arc::new(AtomicBool::new(false));
    let running = Running::start(stage.builder().on_cleanup({
        let can_work = Arc::clone(&can_work);
        move |_| {
            let can_work = can_work.load(Ordering::SeqCst);
            async move { if can_work { Outcome::Done } else { Outcome::Release } }
        }
    }))
    .await;
    stage.track("a", 10).await;
    let count = |seen: &[Seen]| seen.iter().filter(|seen| matches!(seen, Seen::Released(_))).count();
    running.seen.wait_until("three releases", |seen| count(seen) >= 3).await;
    stage.pass(1_000).await;
    let released = count(&running.seen.items());
    assert!((3..=10).contains(&released), "{released} releases in little more than a second");
    can_work.store(true, Ordering::SeqCst);
    let settled = running.settled("a", 1).await;
    assert!(matches!(&settled[0], Seen::Settled { settled: Settled::Settled, attempt: 1, .. }), "{settled:?}");
    let totals = running.stop().await.totals;
    assert_eq!((totals.done, totals.retried, totals.lost), (1, 0, 0));
}

#[tokio::test]
async fn too_many_failures_make_a_dead_letter() {
    let stage = Stage::new(Settings::default()).await;
    let backoff = Backoff::new(vec![Duration::from_millis(10)], 2).unwrap();
    let running =
        Running::start(stage.builder().backoff(backoff).on_cleanup(|_| async { Err::<(), _>("no route to host") }))
            .await;
    stage.track("a", 10).await;
    let settled = running.settled("a", 2).await;
    assert!(matches!(&settled[1], Seen::Settled { settled: Settled::Dead, attempt: 2, .. }), "{settled:?}");
    running.stop().await;
}

#[tokio::test]
async fn no_more_handlers_run_at_once_than_were_asked_for() {
    let stage = Stage::new(Settings::default()).await;
    let (running_now, peak) = (Arc::new(Inbox::new()), Arc::new(Inbox::new()));
    let handler = {
        let (running_now, peak) = (Arc::clone(&running_now), Arc::clone(&peak));
        move |_| {
            let (running_now, peak) = (Arc::clone(&running_now), Arc::clone(&peak));
            async move {
                running_now.push(1);
                peak.push(running_now.items().iter().sum::<i32>());
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                running_now.push(-1);
            }
        }
    };
    let running = Running::start(stage.builder().concurrency(3).on_cleanup(handler)).await;
    let ids: Vec<String> = (0..30).map(|i| i.to_string()).collect();
    for id in &ids {
        stage.track(id, 200).await;
    }
    for id in &ids {
        running.settled(id, 1).await;
    }
    assert_eq!(peak.items().iter().max(), Some(&3));
    // Never more is claimed than can be started.
    assert_eq!(running.count(|seen| matches!(seen, Seen::Claimed(taken) if *taken > 3)), 0);
    running.stop().await;
}

#[tokio::test]
async fn handlers_that_end_together_are_acked_in_one_call() {
    let stage = Stage::new(Settings::default()).await;
    let (arrived, go) = (Arc::new(Inbox::new()), Arc::new(Notify::new()));
    let handler = {
        let (arrived, go) = (Arc::clone(&arrived), Arc::clone(&go));
        move |_| {
            let (arrived, go) = (Arc::clone(&arrived), Arc::clone(&go));
            async move {
                let going = go.notified();
                arrived.push(());
                going.await;
            }
        }
    };
    let running = Running::start(stage.builder().on_cleanup(handler)).await;
    for id in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        stage.track(id, 20).await;
    }
    arrived.wait_for(8).await;
    go.notify_waiters();
    for id in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        running.settled(id, 1).await;
    }
    assert_eq!(stage.store.calls("ack"), 1);
    running.stop().await;
}
