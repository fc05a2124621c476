//! When a sleeping worker wakes.

use std::{sync::Arc, time::Duration};

use forewarn::{Delivery, Settings};

use crate::faulty_store::Fault;
use crate::harness::Inbox;
use crate::stage::{Running, Stage};

fn lateness(told: &Arc<Inbox<i64>>) -> impl Fn(Delivery) -> std::future::Ready<()> + Send + Sync + 'static {
    let told = Arc::clone(told);
    move |delivery| {
        let event = serde_json::to_value(delivery.event()).unwrap();
        told.push(event["data"]["lateness_ms"].as_i64().unwrap());
        std::future::ready(())
    }
}

#[tokio::test]
async fn a_sleeping_worker_is_woken_by_an_earlier_deadline() {
    let stage = Stage::new(Settings::default()).await;
    let told = Arc::new(Inbox::new());
    let running = Running::start(stage.builder().on_cleanup(lateness(&told))).await;
    // It sleeps for a second at a time; each of these comes due in the middle of such a sleep.
    for i in 0..8 {
        stage.track(&i.to_string(), 30).await;
        told.wait_for(i + 1).await;
    }
    assert!(told.items().iter().all(|late_ms| *late_ms < 250), "{:?}", told.items());
    running.stop().await;
}

#[tokio::test]
async fn a_worker_that_cannot_listen_looks_every_max_poll() {
    let stage = Stage::new(Settings::default()).await;
    stage.store.fail("wakeups", Fault::Before, u32::MAX);
    let told = Arc::new(Inbox::new());
    let builder = stage.builder().max_poll(Duration::from_millis(100)).on_cleanup(lateness(&told));
    let running = Running::start(builder).await;
    stage.track("a", 30).await;
    assert!(told.wait_for(1).await[0] < 500);
    stage.store.called("wakeups", 3).await;

    // It listens again as soon as it can, and looks at once, because of what it may have missed.
    stage.store.heal("wakeups");
    let before = stage.store.calls("wakeups");
    stage.store.called("wakeups", before + 1).await;
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
    assert!((3..=8).contains(&claims), "{claims} claims in one and a half seconds");
    assert_eq!(running.count(|seen| matches!(seen, crate::stage::Seen::OutageStarted(_))), 1);
    stage.store.heal("claim");
    running.wait("the end of the outage", |seen| *seen == crate::stage::Seen::OutageEnded).await;
    running.stop().await;
}
