//! What a worker lives through: servers that vanish, forget, stand still, and replies that never come.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use forewarn::store::{Change, Settled};
use forewarn::{Delivery, Outcome, Settings};
use tokio::sync::Notify;

use crate::faulty_store::Fault;
use crate::harness::{Inbox, Kind, Server, within};
use crate::stage::{Running, Seen, Stage, failure, lease};

/// A handler that tells of each hand-out: the id and the attempt.
fn recorder(
    told: &Arc<Inbox<(String, u32)>>,
) -> impl Fn(Delivery) -> std::future::Ready<()> + Send + Sync + Clone + 'static {
    let told = Arc::clone(told);
    move |delivery| {
        told.push((delivery.id().to_string(), delivery.attempt()));
        std::future::ready(())
    }
}

fn hand_outs(told: &[(String, u32)]) -> BTreeMap<&str, usize> {
    let mut times = BTreeMap::new();
    told.iter().for_each(|(id, _)| *times.entry(id.as_str()).or_default() += 1);
    times
}

#[tokio::test]
async fn a_worker_outlives_a_server_that_is_killed_and_started_again() {
    let server = Server::start_with(Kind::Redis, &["--appendonly", "yes", "--appendfsync", "always"]);
    let stage = Stage::on(&server, Settings::default()).await;
    let told = Arc::new(Inbox::new());
    let running = Running::start(stage.builder().on_cleanup(recorder(&told))).await;
    stage.track("before", 10).await;
    running.settled("before", 1).await;
    stage.track("during", 50).await;
    server.kill();
    running.wait("the outage", |seen| matches!(seen, Seen::OutageStarted(_))).await;
    server.restart();
    running.wait("its end", |seen| *seen == Seen::OutageEnded).await;
    running.settled("during", 1).await;
    // Woken by the subscription, which has come back, too.
    crate::harness::eventually("the store to answer", async || {
        let expires_at = forewarn::ExpiresAt::from_millis(forewarn::clock::now_ms() + 50).unwrap();
        stage.namespace.track("after", expires_at).await.ok()
    })
    .await;
    running.settled("after", 1).await;
    assert_eq!(running.count(|seen| matches!(seen, Seen::OutageStarted(_))), 1);
    running.stop().await;
}

#[tokio::test]
async fn a_worker_may_start_while_the_server_is_away() {
    let server = Server::start_with(Kind::Redis, &["--appendonly", "yes", "--appendfsync", "always"]);
    let stage = Stage::on(&server, Settings::default()).await;
    stage.track("a", 10).await;
    server.kill();
    let running = Running::launch(stage.builder().on_cleanup(|_| async {}));
    running.wait("the outage", |seen| matches!(seen, Seen::OutageStarted(_))).await;
    server.restart();
    running.settled("a", 1).await;
    running.stop().await;
}

