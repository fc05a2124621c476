//! Waking: whoever makes something due earlier than a sleeping worker knew says so (T2).

use std::time::Duration;

use forewarn::store::{Next, Shelf, Verdict, Wakeups};
use futures::StreamExt;

use crate::ground::grounds;
use crate::harness::within;
use crate::operation::START;
use crate::scene::{MINUTE, Scene, due_at, reminding};

async fn heard(wakeups: &mut Wakeups) -> i64 {
    within("a wake-up", wakeups.next()).await.expect("the connection stays") - START
}

/// Claims until nothing is due: from then on the worker sleeps.
async fn sleep(scene: &Scene, name: &str) -> Option<i64> {
    loop {
        let claims = scene.claim_some(name, 100).await;
        scene.ack_on(name, &claims.claims).await;
        if let (true, Next::At { poll_at_ms, .. }) = (claims.claims.is_empty(), claims.next) {
            assert!(poll_at_ms <= START + scene.now() + 1_000);
            return due_at(claims.next);
        }
    }
}

#[tokio::test]
async fn the_next_due_instant_is_exact() {
    for kind in grounds() {
        for shards in [1, 3] {
            let scene = Scene::open(kind, reminding(&["10m", "1m"]).grace(Duration::from_secs(7)).shards(shards)).await;
            assert_eq!(sleep(&scene, "main").await, None);
            scene.track("a", 30 * MINUTE).await;
            scene.track("b", 31 * MINUTE).await;
            // T2
            let instants =
                [20 * MINUTE, 21 * MINUTE, 29 * MINUTE, 30 * MINUTE, 30 * MINUTE + 7_000, 31 * MINUTE + 7_000];
            for at in instants {
                assert_eq!(sleep(&scene, "main").await, Some(at));
                scene.at(at - 1);
                assert!(scene.heard().await.is_empty());
                scene.at(at);
            }
            assert_eq!(sleep(&scene, "main").await, None);
        }
    }
}

#[tokio::test]
async fn a_sleeping_worker_is_woken_for_what_comes_earlier() {
    for kind in grounds() {
        for shards in [1, 3] {
            let scene = Scene::open(kind, reminding(&["10m"]).shards(shards)).await;
            sleep(&scene, "main").await;
            let mut wakeups = scene.store.wakeups(&scene.name).await.unwrap();
            // T2
            scene.track("a", 10 * MINUTE + 500).await;
            assert_eq!(heard(&mut wakeups).await, 500);
            scene.track("b", 400).await;
            assert_eq!(heard(&mut wakeups).await, 400);
            scene.track("c", 60 * MINUTE).await;
            scene.renew("c", 5 * MINUTE).await;
            assert_eq!(heard(&mut wakeups).await, 0, "a crossing speaks at once");
        }
    }
}

#[tokio::test]
async fn whatever_brings_something_forward_wakes() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[])).await;
        let mut wakeups = scene.store.wakeups(&scene.name).await.unwrap();
        for text in ["a", "b", "c"] {
            scene.track(text, 0).await;
        }
        let claims = scene.claim().await;
        // T2: a retry
        scene.fail(&claims[..1], Verdict::RetryAfter(Duration::from_millis(300))).await;
        assert_eq!(heard(&mut wakeups).await, 300);
        // a release
        scene.release(&claims[1..2]).await;
        assert_eq!(heard(&mut wakeups).await, 0);
        let released = scene.claim().await;
        scene.ack(&released).await;
        // a letter that is put back
        scene.fail(&claims[2..], Verdict::Dead).await;
        scene.at(300);
        sleep(&scene, "main").await;
        let parked = scene.parked(Shelf::Dead).await;
        scene.store.requeue(&scene.name, Shelf::Dead, &parked).await.unwrap();
        assert_eq!(heard(&mut wakeups).await, 300);
        sleep(&scene, "main").await;
        // an early end
        scene.track("d", 60 * MINUTE).await;
        scene.expire("d").await;
        assert_eq!(heard(&mut wakeups).await, 300);
        sleep(&scene, "main").await;
        // a pause that ends
        scene.pause(None, true, true, true).await;
        scene.claim_some("main", 1).await;
        scene.pause(None, true, true, false).await;
        assert_eq!(heard(&mut wakeups).await, 300);
    }
}

#[tokio::test]
async fn a_worker_sleeps_no_longer_than_the_store_knows() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[])).await;
        scene.track("a", 500).await;
        sleep(&scene, "main").await;
        // The deadline behind the known instant is renewed; nobody wakes a worker that claims now for what is due before.
        scene.renew("a", 60 * MINUTE).await;
        let Next::At { due_at_ms, poll_at_ms } = scene.claim_some("main", 1).await.next else {
            panic!("nothing is due")
        };
        assert_eq!((due_at_ms, poll_at_ms), (Some(START + 60 * MINUTE), START + 500));
    }
}

#[tokio::test]
async fn an_idle_claim_writes_nothing() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["10m", "1m"])).await;
        scene.track("a", 60 * MINUTE).await;
        sleep(&scene, "main").await;
        let before = scene.keyspace().await;
        scene.pass(999);
        let idle = scene.claim_some("main", 100).await;
        assert!(idle.claims.is_empty());
        assert_eq!(scene.keyspace().await, before);
    }
}
