//! Looking: list, show, stats. None of them writes.

use std::time::Duration;

use forewarn::model::Mode;
use forewarn::store::{DeliveryState, ListQuery, Verdict};

use crate::ground::grounds;
use crate::operation::START;
use crate::scene::{MINUTE, Scene, id, reminding};

#[tokio::test]
async fn a_list_goes_by_expiry_and_then_by_the_bytes_of_the_id() {
    for kind in grounds() {
        for shards in [1, 4] {
            let scene = Scene::open(kind, reminding(&[]).shards(shards)).await;
            let texts = ["b", "a", "B", "_", "-", "~", "a ", "é"];
            for text in texts {
                scene.track(text, MINUTE).await;
            }
            scene.track("later", 2 * MINUTE).await;
            scene.track("sooner", 1).await;
            let list = async |query: ListQuery| -> Vec<String> {
                let listed = scene.store.list(&scene.name, &query).await.unwrap();
                listed.iter().map(|entry| entry.id.to_string()).collect()
            };
            let all = ["sooner", "-", "B", "_", "a", "a ", "b", "~", "é", "later"];
            assert_eq!(list(ListQuery::default()).await, all);
            let within = ListQuery { within: Some(Duration::from_secs(60)), ..ListQuery::default() };
            assert_eq!(list(within).await, all[..9]);
            // Page by page, through equal scores.
            for limit in 1..=4 {
                let mut query = ListQuery { limit, ..ListQuery::default() };
                let mut pages = Vec::new();
                loop {
                    let page = scene.store.list(&scene.name, &query).await.unwrap();
                    let Some(last) = page.last() else { break };
                    query.after = Some((last.expires_at_ms, last.id.clone()));
                    assert!(page.len() <= limit as usize);
                    pages.extend(page.iter().map(|entry| entry.id.to_string()));
                }
                assert_eq!(pages, all, "pages of {limit} over {shards} shards");
            }
            // A place whose id is gone is a place all the same.
            let gone = ListQuery { after: Some((START + MINUTE, id("aa"))), ..ListQuery::default() };
            assert_eq!(list(gone).await, ["b", "~", "é", "later"]);
        }
    }
}

#[tokio::test]
async fn show_tells_everything_known_of_an_id() {
    for kind in grounds() {
        let mut scene = Scene::with_routes(kind, reminding(&["10m"]), &["main", "mail"]).await;
        assert_eq!(scene.show("a").await, None);
        scene.track_as(Mode::Upsert, "a", 30 * MINUTE, Some("who")).await;
        scene.recur("a", "cron:0 0 * * *").await;
        scene.at(20 * MINUTE);
        let claims = scene.claim().await;
        scene.fail(&claims, Verdict::RetryAfter(Duration::from_secs(7))).await;
        let view = scene.show("a").await.unwrap();
        assert_eq!((view.id, view.expires_at_ms), (id("a"), Some(START + 30 * MINUTE)));
        assert_eq!(view.payload.as_deref(), Some(&b"who"[..]));
        assert_eq!(view.every.as_deref(), Some("cron:0 0 * * *"));
        assert_eq!((view.open, view.quarantined), (None, None));
        let deliveries: Vec<_> = (view.deliveries.iter())
            .map(|delivery| (delivery.route.as_str(), delivery.state, delivery.at_ms - START, delivery.hand_outs))
            .collect();
        assert_eq!(
            deliveries,
            [("main", DeliveryState::Waiting, 20 * MINUTE + 7_000, 1), ("mail", DeliveryState::Ready, 20 * MINUTE, 0),]
        );
        assert_eq!(view.deliveries[0].failures.len(), 1);
        assert_eq!(view.deliveries[0].failures[0].summary, "no answer from the mail server");
        scene.claim_on("mail").await;
        assert_eq!(scene.show("a").await.unwrap().deliveries[1].state, DeliveryState::Leased);
    }
}

#[tokio::test]
async fn stats_count_what_there_is_and_what_has_been() {
    for kind in grounds() {
        for shards in [1, 3] {
            let scene = Scene::with_routes(kind, reminding(&["10m"]).shards(shards), &["main", "mail"]).await;
            for (text, minutes) in [("a", 0), ("b", 0), ("c", 0), ("d", 10), ("e", 60)] {
                scene.track(text, minutes * MINUTE).await;
            }
            let stats = scene.store.stats(&scene.name).await.unwrap();
            assert_eq!((stats.armed, stats.overdue, stats.open), (5, 3, 0));
            let claims = scene.claim().await;
            assert_eq!(claims.len(), 3, "d was created inside its lead");
            scene.ack(&claims[..1]).await;
            scene.fail(&claims[1..2], Verdict::Dead).await;
            scene.fail(&claims[2..], Verdict::RetryAfter(Duration::from_secs(60))).await;
            scene.at(MINUTE / 2);
            let stats = scene.store.stats(&scene.name).await.unwrap();
            assert_eq!((stats.armed, stats.overdue, stats.open, stats.dead, stats.review), (2, 0, 3, 1, 0));
            let [main, mail] = &stats.routes[..] else { panic!("{:?}", stats.routes) };
            assert_eq!((main.pending, main.due, main.oldest_due_ms), (1, 0, None));
            assert_eq!((mail.pending, mail.due, mail.oldest_due_ms), (3, 3, Some(MINUTE / 2)));
            let counters = stats.counters;
            assert_eq!((counters.handed_out, counters.acked, counters.failed, counters.dead), (3, 1, 2, 1));
            assert_eq!(counters.skipped, 1, "d was created inside its lead");
        }
    }
}

#[tokio::test]
async fn looking_writes_nothing() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["10m"]).shards(3)).await;
        for n in 0..9 {
            scene.track(&format!("a{n}"), n * MINUTE).await;
        }
        scene.claim().await;
        let before = scene.keyspace().await;
        scene.store.list(&scene.name, &ListQuery::default()).await.unwrap();
        scene.store.stats(&scene.name).await.unwrap();
        scene.store.configured(&scene.name).await.unwrap();
        scene.store.namespaces().await.unwrap();
        scene.store.now().await.unwrap();
        scene.show("a0").await;
        scene.parked(forewarn::store::Shelf::Dead).await;
        assert_eq!(scene.keyspace().await, before);
    }
}
