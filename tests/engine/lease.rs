//! How long a worker may trust a claim, and what happens when it may not any more.

use std::{sync::Arc, time::Duration};

use forewarn::engine::Loss;
use forewarn::store::{DropReason, Settled};
use forewarn::{Delivery, Settings};
use tokio::sync::Notify;

use crate::faulty_store::Fault;
use crate::harness::{Inbox, Kind, Server, within};
use crate::stage::{Running, Seen, Stage, lead, lease};

/// A handler that tells when it starts and ends when the test says so or it is cancelled; it tells which.
fn patient(
    told: &Arc<Inbox<&'static str>>,
    go: &Arc<Notify>,
) -> impl Fn(Delivery) -> futures::future::BoxFuture<'static, ()> + Send + Sync + 'static {
    let (told, go) = (Arc::clone(told), Arc::clone(go));
    move |delivery| {
        let (told, go) = (Arc::clone(&told), Arc::clone(&go));
        Box::pin(async move {
            told.push("started");
            tokio::select! {
                () = delivery.cancelled() => told.push("cancelled"),
                () = go.notified() => told.push("done"),
            }
        })
    }
}

#[tokio::test]
async fn a_long_handler_keeps_its_lease() {
    let stage = Stage::new(lease(300)).await;
    let (told, go) = (Arc::new(Inbox::new()), Arc::new(Notify::new()));
    let running = Running::start(stage.builder().on_cleanup(patient(&told, &go))).await;
    stage.track("a", 10).await;
    told.wait_for(1).await;
    stage.pass(800).await;
    go.notify_one();
    let settled = running.settled("a", 1).await;
    assert!(matches!(&settled[0], Seen::Settled { settled: Settled::Settled, attempt: 1, .. }), "{settled:?}");
    assert_eq!(told.items(), ["started", "done"]);
    // One comes a third of the lease after the other.
    let extensions = stage.store.calls("extend");
    assert!((3..=9).contains(&extensions), "{extensions} extensions in 800 ms");
    let report = running.stop().await;
    assert_eq!((report.totals.claimed, report.totals.lost), (1, 0));
}

#[tokio::test]
async fn a_notice_voided_under_its_handler_cancels_it() {
    let stage = Stage::new(lease(300)).await;
    let (told, go) = (Arc::new(Inbox::new()), Arc::new(Notify::new()));
    let running = Running::start(stage.builder().on_cleanup(patient(&told, &go))).await;
    stage.track("a", 10).await;
    told.wait_for(1).await;
    stage.namespace.remove("a").await.unwrap();
    assert_eq!(told.wait_for(2).await, ["started", "cancelled"]);
    let voided = running.wait("the word of it", |seen| matches!(seen, Seen::Voided { .. })).await;
    assert!(matches!(voided, Seen::Voided { outcome: None, reason: None, .. }), "{voided:?}");
    let totals = running.stop().await.totals;
    assert_eq!((totals.voided, totals.lost), (1, 0));
    // What it answered counts for nothing.
    assert_eq!(stage.store.calls("ack"), 0);
}

#[tokio::test]
async fn a_reminder_whose_deadline_was_renewed_under_its_handler_is_no_loss() {
    let stage = Stage::new(Settings::default().remind(lead(5_000))).await;
    let (told, go) = (Arc::new(Inbox::new()), Arc::new(Notify::new()));
    let running = Running::start(stage.builder().on_reminder(patient(&told, &go)).on_cleanup(|_| async {})).await;
    stage.track("a", 5_050).await;
    told.wait_for(1).await;
    stage.track("a", 600_000).await;
    go.notify_one();
    let voided = running.wait("the word of it", |seen| matches!(seen, Seen::Voided { .. })).await;
    let Seen::Voided { outcome: Some("done"), reason: None, attempt: 1, .. } = voided else { panic!("{voided:?}") };
    let report = running.stop().await;
    assert_eq!((report.totals.voided, report.totals.done, report.totals.lost), (1, 0, 0));
    assert_eq!((report.voided, report.finished), (0, 0));
}

#[tokio::test]
async fn a_lease_that_cannot_be_extended_is_given_up_before_it_ends() {
    // A tenth of it is the margin, wide enough for a busy machine.
    let stage = Stage::new(lease(3_000)).await;
    let ends = Arc::new(Inbox::new());
    let handler = {
        let (ends, store) = (Arc::clone(&ends), Arc::clone(&stage.store));
        let name = stage.namespace.name().unwrap().clone();
        move |delivery: Delivery| {
            let (ends, store, name) = (Arc::clone(&ends), Arc::clone(&store), name.clone());
            async move {
                use forewarn::store::Store;
                delivery.cancelled().await;
                let view = store.show(&name, delivery.id()).await.unwrap().unwrap();
                ends.push(view.deliveries[0].at_ms - store.now().await.unwrap());
            }
        }
    };
    stage.store.fail("extend", Fault::Before, u32::MAX);
    let running = Running::start(stage.builder().on_cleanup(handler)).await;
    stage.track("a", 10).await;
    let left_ms = ends.wait_for(1).await[0];
    assert!((0..=600).contains(&left_ms), "{left_ms} ms of the lease were left");
    running.wait("the loss", |seen| matches!(seen, Seen::Lost { loss: Loss::Expired, .. })).await;
    // Nobody heard how it ended, so it is handed out again.
    stage.store.heal("extend");
    running.wait("the next hand-out", |seen| *seen == Seen::Claimed(1)).await;
    running.crash().await;
}

