//! Many workers under trouble that does not end: nothing is left out, and what comes twice can be explained.

use std::{sync::Arc, time::Duration};

use forewarn::engine::WorkerBuilder;
use forewarn::model::Pause;
use forewarn::store::redis::RedisStore;
use forewarn::store::{Change, Settled};
use forewarn::{Delivery, ExpiresAt, Forewarn, Outcome, Route, Settings, StoreError, Worker};

use crate::book::{Book, arm, arm_some};
use crate::harness::{Inbox, Kind, Server, eventually};
use crate::stage::{Running, Seen, Stage, failure, lead, lease};

/// So many workers on `main`, each with connections of its own.
async fn workers(server: &Server, stage: &Stage, book: &Arc<Book>, count: usize) -> Vec<Running> {
    let mut workers = Vec::new();
    for _ in 0..count {
        let builder = builder(server, stage).await.on_reminder(book.handler()).on_cleanup(book.handler());
        workers.push(Running::start(builder).await);
    }
    workers
}

async fn builder(server: &Server, stage: &Stage) -> WorkerBuilder {
    let store = Arc::new(RedisStore::connect(&server.url()).await.unwrap());
    Worker::builder(&Forewarn::with_store(store).namespace(stage.namespace.name().unwrap().as_str()))
}

/// Stops them; what they say of losses and failures must explain what is in the book.
async fn stop(workers: Vec<Running>, book: &Book) {
    let mut again = 0;
    for worker in workers {
        let report = worker.stop().await;
        assert_eq!((report.released, report.lost), (0, 0), "{report:?}");
        assert!(report.totals.claimed > 0, "one had no part in it: {report:?}");
        again += report.totals.lost + report.totals.retried;
    }
    book.is_sound(again);
}

