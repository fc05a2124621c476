//! Crowds: very many at once, fair shares, batches of any size (T1, T4).

use std::collections::BTreeSet;

use forewarn::model::{ExpiresAt, Id, Kind, Mode, Track};
use forewarn::store::{Claim, Next, Settled};

use crate::ground::{Ground, grounds};
use crate::operation::START;
use crate::scene::{MINUTE, Scene, reminding, words};

/// How many share one millisecond.
const CROWD: usize = 100_000;

#[tokio::test]
async fn a_hundred_thousand_deadlines_at_the_same_millisecond_are_each_heard_once() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["10m"])).await;
        let expires_at = ExpiresAt::from_millis(START + 30 * MINUTE).unwrap();
        let entries: Vec<Track> = (0..CROWD)
            .map(|n| Track { id: Id::new(format!("user:{n}")).unwrap(), expires_at, payload: None })
            .collect();
        for chunk in entries.chunks(10_000) {
            scene.store.track(&scene.name, Mode::Upsert, chunk).await.unwrap();
        }
        for (at, kind) in [(20 * MINUTE, "reminder"), (30 * MINUTE, "cleanup")] {
            scene.at(at - 1);
            assert!(scene.claim_some("main", 500).await.claims.is_empty());
            scene.at(at);
            let mut heard = BTreeSet::new();
            let mut batches = 0;
            loop {
                let batch = scene.claim_some("main", 500).await;
                assert!(batch.claims.len() <= 500);
                batches += 1;
                for claim in &batch.claims {
                    assert_eq!(claim.notice.kind.as_str(), kind);
                    assert!(heard.insert(claim.notice.id.clone()), "{:?} twice", claim.notice.id);
                }
                let settled = scene.ack(&batch.claims).await;
                assert!(settled.iter().all(|answer| *answer == Settled::Settled));
                if batch.next != Next::Backlog {
                    break;
                }
            }
            assert_eq!((heard.len(), batches), (CROWD, CROWD / 500));
        }
        assert_eq!(scene.leftovers().await, [""; 0]);
    }
}

/// Classes of T1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Waiting,
    Reminder,
    Cleanup,
}

fn class(claim: &Claim) -> Class {
    match (claim.attempt, claim.notice.kind) {
        (2.., _) => Class::Waiting,
        (_, Kind::Reminder(_)) => Class::Reminder,
        (_, Kind::Cleanup(_)) => Class::Cleanup,
    }
}

/// A backlog of each class, `count` strong.
async fn backlog(kind: Ground<'_>, count: usize) -> Scene {
    let scene = Scene::open(kind, reminding(&["10m", "1m"])).await;
    let fill = async |name: &str, at: i64| {
        let expires_at = ExpiresAt::from_millis(START + at).unwrap();
        let entries: Vec<Track> = (0..count)
            .map(|n| Track { id: Id::new(format!("{name}{n:04}")).unwrap(), expires_at, payload: None })
            .collect();
        scene.store.track(&scene.name, Mode::Upsert, &entries).await.unwrap();
    };
    fill("waiting", 0).await;
    assert_eq!(scene.claim().await.len(), count);
    fill("remind", 20 * MINUTE).await;
    fill("urgent", 11 * MINUTE).await;
    fill("clean", 10 * MINUTE).await;
    scene.at(10 * MINUTE);
    scene
}

#[tokio::test]
async fn with_everything_backlogged_each_class_gets_its_share_of_a_batch() {
    for kind in grounds() {
        for limit in [3, 4, 5, 7, 30, 100] {
            let scene = backlog(kind, 200).await;
            for _ in 0..4 {
                let batch = scene.claim_some("main", limit).await;
                let count = |wanted| batch.claims.iter().filter(|claim| class(claim) == wanted).count();
                // T1
                for wanted in [Class::Waiting, Class::Reminder, Class::Cleanup] {
                    assert!(count(wanted) >= (limit / 3) as usize, "{wanted:?} of {limit}: {}", count(wanted));
                }
                assert_eq!(batch.claims.len(), limit as usize);
            }
        }
    }
}

#[tokio::test]
async fn with_everything_backlogged_three_claims_of_one_serve_every_class() {
    for kind in grounds() {
        let scene = backlog(kind, 40).await;
        let mut served = Vec::new();
        for _ in 0..30 {
            served.extend(scene.claim_some("main", 1).await.claims.iter().map(class));
        }
        assert_eq!(served.len(), 30);
        // T1
        for window in served.windows(3) {
            assert_eq!(window.iter().collect::<BTreeSet<_>>().len(), 3, "{served:?}");
        }
    }
}

#[tokio::test]
async fn the_most_urgent_lead_goes_first() {
    for kind in grounds() {
        let scene = backlog(kind, 5).await;
        let mut reminders = Vec::new();
        for _ in 0..60 {
            let batch = scene.claim_some("main", 1).await;
            reminders.extend(
                words(&batch.claims).into_iter().filter(|word| word.contains('m') && !word.contains("expired")),
            );
            scene.ack(&batch.claims).await;
        }
        assert_eq!(reminders.len(), 10);
        assert!(reminders[..5].iter().all(|word| word.starts_with("1m urgent")), "{reminders:?}");
    }
}

#[tokio::test]
async fn a_claim_over_many_shards_keeps_its_limit_and_misses_none() {
    for kind in grounds() {
        for limit in [1, 2, 7, 100] {
            let scene = Scene::open(kind, reminding(&[]).shards(16)).await;
            for n in 0..50 {
                scene.track(&format!("a{n}"), 0).await;
            }
            let mut heard = BTreeSet::new();
            // T4: with a limit below the number of shards some claims find nothing where they look.
            for _ in 0..1_000 {
                let batch = scene.claim_some("main", limit).await;
                assert!(batch.claims.len() <= limit as usize);
                heard.extend(words(&batch.claims));
                scene.ack(&batch.claims).await;
                if batch.next != Next::Backlog {
                    break;
                }
            }
            assert_eq!(heard.len(), 50, "limit {limit}");
        }
    }
}

#[tokio::test]
async fn claims_that_meet_share_what_is_due_and_hand_out_nothing_twice() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        for n in 0..300 {
            scene.track(&format!("a{n}"), 0).await;
        }
        let claims = futures::future::join_all((0..10).map(|_| scene.claim_some("main", 30))).await;
        let heard: Vec<_> = claims.iter().flat_map(|batch| words(&batch.claims)).collect();
        assert_eq!(heard.len(), 300);
        assert_eq!(heard.iter().collect::<BTreeSet<_>>().len(), 300);
    }
}
