//! Observing what is handed out, without claiming (O1 to O3).

use std::time::Duration;

use forewarn::model::{ExpiresAt, Id, Mode, Settings, Track};
use forewarn::store::{Feed, Handed, Verdict};
use futures::StreamExt;

use crate::ground::grounds;
use crate::harness::within;
use crate::operation::START;
use crate::scene::{MINUTE, Scene, reminding, said};

async fn observe(scene: &Scene) -> Feed {
    scene.store.feed(&scene.name).await.expect("a feed")
}

async fn next(feed: &mut Feed) -> Handed {
    within("a hand-out", feed.next()).await.expect("the connection stays").expect("a message that can be read")
}

/// Route, notice, instant of the claim and of being due, attempt, whether a set caused it, and payload.
fn told(handed: &Handed) -> (String, String, i64, i64, u32, bool, Option<&[u8]>) {
    let Handed { at_ms, route, notice, attempt, due_at_ms, on_set, payload } = handed;
    (route.to_string(), said(notice), at_ms - START, due_at_ms - START, *attempt, *on_set, payload.as_deref())
}

/// Hears so many, sorted: shards and classes have no order among each other.
async fn hear(feed: &mut Feed, count: usize) -> Vec<Handed> {
    let mut heard = Vec::new();
    for _ in 0..count {
        heard.push(next(feed).await);
    }
    heard.sort_by_key(|handed| (handed.route.to_string(), said(&handed.notice)));
    heard
}

#[tokio::test]
async fn every_hand_out_on_every_route_is_heard_with_all_that_is_known_of_it() {
    for kind in grounds() {
        for shards in [1, 3] {
            let settings = reminding(&["10m"]).grace(Duration::from_secs(7)).shards(shards);
            let scene = Scene::with_routes(kind, settings, &["main", "mail"]).await;
            let beside = scene.beside().await;
            let (mut one, mut two) = (observe(&beside).await, observe(&scene).await);
            scene.track_as(Mode::Upsert, "a", 20 * MINUTE, Some("for a")).await;
            scene.track("b", 60 * MINUTE).await;
            scene.track_as(Mode::Upsert, "c", MINUTE, Some("for c")).await;
            scene.at(10 * MINUTE + 5);
            // O1: a crossing, what a sweep meets, and a cleanup.
            scene.renew("b", 15 * MINUTE).await;
            scene.pass(1);
            assert_eq!(scene.handled_on("main").await.len(), 3);
            assert_eq!(scene.handled_on("mail").await.len(), 3);
            let (at, set) = (10 * MINUTE + 6, 10 * MINUTE + 5);
            for feed in [&mut one, &mut two] {
                let heard = hear(feed, 6).await;
                let expected = ["mail", "main"].into_iter().flat_map(|route| {
                    [
                        (route, "10m a", 10 * MINUTE, false, Some(&b"for a"[..])),
                        (route, "10m b", set, true, None),
                        (route, "expired c", MINUTE + 7_000, false, Some(b"for c")),
                    ]
                });
                let expected: Vec<_> = expected
                    .map(|(route, notice, due, on_set, payload)| {
                        (route.to_owned(), notice.to_owned(), at, due, 1, on_set, payload)
                    })
                    .collect();
                assert_eq!(heard.iter().map(told).collect::<Vec<_>>(), expected, "{kind}");
            }
        }
    }
}

#[tokio::test]
async fn repeats_are_heard_with_their_attempt_and_in_order() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[])).await;
        scene.track("a", 500).await;
        scene.at(700);
        let mut feed = observe(&scene).await;
        let claims = scene.claim().await;
        scene.fail(&claims, Verdict::RetryAfter(Duration::from_millis(300))).await;
        scene.at(1_000);
        // O1: after a failure, then after a lapse
        assert_eq!(scene.claim().await.len(), 1);
        scene.at(2 * MINUTE);
        let claims = scene.claim().await;
        for (at, attempt) in [(700, 1), (1_000, 2), (2 * MINUTE, 3)] {
            let handed = next(&mut feed).await;
            assert_eq!(
                told(&handed),
                ("main".to_owned(), "expired a".to_owned(), at, 500, attempt, false, None),
                "{kind}"
            );
        }
        scene.ack(&claims).await;
    }
}

#[tokio::test]
async fn observing_claims_nothing_and_leaves_nothing_behind() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&[])).await;
        for text in ["a", "b"] {
            scene.track(text, 0).await;
        }
        let feed = observe(&scene).await;
        // O2: both are still there for workers.
        let claims = scene.claim().await;
        assert_eq!(claims.len(), 2, "{kind}");
        drop(feed);
        scene.ack(&claims).await;
        assert_eq!(scene.leftovers().await, Vec::<String>::new(), "{kind}");
        assert!(!scene.keyspace().await.mentions("observer"), "{kind}");
    }
}

#[tokio::test]
async fn what_was_handed_out_before_is_not_heard() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[])).await;
        scene.track("before", 0).await;
        let first = observe(&scene).await;
        scene.handled().await;
        // O3
        let mut second = observe(&scene).await;
        scene.track("after", 0).await;
        scene.handled().await;
        assert_eq!(said(&next(&mut second).await.notice), "expired after", "{kind}");
        drop(first);
    }
}

#[tokio::test]
async fn ids_and_payloads_of_any_bytes_come_through() {
    for kind in grounds() {
        let scene = Scene::open(kind, Settings::default()).await;
        let all: Vec<u8> = (0..=255).collect();
        let odd: [&[u8]; 6] = [&all, b"$-1\r\n", b"\r\n", b"\0", &[0xFF, 0xFE], "a:b\u{2028}\"\\".as_bytes()];
        let mut feed = observe(&scene).await;
        for bytes in odd {
            let entry = Track {
                id: Id::new(bytes).unwrap(),
                expires_at: ExpiresAt::from_millis(START).unwrap(),
                payload: Some(bytes.to_vec()),
            };
            scene.store.track(&scene.name, Mode::Upsert, &[entry]).await.unwrap();
            // First without a failure, then with one: both kinds of hand-out.
            let claims = scene.claim().await;
            scene.fail(&claims, Verdict::RetryAfter(Duration::ZERO)).await;
            let claims = scene.claim().await;
            scene.ack(&claims).await;
            for attempt in [1, 2] {
                let handed = next(&mut feed).await;
                assert_eq!(handed.notice.id.as_bytes(), bytes, "{kind}");
                assert_eq!((handed.payload.as_deref(), handed.attempt), (Some(bytes), attempt), "{kind}");
            }
        }
    }
}

#[tokio::test]
async fn only_a_namespace_that_exists_can_be_observed() {
    for kind in grounds() {
        let scene = Scene::bare(kind).await;
        let problem = scene.store.feed(&scene.name).await.map(drop).expect_err("a refusal").to_string();
        assert!(problem.contains(scene.name.as_str()), "{problem}");
    }
}
