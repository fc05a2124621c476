//! Ack, fail, extend, release and recheck; attempts, lapses and leases (F1 to F8).

use std::time::Duration;

use forewarn::store::{Checked, DropReason, Failing, Next, Settled, Shelf, Verdict};

use crate::ground::{beneath, forged, grounds};
use crate::operation::START;
use crate::scene::{LEASE, MINUTE, Scene, due_at, failing, reminding, route, words};

const SILENCE: [&str; 0] = [];

fn retry(seconds: u64) -> Verdict {
    Verdict::RetryAfter(Duration::from_secs(seconds))
}

#[tokio::test]
async fn a_claimed_notice_belongs_to_its_worker_until_the_lease_ends() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[])).await;
        scene.track("a", 0).await;
        let first = scene.claim().await;
        assert_eq!((first[0].attempt, first[0].failures), (1, 0));
        scene.at(MINUTE - 1);
        assert_eq!(scene.heard().await, SILENCE);
        scene.at(MINUTE);
        let second = scene.claim().await;
        // F2: a lapse counts as an attempt and as no failure
        assert_eq!((second[0].attempt, second[0].failures), (2, 0));
        assert_ne!(first[0].token, second[0].token);
        assert_eq!(scene.ack(&first).await, [Settled::Stale]);
        assert_eq!(scene.recheck(&first).await, [Checked::Stale]);
        assert_eq!(scene.ack(&second).await, [Settled::Settled]);
    }
}

#[tokio::test]
async fn an_extended_lease_ends_later_and_never_earlier() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[])).await;
        scene.track("a", 0).await;
        let claims = scene.claim().await;
        assert_eq!(scene.extend(&claims, 1_000).await, [Settled::Settled]);
        assert_eq!(due_at(scene.claim_some("main", 1).await.next), Some(MINUTE));
        scene.at(MINUTE / 2);
        assert_eq!(scene.extend(&claims, MINUTE).await, [Settled::Settled]);
        assert_eq!(due_at(scene.claim_some("main", 1).await.next), Some(MINUTE + MINUTE / 2));
        scene.at(MINUTE);
        assert_eq!(scene.heard().await, SILENCE);
        assert_eq!(scene.ack(&claims).await, [Settled::Settled]);
    }
}

#[tokio::test]
async fn a_released_notice_is_ready_at_once_and_no_attempt_is_burnt() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track("a", 30 * MINUTE).await;
        scene.at(20 * MINUTE);
        let mut claims = scene.claim().await;
        for _ in 0..20 {
            // F4
            assert_eq!(scene.release(&claims).await, [Settled::Settled]);
            assert_eq!(scene.release(&claims).await, [Settled::Stale]);
            claims = scene.claim().await;
            assert_eq!((claims[0].attempt, claims[0].failures), (1, 0));
            assert_eq!((claims[0].due_at_ms, claims[0].on_set), (START + 20 * MINUTE, false));
        }
        assert_eq!(scene.ack(&claims).await, [Settled::Settled]);
    }
}

#[tokio::test]
async fn a_failed_cleanup_waits_for_the_delay_its_worker_gives() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[])).await;
        scene.track("a", 0).await;
        let claims = scene.claim().await;
        let answer = scene.fail(&claims, Verdict::Backoff(Duration::from_secs(30))).await;
        assert_eq!(answer, [Settled::Retry { next_attempt_at_ms: START + 30_000 }]);
        assert_eq!(scene.ack(&claims).await, [Settled::Stale]);
        scene.at(29_999);
        assert_eq!(scene.heard().await, SILENCE);
        scene.at(30_000);
        let again = scene.claim().await;
        assert_eq!((again[0].attempt, again[0].failures), (2, 1));
        assert_eq!(again[0].due_at_ms, START, "the instant it was due at first");
    }
}