#[tokio::test]
async fn an_extension_that_hangs_does_not_keep_a_lease_alive() {
    let stage = Stage::new(lease(300)).await;
    let (told, go) = (Arc::new(Inbox::new()), Arc::new(Notify::new()));
    stage.store.fail("extend", Fault::Hangs, 1);
    let running = Running::start(stage.builder().concurrency(1).on_cleanup(patient(&told, &go))).await;
    stage.track("a", 10).await;
    told.wait_for(1).await;
    let begun = tokio::time::Instant::now();
    told.wait_for(2).await;
    assert_eq!(told.items()[..2], ["started", "cancelled"]);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    running.crash().await;
}

#[tokio::test]
async fn what_was_removed_while_it_waited_for_its_handler_is_not_run() {
    let stage = Stage::new(Settings::default()).await;
    let (handled, go) = (Arc::new(Inbox::new()), Arc::new(Notify::new()));
    stage.store.fail("claim", Fault::Held(Arc::clone(&go)), 1);
    let handler = {
        let handled = Arc::clone(&handled);
        move |delivery: Delivery| {
            handled.push(delivery.id().to_string());
            async {}
        }
    };
    let running = Running::start(stage.builder().on_cleanup(handler)).await;
    let expires_at = forewarn::ExpiresAt::from_millis(stage.now().await + 100).unwrap();
    for id in ["gone", "still here"] {
        stage.namespace.track(id, expires_at).await.unwrap();
    }
    within("the claim", stage.store.called("claim that took something", 1)).await;
    stage.namespace.remove("gone").await.unwrap();
    stage.pass(60).await;
    go.notify_one();
    running.settled("still here", 1).await;
    running.wait("the word of it", |seen| matches!(seen, Seen::Voided { id, .. } if id == "gone")).await;
    assert_eq!(handled.items(), ["still here"]);
    assert!(stage.store.calls("recheck") >= 1);
    running.stop().await;
}

#[tokio::test]
async fn what_a_raw_client_removed_while_it_waited_is_not_run() {
    let server = Server::shared(Kind::Redis);
    let stage = Stage::on(server, Settings::default().remind(lead(5_000))).await;
    let (handled, go) = (Arc::new(Inbox::new()), Arc::new(Notify::new()));
    stage.store.fail("claim", Fault::Held(Arc::clone(&go)), 1);
    let on_reminder = {
        let handled = Arc::clone(&handled);
        move |_| {
            handled.push(());
            async {}
        }
    };
    let running = Running::start(stage.builder().on_reminder(on_reminder).on_cleanup(|_| async {})).await;
    stage.track("a", 5_050).await;
    within("the claim", stage.store.called("claim that took something", 1)).await;
    let key = format!("{{fw:{}:0}}:exp", stage.namespace.name().unwrap());
    let mut zrem = redis::cmd("ZREM");
    zrem.arg(key).arg("a");
    let removed: i64 = zrem.query_async(&mut server.connection().await).await.unwrap();
    assert_eq!(removed, 1);
    stage.pass(60).await;
    go.notify_one();
    let voided = running.wait("the word of it", |seen| matches!(seen, Seen::Voided { .. })).await;
    assert!(matches!(voided, Seen::Voided { reason: Some(DropReason::Superseded), .. }), "{voided:?}");
    assert_eq!(handled.items().len(), 0);
    running.stop().await;
}

/// A handler that tells the attempts it gets.
fn attempts(told: &Arc<Inbox<u32>>) -> impl Fn(Delivery) -> std::future::Ready<()> + Send + Sync + 'static {
    let told = Arc::clone(told);
    move |delivery| {
        told.push(delivery.attempt());
        std::future::ready(())
    }
}

#[tokio::test]
async fn a_claim_whose_reply_took_the_whole_lease_is_not_run() {
    let stage = Stage::new(lease(100)).await;
    let (told, go) = (Arc::new(Inbox::new()), Arc::new(Notify::new()));
    stage.store.fail("claim", Fault::Held(Arc::clone(&go)), 1);
    let running = Running::start(stage.builder().on_cleanup(attempts(&told))).await;
    stage.track("a", 10).await;
    within("the claim", stage.store.called("claim that took something", 1)).await;
    stage.pass(110).await;
    go.notify_one();
    running.settled("a", 1).await;
    assert_eq!(told.items().len(), 1);
    running.stop().await;
}

#[tokio::test]
async fn a_claim_that_a_slow_store_made_too_late_is_given_back_and_burns_no_attempt() {
    let stage = Stage::new(lease(1_000)).await;
    let (told, go) = (Arc::new(Inbox::new()), Arc::new(Notify::new()));
    stage.store.fail("claim", Fault::Late(Arc::clone(&go)), 1);
    let running = Running::start(stage.builder().on_cleanup(attempts(&told))).await;
    stage.store.called("claim", 1).await;
    stage.track("a", 10).await;
    // The worker cannot know when the store began the lease, and trusts it only from when it asked.
    stage.pass(1_000).await;
    go.notify_one();
    running.settled("a", 1).await;
    assert_eq!(told.items(), [1]);
    let totals = running.stop().await.totals;
    assert_eq!((totals.claimed, totals.released, totals.done, totals.lost), (2, 1, 1, 0));
}
