//! When a sleeping worker wakes.
//!
//! Most workers here look only once an hour, so that a notice they handle in time proves what woke them.

use std::{sync::Arc, time::Duration};

use forewarn::model::Pause;
use forewarn::store::Settled;
use forewarn::{Delivery, Outcome, Settings};
use tokio::sync::Notify;

use crate::faulty_store::Fault;
use crate::harness::{Kind, Server, eventually};
use crate::stage::{HOUR, Running, Seen, Stage, failure, lead};

#[tokio::test]
async fn a_sleeping_worker_is_woken_by_an_earlier_deadline() {
    let stage = Stage::unpolled(Server::shared(Kind::Redis), Settings::default()).await;
    let running = Running::start(stage.builder().max_poll(HOUR).on_cleanup(|_| async {})).await;
    stage.track("late", 600_000).await;
    for id in ["a", "b", "c"] {
        stage.track(id, 50).await;
        running.settled(id, 1).await;
    }
    running.stop().await;
}

#[tokio::test]
async fn what_is_said_while_a_claim_is_under_way_is_heard() {
    let stage = Stage::unpolled(Server::shared(Kind::Redis), Settings::default()).await;
    let go = Arc::new(Notify::new());
    stage.store.fail("claim", Fault::Held(Arc::clone(&go)), 1);
    let running = Running::start(stage.builder().max_poll(HOUR).on_cleanup(|_| async {})).await;
    stage.track("a", 10).await;
    stage.store.called("claim that took something", 1).await;
    // The answer on its way knows of nothing more.
    stage.track("b", 100).await;
    stage.pass(20).await;
    go.notify_one();
    running.settled("b", 1).await;
    running.stop().await;
}

#[tokio::test]
async fn a_worker_wakes_by_itself_when_the_next_thing_is_due() {
    let stage = Stage::unpolled(Server::shared(Kind::Redis), Settings::default().remind(lead(100))).await;
    // Tracked before it starts: nobody tells it, the first claim does.
    stage.track("a", 400).await;
    stage.store.fail("wakeups", Fault::Before, u32::MAX);
    let running =
        Running::start(stage.builder().max_poll(HOUR).on_reminder(|_| async {}).on_cleanup(|_| async {})).await;
    running.settled("a", 2).await;
    // It knew the instants: about one claim for each, and one more where the clock was read a moment early.
    let claims = stage.store.calls("claim");
    assert!(claims <= 10, "{claims} claims for two notices");
    running.stop().await;
}

#[tokio::test]
async fn a_worker_wakes_for_its_own_retries() {
    let stage = Stage::unpolled(Server::shared(Kind::Redis), Settings::default()).await;
    stage.store.fail("wakeups", Fault::Before, u32::MAX);
    stage.track("a", 10).await;
    let running = Running::start(stage.builder().max_poll(HOUR).on_cleanup(|delivery: Delivery| async move {
        match delivery.attempt() {
            4 => Outcome::Done,
            _ => Outcome::retry_after(Duration::from_millis(30), failure("not yet")),
        }
    }))
    .await;
    let settled = running.settled("a", 4).await;
    assert!(matches!(settled[3], Seen::Settled { settled: Settled::Settled, .. }), "{settled:?}");
    running.stop().await;
}

#[tokio::test]
async fn what_a_stopping_worker_gives_back_wakes_another() {
    let stage = Stage::unpolled(Server::shared(Kind::Redis), Settings::default()).await;
    let started = Arc::new(Notify::new());
    let first = stage.builder().max_poll(HOUR).stop_timeout(Duration::ZERO).on_cleanup({
        let started = Arc::clone(&started);
        move |_| {
            started.notify_one();
            std::future::pending::<()>()
        }
    });
    let first = Running::start(first).await;
    stage.track("a", 10).await;
    started.notified().await;
    let second = Running::start(stage.builder().max_poll(HOUR).on_cleanup(|_| async {})).await;
    stage.store.called("claim", 3).await;
    assert_eq!(first.stop().await.released, 1);
    let settled = second.settled("a", 1).await;
    assert!(matches!(settled[0], Seen::Settled { attempt: 1, .. }), "{settled:?}");
    second.stop().await;
}

#[tokio::test]
async fn a_worker_whose_subscription_is_cut_listens_again() {
    let server = Server::start();
    let stage = Stage::unpolled(&server, Settings::default()).await;
    let running = Running::start(stage.builder().max_poll(HOUR).on_cleanup(|_| async {})).await;
    let mut connection = server.connection().await;
    for id in ["a", "b"] {
        eventually("a subscription to cut", async || {
            let mut kill = redis::cmd("CLIENT");
            kill.arg(&["KILL", "TYPE", "pubsub"]);
            let cut: i64 = kill.query_async(&mut connection).await.unwrap();
            (cut == 1).then_some(())
        })
        .await;
        // Whether it is told of this one or finds it when it listens again, it must not sleep on.
        stage.track(id, 50).await;
        running.settled(id, 1).await;
    }
    running.stop().await;
}

#[tokio::test]
async fn a_worker_that_cannot_listen_looks_every_max_poll() {
    let stage = Stage::unpolled(Server::shared(Kind::Redis), Settings::default()).await;
    stage.store.fail("wakeups", Fault::Before, u32::MAX);
    let builder = stage.builder().max_poll(Duration::from_millis(100)).on_cleanup(|_| async {});
    let running = Running::start(builder).await;
    stage.store.called("claim", 3).await;
    stage.track("a", 10).await;
    running.settled("a", 1).await;
    running.stop().await;
}

#[tokio::test]
async fn a_paused_namespace_is_left_alone_until_it_is_resumed() {
    let stage = Stage::new(Settings::default()).await;
    let pause = |paused| Pause { route: None, reminders: true, cleanups: true, paused, rate: None };
    stage.namespace.pause(&pause(true)).await.unwrap();
    let running = Running::start(stage.builder().on_cleanup(|_| async {})).await;
    stage.track("a", 10).await;
    stage.store.called("claim", 3).await;
    assert_eq!(running.count(|seen| matches!(seen, Seen::Claimed(_))), 0);
    stage.namespace.pause(&pause(false)).await.unwrap();
    running.settled("a", 1).await;
    running.stop().await;
}

#[tokio::test]
async fn an_idle_worker_asks_about_once_in_max_poll() {
    let stage = Stage::new(Settings::default()).await;
    let running = Running::start(stage.builder().on_cleanup(|_| async {})).await;
    stage.pass(2500).await;
    let claims = stage.store.calls("claim");
    assert!((2..=6).contains(&claims), "{claims} claims in two and a half seconds");
    running.stop().await;
}

#[tokio::test]
async fn a_worker_of_a_failing_store_does_not_ask_in_a_busy_loop() {
    let stage = Stage::new(Settings::default()).await;
    stage.store.fail("claim", Fault::Before, u32::MAX);
    let running = Running::start(stage.builder().on_cleanup(|_| async {})).await;
    stage.pass(1500).await;
    let claims = stage.store.calls("claim");
    assert!((2..=8).contains(&claims), "{claims} claims in one and a half seconds");
    assert_eq!(running.count(|seen| matches!(seen, Seen::OutageStarted(_))), 1);
    stage.store.heal("claim");
    running.wait("the end of the outage", |seen| *seen == Seen::OutageEnded).await;
    running.stop().await;
}