#[tokio::test]
async fn the_delay_of_a_failed_reminder_is_cut_to_a_quarter_of_its_window_unless_asked_for() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m", "2m"])).await;
        scene.track("a", 30 * MINUTE).await;
        scene.track("b", 30 * MINUTE).await;
        scene.at(20 * MINUTE);
        let claims = scene.claim().await;
        // F5: from 20m to 28m it may speak
        let answer = scene.fail(&claims[..1], Verdict::Backoff(Duration::from_secs(3600))).await;
        assert_eq!(answer, [Settled::Retry { next_attempt_at_ms: START + 22 * MINUTE }]);
        let answer = scene.fail(&claims[1..], retry(5 * 60)).await;
        assert_eq!(answer, [Settled::Retry { next_attempt_at_ms: START + 25 * MINUTE }]);
    }
}

#[tokio::test]
async fn the_failure_that_reaches_the_limit_makes_a_dead_letter() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&[])).await;
        scene.track_as(forewarn::model::Mode::Upsert, "a", 0, Some("who")).await;
        for failures in 0..3 {
            let claims = scene.claim().await;
            assert_eq!((claims[0].attempt, claims[0].failures), (failures + 1, failures));
            let last = failures == 2;
            let answer =
                scene.store.fail(&scene.name, &route("main"), &[failing(&claims[0], retry(0), 3)]).await.unwrap();
            // F3
            assert_eq!(answer[0] == Settled::Dead, last, "{answer:?}");
        }
        assert_eq!(scene.heard().await, SILENCE);
        let letters = scene.parked(Shelf::Dead).await;
        assert_eq!(letters[0].payload.as_deref(), Some(&b"who"[..]));
        // F7
        let attempts: Vec<_> = letters[0].failures.iter().map(|failure| failure.attempt).collect();
        assert_eq!(attempts, [1, 2, 3]);
        let first = &letters[0].failures[0];
        assert_eq!((first.stage.as_str(), first.class.as_str()), ("deliver", "timeout"));
        assert_eq!(first.summary, "no answer from the mail server");
        assert_eq!((first.at_ms, first.next_attempt_at_ms), (START, Some(START)));
        assert_eq!(scene.show("a").await, None, "parking settles the delivery");
        assert!(scene.store.discard(&scene.name, Shelf::Dead, &letters).await.unwrap()[0]);
        assert_eq!(scene.leftovers().await, SILENCE, "no failure record stays behind");
    }
}

#[tokio::test]
async fn a_notice_whose_workers_vanish_too_often_becomes_a_dead_letter_of_class_lapsed() {
    for kind in grounds() {
        let mut settings = reminding(&[]);
        settings.max_deliveries = 3;
        let scene = Scene::open(kind, settings).await;
        scene.track("a", 0).await;
        for attempt in 1..=3 {
            let claims = scene.claim().await;
            assert_eq!((claims[0].attempt, claims[0].failures), (attempt, 0));
            scene.pass(MINUTE);
        }
        // F3
        let last = scene.claim_some("main", 10).await;
        assert_eq!((last.claims.len(), last.lapsed), (0, 1));
        let letters = scene.parked(Shelf::Dead).await;
        assert_eq!(letters[0].failures.last().unwrap().class.as_str(), "lapsed");
        assert_eq!(scene.show("a").await, None);
    }
}

#[tokio::test]
async fn a_notice_that_may_kill_its_workers_goes_out_in_small_claims() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[])).await;
        for n in 0..20 {
            scene.track(&format!("a{n:02}"), 0).await;
        }
        assert_eq!(scene.claim_some("main", 100).await.claims.len(), 20);
        scene.pass(MINUTE);
        assert_eq!(scene.claim_some("main", 100).await.claims.len(), 20, "a first lapse may be anything");
        scene.pass(MINUTE);
        // F8
        let sizes: Vec<_> = [
            scene.claim_some("main", 100).await,
            scene.claim_some("main", 100).await,
            scene.claim_some("main", 100).await,
        ]
        .iter()
        .map(|claims| (claims.claims.len(), claims.next == Next::Backlog))
        .collect();
        assert_eq!(sizes, [(8, true), (8, true), (4, false)]);
    }
}