#[tokio::test]
async fn a_flushed_server_gets_the_settings_back_and_nothing_is_handed_out_twice_within_a_lease() {
    let server = Server::start();
    let stage = Stage::on(&server, Settings::default()).await;
    let (told, go) = (Arc::new(Inbox::new()), Arc::new(Notify::new()));
    let handler = {
        let (told, go) = (Arc::clone(&told), Arc::clone(&go));
        move |delivery: Delivery| {
            let (told, go) = (Arc::clone(&told), Arc::clone(&go));
            async move {
                told.push((delivery.id().to_string(), delivery.attempt()));
                if delivery.id().as_text() == Some("held") {
                    go.notified().await;
                }
            }
        }
    };
    let running = Running::start(stage.builder().route("own").on_cleanup(handler)).await;
    stage.track("held", 10).await;
    told.wait_for(1).await;
    let () = redis::cmd("FLUSHALL").query_async(&mut server.connection().await).await.unwrap();
    running.wait("the settings to be applied again", |seen| *seen == Seen::Reapplied).await;
    let configured = stage.namespace.configured().await.unwrap();
    assert!(configured.routes.iter().any(|route| route.name.as_str() == "own"), "{configured:?}");

    let ids: Vec<String> = (0..20).map(|i| format!("new {i}")).collect();
    for id in &ids {
        stage.track(id, 50).await;
    }
    for id in &ids {
        running.settled(id, 1).await;
    }
    // The server has forgotten the one still held: its ack hears so, and it disturbs nothing.
    go.notify_one();
    running.wait("the word of it", |seen| matches!(seen, Seen::Voided { id, .. } if id == "held")).await;
    assert!(hand_outs(&told.items()).values().all(|times| *times == 1), "{told:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_route_dropped_under_its_worker_is_registered_again() {
    let stage = Stage::new(Settings::default()).await;
    let running = Running::start(stage.builder().route("own").on_cleanup(|_| async {})).await;
    let drop_routes = vec!["own".parse().unwrap()];
    stage.namespace.configure(&Change { drop_routes, ..Change::default() }).await.unwrap();
    running.wait("the route to be registered again", |seen| *seen == Seen::Reapplied).await;
    stage.track("a", 10).await;
    running.settled("a", 1).await;
    assert_eq!(running.count(|seen| matches!(seen, Seen::OutageStarted(_))), 0);
    running.stop().await;
}

#[tokio::test]
async fn a_claim_whose_reply_is_cut_off_is_handed_out_again_after_its_lease() {
    let stage = Stage::new(lease(300)).await;
    let told = Arc::new(Inbox::new());
    stage.store.fail("claim", Fault::After, 1);
    let running = Running::start(stage.builder().on_cleanup(recorder(&told))).await;
    let due_at_ms = stage.now().await + 20;
    stage.namespace.track("a", forewarn::ExpiresAt::from_millis(due_at_ms).unwrap()).await.unwrap();
    running.settled("a", 1).await;
    assert!(stage.now().await >= due_at_ms + 300, "before the lease of the lost claim ended");
    // The lost hand-out counts as a lapse.
    assert_eq!(told.items(), [("a".to_owned(), 2)]);
    running.stop().await;
}

#[tokio::test]
async fn an_ack_that_could_not_be_sent_is_sent_again() {
    let stage = Stage::new(Settings::default()).await;
    let told = Arc::new(Inbox::new());
    stage.store.fail("ack", Fault::Before, 3);
    let running = Running::start(stage.builder().on_cleanup(recorder(&told))).await;
    stage.track("a", 10).await;
    let settled = running.settled("a", 1).await;
    assert!(matches!(&settled[0], Seen::Settled { settled: Settled::Settled, .. }), "{settled:?}");
    assert_eq!((stage.store.calls("ack"), told.items().len()), (4, 1));
    running.wait("the end of the outage", |seen| *seen == Seen::OutageEnded).await;
    assert_eq!(running.count(|seen| matches!(seen, Seen::OutageStarted(_))), 1);
    running.stop().await;
}

#[tokio::test]
async fn an_ack_whose_reply_is_cut_off_counts_as_heard() {
    let stage = Stage::new(Settings::default()).await;
    let told = Arc::new(Inbox::new());
    stage.store.fail("ack", Fault::After, 1);
    let running = Running::start(stage.builder().on_cleanup(recorder(&told))).await;
    stage.track("a", 10).await;
    let settled = running.settled("a", 1).await;
    assert!(matches!(&settled[0], Seen::Settled { settled: Settled::Settled, .. }), "{settled:?}");
    let totals = running.stop().await.totals;
    assert_eq!((totals.done, totals.lost, told.items().len()), (1, 0, 1));
}

#[tokio::test]
async fn a_failure_whose_reply_is_cut_off_counts_as_heard() {
    let stage = Stage::new(Settings::default()).await;
    stage.store.fail("fail", Fault::After, 1);
    let running = Running::start(stage.builder().on_cleanup(|delivery: Delivery| async move {
        match delivery.attempt() {
            1 => Outcome::retry_after(Duration::from_millis(20), failure("not yet")),
            _ => Outcome::Done,
        }
    }))
    .await;
    stage.track("a", 10).await;
    let settled = running.settled("a", 2).await;
    assert!(matches!(&settled[1], Seen::Settled { settled: Settled::Settled, attempt: 2, .. }), "{settled:?}");
    let totals = running.stop().await.totals;
    assert_eq!((totals.retried, totals.done, totals.lost), (1, 1, 0));
}

#[tokio::test]
async fn an_ack_that_could_not_be_sent_is_given_up_when_its_lease_ends() {
    let stage = Stage::new(lease(300)).await;
    let told = Arc::new(Inbox::new());
    stage.store.fail("ack", Fault::Before, u32::MAX);
    let running = Running::start(stage.builder().on_cleanup(recorder(&told))).await;
    stage.track("a", 10).await;
    running.wait("the loss", |seen| matches!(seen, Seen::Lost { loss: forewarn::engine::Loss::Unsent, .. })).await;
    stage.store.heal("ack");
    let settled = running.settled("a", 1).await;
    assert!(matches!(&settled[0], Seen::Settled { settled: Settled::Settled, .. }), "{settled:?}");
    assert!(told.items().len() >= 2, "{told:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_server_that_stands_still_for_two_seconds_loses_nothing() {
    let server = Server::start();
    let stage = Stage::on(&server, Settings::default()).await;
    let told = Arc::new(Inbox::new());
    let running = Running::start(stage.builder().on_cleanup(recorder(&told))).await;
    let ids: Vec<String> = (0..20).map(|i| i.to_string()).collect();
    for id in &ids {
        stage.track(id, 100).await;
    }
    let mut connection = server.connection().await;
    let () = within("the sleep", redis::cmd("DEBUG").arg("SLEEP").arg(2).query_async(&mut connection)).await.unwrap();
    for id in &ids {
        running.settled(id, 1).await;
    }
    assert!(hand_outs(&told.items()).values().all(|times| *times == 1), "{told:?}");
    running.stop().await;
}

#[tokio::test]
async fn scripts_flushed_under_load_are_no_trouble() {
    let server = Server::start();
    let stage = Stage::on(&server, Settings::default()).await;
    let told = Arc::new(Inbox::new());
    let running = Running::start(stage.builder().on_cleanup(recorder(&told))).await;
    let mut connection = server.connection().await;
    let ids: Vec<String> = (0..300).map(|i| i.to_string()).collect();
    for id in &ids {
        stage.track(id, 50).await;
        let () = redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut connection).await.unwrap();
    }
    for id in &ids {
        running.settled(id, 1).await;
    }
    let times = hand_outs(&told.items()).into_values().collect::<Vec<_>>();
    assert_eq!(times, vec![1; 300]);
    assert_eq!(running.count(|seen| matches!(seen, Seen::OutageStarted(_))), 0);
    running.stop().await;
}

#[tokio::test]
async fn a_key_of_another_type_in_one_shard_does_not_stop_the_others() {
    let server = Server::start();
    let stage = Stage::on(&server, Settings::default().shards(4)).await;
    let (told, go) = (Arc::new(Inbox::new()), Arc::new(Notify::new()));
    let handler = {
        let (told, go) = (Arc::clone(&told), Arc::clone(&go));
        move |delivery: Delivery| {
            let (told, go) = (Arc::clone(&told), Arc::clone(&go));
            async move {
                let going = go.notified();
                told.push(delivery.id().to_string());
                if delivery.id().as_bytes().len() < 3 {
                    going.await;
                }
            }
        }
    };
    let running = Running::start(stage.builder().concurrency(64).on_cleanup(handler)).await;
    let (bad, good): (Vec<String>, Vec<String>) =
        (0..40).map(|i| i.to_string()).partition(|id| crc32fast::hash(id.as_bytes()) % 4 == 2);
    for id in bad.iter().chain(&good) {
        stage.track(id, 50).await;
    }
    told.wait_for(40).await;
    let mut connection = server.connection().await;
    let key = format!("{{fw:{}:2}}:open", stage.namespace.name().unwrap());
    let () = redis::cmd("SET").arg(&key).arg("somebody else's").query_async(&mut connection).await.unwrap();
    // All acks leave in one call, and those of one shard are refused.
    go.notify_waiters();
    for id in &good {
        let settled = running.settled(id, 1).await;
        assert!(matches!(&settled[0], Seen::Settled { settled: Settled::Settled, .. }), "{settled:?}");
    }
    let error = running.wait("the outage", |seen| matches!(seen, Seen::OutageStarted(_))).await;
    assert!(matches!(&error, Seen::OutageStarted(error) if error.contains(&key)), "{error:?}");
    // Claims go on as well.
    let later: Vec<String> = (100..120).map(|i| i.to_string()).collect();
    let later: Vec<&String> = later.iter().filter(|id| crc32fast::hash(id.as_bytes()) % 4 != 2).collect();
    for id in &later {
        stage.track(id, 50).await;
    }
    for id in &later {
        running.settled(id, 1).await;
    }
    running.crash().await;
}