async fn command(server: &Server, words: &[&str]) -> redis::Value {
    redis::cmd(words[0]).arg(&words[1..]).query_async(&mut server.connection().await).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_again_and_again_loses_no_notice_and_repeats_none_within_a_lease() {
    // What has been answered is on disk: the server forgets nothing.
    let server = Server::start_with(Kind::Redis, &["--appendonly", "yes", "--appendfsync", "always"]);
    let stage = Stage::on(&server, lease(2_000)).await;
    let book = Book::new();
    let workers = workers(&server, &stage, &book, 3).await;
    arm(&server, &stage, 1_200, 2_000).await;
    for part in 1..=4 {
        book.reached(part * 240).await;
        server.restart();
    }
    book.closes(&stage, 1_200).await;
    stop(workers, &book).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_cut_scripts_flushed_and_writes_held_up_lose_no_notice() {
    let server = Server::start();
    let stage = Stage::on(&server, lease(2_000)).await;
    let book = Book::new();
    let workers = workers(&server, &stage, &book, 3).await;
    arm(&server, &stage, 1_200, 2_000).await;
    for part in 1..=10 {
        book.reached(part * 110).await;
        match part % 4 {
            0 => command(&server, &["CLIENT", "PAUSE", "300", "WRITE"]).await,
            1 => command(&server, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await,
            2 => command(&server, &["SCRIPT", "FLUSH"]).await,
            _ => command(&server, &["CLIENT", "KILL", "TYPE", "pubsub"]).await,
        };
    }
    book.closes(&stage, 1_200).await;
    stop(workers, &book).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_workers_of_two_routes_never_run_the_same_hand_out_twice() {
    let server = Server::start();
    let stage = Stage::on(&server, Settings::default().remind(lead(1_500))).await;
    stage.namespace.ensure_route("audit".parse().unwrap()).await.unwrap();
    let book = Book::new();
    let outcome = |delivery: &Delivery| match (delivery.attempt(), fastrand::u8(..3)) {
        (1..=3, 0) => Outcome::retry_after(Duration::from_millis(fastrand::u64(..30)), failure("not yet")),
        _ => Outcome::Done,
    };
    let mut workers = Vec::new();
    for route in ["main", "audit"].into_iter().cycle().take(16) {
        let handler = book.handler_with(route, outcome);
        let builder = builder(&server, &stage).await.route(route).concurrency(4);
        workers.push(Running::start(builder.on_reminder(handler.clone()).on_cleanup(handler)).await);
    }
    // Outside the lead: what a raw client sets inside it may be silent.
    arm_some(&server, &stage, 0..400, 1_700, 1_500).await;
    let counters = stage.settled().await;
    // A reminder and a cleanup of each on either route. A reminder may have come too late, on a slow machine.
    let too_late = counters.dropped.superseded + counters.dropped.expired;
    assert_eq!((counters.acked + too_late, counters.lapsed), (4 * 400, 0), "{counters:?}");
    assert!(counters.failed > 300, "{counters:?}");
    assert_eq!(book.repeats() as u64, counters.failed);
    stop(workers, &book).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_changed_under_load_leave_no_cleanup_out_and_repeat_none() {
    let server = Server::start();
    let stage = Stage::on(&server, Settings::default()).await;
    let book = Book::new();
    let workers = workers(&server, &stage, &book, 3).await;
    arm(&server, &stage, 1_200, 2_000).await;
    let pause = |paused| Pause { route: None, reminders: true, cleanups: true, paused, rate: None };
    for part in 1..=11 {
        book.reached(part * 100).await;
        match part % 4 {
            0 => {
                stage.namespace.pause(&pause(true)).await.unwrap();
                stage.namespace.apply(Settings::default().grace(Duration::from_millis(20))).await.unwrap();
                stage.namespace.pause(&pause(false)).await.unwrap();
            }
            1 => {
                let route: Route = "other:cleanups".parse().unwrap();
                stage.namespace.ensure_route(route).await.unwrap();
            }
            2 => {
                stage.namespace.apply(lease(3_000)).await.unwrap();
            }
            _ => {
                let drop_routes = vec!["other".parse().unwrap()];
                stage.namespace.configure(&Change { drop_routes, ..Change::default() }).await.unwrap();
            }
        }
    }
    book.closes(&stage, 1_200).await;
    assert_eq!(book.repeats(), 0);
    stop(workers, &book).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leads_that_come_and_go_under_load_speak_only_within_their_window() {
    let server = Server::start();
    let stage = Stage::on(&server, Settings::default().remind(lead(1_000)).shards(3)).await;
    let told = Arc::new(Inbox::new());
    let on_reminder = {
        let told = Arc::clone(&told);
        move |delivery: Delivery| {
            let event = serde_json::to_value(delivery.event()).unwrap();
            let number = |field: &str| event["data"][field].as_i64().unwrap();
            told.push((number("remaining_ms"), number("lead_ms")));
            async {}
        }
    };
    let cleaned = Arc::new(Inbox::new());
    let on_cleanup = {
        let cleaned = Arc::clone(&cleaned);
        move |_| {
            cleaned.push(());
            async {}
        }
    };
    let running = Running::start(stage.builder().on_reminder(on_reminder).on_cleanup(on_cleanup)).await;
    let ids: Vec<String> = (0..150).map(|i| i.to_string()).collect();
    for (at, id) in (0..).zip(&ids) {
        stage.track(id, 1_010 + at).await;
        if at % 30 == 29 {
            let settings = Settings::default().remind(lead(1_000)).shards(3);
            let settings = if at % 60 == 29 { settings.remind(lead(300)) } else { settings };
            stage.namespace.apply(settings).await.unwrap();
        }
    }
    cleaned.wait_for(150).await;
    let told = told.items();
    assert!(told.len() >= 150, "{} reminders", told.len());
    assert!(told.iter().all(|(remaining_ms, lead_ms)| remaining_ms <= lead_ms), "{told:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_server_without_memory_hands_out_and_settles_what_it_has() {
    let server = Server::start_with(Kind::Redis, &["--maxmemory-policy", "noeviction"]);
    let stage = Stage::on(&server, Settings::default().remind(lead(300))).await;
    let attempts = Arc::new(Inbox::new());
    let handler = {
        let attempts = Arc::clone(&attempts);
        move |delivery: Delivery| {
            attempts.push(delivery.attempt());
            async move {
                match delivery.attempt() {
                    1 => Outcome::retry_after(Duration::from_millis(10), failure("not yet")),
                    _ => Outcome::Done,
                }
            }
        }
    };
    arm(&server, &stage, 200, 500).await;
    command(&server, &["CONFIG", "SET", "maxmemory", "1"]).await;
    let in_an_hour = ExpiresAt::from_millis(stage.now().await + 3_600_000).unwrap();
    assert!(matches!(stage.namespace.track("new", in_an_hour).await, Err(StoreError::Full { .. })));
    let running = Running::start(stage.builder().on_reminder(|_| async {}).on_cleanup(handler)).await;
    attempts.wait_for(400).await;
    eventually("everything to be settled", async || {
        let stats = stage.namespace.stats().await.unwrap();
        (stats.armed + stats.open == 0 && stats.routes[0].pending == 0).then_some(())
    })
    .await;
    assert_eq!(running.count(|seen| matches!(seen, Seen::OutageStarted(_))), 0);
    let totals = running.stop().await.totals;
    assert_eq!((totals.retried, totals.lost), (200, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_at_one_instant_are_handled_once_each_and_no_more_than_were_asked_for() {
    let server = Server::start();
    let stage = Stage::on(&server, Settings::default()).await;
    let book = Book::new();
    arm(&server, &stage, 5_000, 0).await;
    let running = Running::start(stage.builder().concurrency(64).on_cleanup(book.handler())).await;
    book.closes(&stage, 5_000).await;
    book.is_sound(0);
    assert_eq!(running.count(|seen| matches!(seen, Seen::Claimed(taken) if *taken > 64)), 0);
    let is_done = |seen: &Seen| matches!(seen, Seen::Settled { settled: Settled::Settled, .. });
    assert_eq!(running.count(is_done), 5_000);
    running.stop().await;
}