#[tokio::test]
async fn a_failed_claim_that_is_void_is_dropped_with_the_reason() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["10m", "1m"])).await;
        for text in ["a", "b", "c"] {
            scene.track(text, 30 * MINUTE).await;
        }
        scene.at(20 * MINUTE);
        let claims = scene.claim().await;
        scene.raw_set("a", 60 * MINUTE).await;
        // F6
        assert_eq!(scene.fail(&claims[..1], retry(1)).await, [Settled::Dropped(DropReason::Superseded)]);
        scene.at(29 * MINUTE);
        assert_eq!(scene.release(&claims[1..2]).await, [Settled::Dropped(DropReason::Coalesced)]);
        scene.at(30 * MINUTE);
        assert_eq!(scene.fail(&claims[2..], Verdict::Dead).await, [Settled::Dropped(DropReason::Expired)]);
        assert!(scene.parked(Shelf::Dead).await.is_empty());
    }
}

#[tokio::test]
async fn what_is_no_token_settles_nothing() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&[])).await;
        scene.track("a", 0).await;
        let claims = scene.claim().await;
        let before = scene.keyspace().await;
        let good = String::from_utf8(beneath(&claims[0].token)).unwrap();
        let (fence, notice) = good.split_once(':').unwrap();
        let other = fence.parse::<u32>().unwrap() + 1;
        let damaged =
            ["", "65", ":", "65:", "x:0:1:a", "65:0:1", "65:0:1:", "65:+5:1:a", "65:x:1:a", "65:0:x:a", "65:0::a"];
        for text in [format!("{other}:{notice}"), format!("0:{notice}"), format!("64:{notice}"), format!("{good}x")]
            .into_iter()
            .chain(damaged.map(str::to_owned))
        {
            // One that is no token does not take another along.
            let tokens = [forged(&claims[0].token, text.clone()), claims[0].token.clone()];
            let (stale, main) = (&tokens[..1], route("main"));
            assert_eq!(scene.store.ack(&scene.name, &main, stale).await.unwrap(), [Settled::Stale], "{text}");
            let extended = scene.store.extend(&scene.name, &main, stale, LEASE).await.unwrap();
            assert_eq!(extended, [Settled::Stale], "{text}");
            assert_eq!(scene.store.release(&scene.name, &main, stale).await.unwrap(), [Settled::Stale], "{text}");
            let failed = [Failing { token: tokens[0].clone(), ..failing(&claims[0], retry(1), 8) }];
            assert_eq!(scene.store.fail(&scene.name, &main, &failed).await.unwrap(), [Settled::Stale], "{text}");
            let checked = scene.store.recheck(&scene.name, &main, &tokens).await.unwrap();
            assert_eq!(checked, [Checked::Stale, Checked::Current], "{text}");
        }
        assert_eq!(scene.keyspace().await, before);
        assert_eq!(scene.ack(&claims).await, [Settled::Settled]);
    }
}

#[tokio::test]
async fn hand_outs_are_counted_up_to_fifteen_and_the_token_changes_all_the_same() {
    for kind in grounds() {
        let mut settings = reminding(&[]);
        settings.max_deliveries = 1_000;
        let scene = Scene::open(kind, settings).await;
        scene.track("a", 0).await;
        let mut last = None;
        for attempt in 1..=40 {
            let claims = scene.claim().await;
            assert_eq!(claims[0].attempt, attempt);
            assert_ne!(Some(&claims[0].token), last.as_ref());
            last = Some(claims[0].token.clone());
            let view = scene.show("a").await.unwrap();
            assert_eq!(u32::from(view.deliveries[0].hand_outs), attempt.min(15));
            scene.pass(MINUTE);
        }
    }
}

#[tokio::test]
async fn limit_zero_only_looks() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[])).await;
        scene.track("a", 0).await;
        let looked = scene.claim_some("main", 0).await;
        assert_eq!((looked.claims.len(), looked.next), (0, Next::Backlog));
        assert_eq!(words(&scene.claim().await), ["expired a"]);
    }
}
