//! When a cleanup happens and how long it stays valid (W4 to W6), and recurring deadlines.

use std::time::Duration;

use forewarn::model::{Kind, Mode, Name, Notice, OnRearm, Reason, Settings};
use forewarn::store::{Checked, Claim, DropReason, Expired, Removed, Settled, Verdict};

use crate::ground::grounds;
use crate::operation::START;
use crate::scene::{MINUTE, Scene, due_at, id, reminding, said, words};

const SILENCE: [&str; 0] = [];

fn delivering() -> Settings {
    let mut settings = reminding(&["10m"]);
    settings.on_rearm = OnRearm::Deliver;
    settings
}

#[tokio::test]
async fn a_cleanup_comes_when_expiry_and_grace_have_passed() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"]).grace(Duration::from_secs(60))).await;
        scene.track("a", 30 * MINUTE).await;
        scene.at(20 * MINUTE);
        scene.handled().await;
        let next = scene.claim_some("main", 10).await.next;
        assert_eq!(due_at(next), Some(31 * MINUTE));
        // W4
        scene.at(31 * MINUTE - 1);
        assert_eq!(scene.heard().await, SILENCE);
        assert!(scene.show("a").await.unwrap().expires_at_ms.is_some());
        scene.at(31 * MINUTE);
        let claims = scene.claim().await;
        assert_eq!(words(&claims), ["expired a"]);
        assert_eq!(claims[0].due_at_ms, START + 31 * MINUTE);
        let view = scene.show("a").await.unwrap();
        assert_eq!((view.expires_at_ms, view.open.as_ref()), (None, Some(&claims[0].notice)));
    }
}

#[tokio::test]
async fn a_cleanup_is_settled_exactly_once() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track("a", 0).await;
        let claims = scene.claim().await;
        assert_eq!(scene.ack(&claims).await, [Settled::Settled]);
        assert_eq!(scene.ack(&claims).await, [Settled::Stale]);
        scene.pass(60 * MINUTE);
        assert_eq!(scene.heard().await, SILENCE);
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}

#[tokio::test]
async fn a_new_life_voids_the_open_cleanup_of_the_last() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track("a", 0).await;
        let claims = scene.claim().await;
        // W5.2
        scene.track("a", 60 * MINUTE).await;
        assert_eq!(scene.recheck(&claims).await, [Checked::Stale]);
        assert_eq!(scene.ack(&claims).await, [Settled::Stale]);
        scene.pass(2 * MINUTE);
        assert_eq!(scene.heard().await, SILENCE);
    }
}

#[tokio::test]
async fn a_raw_new_life_voids_the_open_cleanup_of_the_last() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["10m"])).await;
        for text in ["a", "b", "c", "d"] {
            scene.track(text, 0).await;
        }
        let claims = scene.claim().await;
        for text in ["a", "b", "c", "d"] {
            scene.raw_set(text, 60 * MINUTE).await;
        }
        // W5.1
        let superseded = DropReason::Superseded;
        assert_eq!(scene.recheck(&claims[..1]).await, [Checked::Dropped(superseded)]);
        assert_eq!(scene.extend(&claims[1..2], MINUTE).await, [Settled::Dropped(superseded)]);
        assert_eq!(
            scene.fail(&claims[2..3], Verdict::RetryAfter(Duration::ZERO)).await,
            [Settled::Dropped(superseded)]
        );
        scene.pass(2 * MINUTE);
        let dropped = scene.claim_some("main", 10).await;
        assert_eq!((dropped.claims.len(), dropped.dropped.superseded), (0, 1));
    }
}

#[tokio::test]
async fn the_next_cleanup_of_an_id_voids_the_one_before() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track("a", 0).await;
        let old = scene.claim().await;
        scene.raw_set("a", MINUTE / 2).await;
        scene.at(MINUTE / 2);
        let new = scene.claim().await;
        assert_eq!(words(&new), ["expired a"]);
        // W5.1: open names the later one
        assert_eq!(scene.recheck(&old).await, [Checked::Dropped(DropReason::Superseded)]);
        assert_eq!(scene.ack(&old).await, [Settled::Stale]);
        assert_eq!(scene.ack(&new).await, [Settled::Settled]);
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}

#[tokio::test]
async fn where_lives_own_their_resources_every_cleanup_is_delivered() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, delivering()).await;
        scene.track_as(Mode::Upsert, "a", 0, Some("one")).await;
        let first = scene.claim().await;
        // W5.2
        scene.track_as(Mode::Upsert, "a", MINUTE, Some("two")).await;
        assert_eq!(scene.recheck(&first).await, [Checked::Current]);
        scene.at(MINUTE);
        let second = scene.claim().await;
        assert_eq!(words(&second), ["expired a", "expired a"], "the first one's lease has ended, too");
        let payloads: Vec<_> = second.iter().map(|claim| claim.payload.as_deref().unwrap_or_default()).collect();
        assert!(payloads.contains(&&b"one"[..]) && payloads.contains(&&b"two"[..]));
        assert_eq!(scene.ack(&second).await, [Settled::Settled, Settled::Settled]);
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}

#[tokio::test]
async fn removing_an_armed_id_voids_an_earlier_cleanup_unless_each_is_delivered() {
    for kind in grounds() {
        for (settings, expected) in [(reminding(&["10m"]), Settled::Stale), (delivering(), Settled::Settled)] {
            let mut scene = Scene::open(kind, settings).await;
            scene.track("a", 0).await;
            let claims = scene.claim().await;
            scene.raw_set("a", 60 * MINUTE).await;
            // W5.3
            assert_eq!(scene.remove("a").await, Removed::Removed);
            assert_eq!(scene.ack(&claims).await, [expected]);
            assert_eq!(scene.leftovers().await, SILENCE);
        }
    }
}

#[tokio::test]
async fn expire_silences_reminders_and_cleans_up_at_once() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"]).grace(Duration::from_secs(60))).await;
        scene.track_as(Mode::Upsert, "a", 30 * MINUTE, Some("who")).await;
        scene.at(20 * MINUTE);
        let reminders = scene.claim().await;
        scene.at(21 * MINUTE);
        // W6
        assert_eq!(scene.expire("a").await, Expired::Ended);
        assert_eq!(scene.ack(&reminders).await, [Settled::Stale]);
        let claims = scene.claim().await;
        assert_eq!(words(&claims), ["ended a"]);
        // T3
        assert_eq!((claims[0].due_at_ms, claims[0].on_set), (START + 21 * MINUTE, false));
        assert_eq!(claims[0].payload.as_deref(), Some(&b"who"[..]));
        scene.ack(&claims).await;
        scene.at(60 * MINUTE);
        assert_eq!(scene.heard().await, SILENCE);
    }
}

#[tokio::test]
async fn the_event_id_of_a_claim_is_the_documented_hash() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track("a", 0).await;
        let claims = scene.claim().await;
        // W7
        let notice = Notice {
            namespace: Name::new("namespace", scene.name.as_str()).unwrap(),
            kind: Kind::Cleanup(Reason::Expired),
            expires_at_ms: START,
            id: id("a"),
        };
        assert_eq!(claims[0].notice.event_id(), notice.event_id());
    }
}

#[tokio::test]
async fn a_recurring_deadline_is_armed_again_by_its_own_cleanup() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["1m"])).await;
        scene.track_as(Mode::Upsert, "a", 10 * MINUTE, Some("who")).await;
        scene.recur("a", &(10 * MINUTE).to_string()).await;
        scene.at(10 * MINUTE);
        let first = scene.claim().await;
        assert_eq!(words(&first), ["expired a"]);
        assert_eq!(scene.show("a").await.unwrap().expires_at_ms, Some(START + 20 * MINUTE));
        // W5.1: armed again by its own recurrence, and still valid
        assert_eq!(scene.recheck(&first).await, [Checked::Current]);
        assert_eq!(scene.ack(&first).await, [Settled::Settled]);
        scene.at(19 * MINUTE);
        assert_eq!(scene.handled().await, ["1m a"]);
        // After a standstill it goes on at the next multiple.
        scene.at(45 * MINUTE);
        let late = scene.claim().await;
        assert_eq!(words(&late), ["expired a"]);
        assert_eq!(late[0].payload.as_deref(), Some(&b"who"[..]));
        assert_eq!(scene.show("a").await.unwrap().expires_at_ms, Some(START + 50 * MINUTE));
        scene.extend(&late, 10 * MINUTE).await;
        // W5.1: the next occurrence's cleanup makes this one void.
        scene.at(50 * MINUTE);
        let next = scene.claim_some("main", 10).await;
        assert_eq!(words(&next.claims), ["expired a"]);
        assert_eq!(scene.ack(&late).await, [Settled::Stale]);
        scene.ack(&next.claims).await;
        assert_eq!(scene.remove("a").await, Removed::Removed);
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}

#[tokio::test]
async fn a_deadline_may_recur_by_a_cron_expression() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&[])).await;
        // 2001-09-09 01:46:40 UTC is where every scene begins.
        scene.track("a", 1_000).await;
        scene.track("b", 2_000).await;
        scene.track("c", 2_000).await;
        scene.recur("a", "cron:0 2 * * *").await;
        scene.recur("c", "cron:nonsense").await;
        scene.at(3_000);
        assert_eq!(scene.heard().await, ["expired a", "expired b", "expired c"]);
        // 02:00:00 UTC of that day
        assert_eq!(scene.show("a").await.unwrap().expires_at_ms, Some(1_000_000_800_000));
        let view = scene.show("c").await.unwrap();
        assert_eq!((view.expires_at_ms, view.every), (None, None), "what cannot recur is cleaned up for good");
    }
}

#[tokio::test]
async fn renewal_of_what_is_overdue_is_allowed_while_cleanups_are_paused() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track("a", MINUTE).await;
        scene.track("b", MINUTE).await;
        scene.pause(None, false, true, true).await;
        scene.at(5 * MINUTE);
        assert_eq!(scene.heard().await, SILENCE);
        // W9: an operator pauses to save people
        assert_eq!(scene.renew("a", 60 * MINUTE).await, forewarn::store::Renewed::Renewed);
        scene.pause(None, false, true, false).await;
        assert_eq!(scene.renew("b", 60 * MINUTE).await, forewarn::store::Renewed::Expired);
        assert_eq!(scene.heard().await, ["expired b"]);
    }
}

#[tokio::test]
async fn lives_that_end_with_the_same_expiry_in_two_ways_keep_their_payloads_apart() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, delivering()).await;
        scene.track_as(Mode::Upsert, "a", 30 * MINUTE, Some("one")).await;
        scene.expire("a").await;
        scene.track_as(Mode::Upsert, "a", 30 * MINUTE, Some("two")).await;
        scene.at(30 * MINUTE);
        let carried = |claims: &[Claim]| {
            let text = |claim: &Claim| String::from_utf8(claim.payload.clone().unwrap()).unwrap();
            let mut carried: Vec<_> =
                claims.iter().map(|claim| format!("{}: {}", said(&claim.notice), text(claim))).collect();
            carried.sort();
            carried
        };
        let mut claims = scene.claim().await;
        assert_eq!(carried(&claims), ["ended a: one", "expired a: two"]);
        // The end of the one takes nothing from the other.
        claims.sort_by_key(|claim| said(&claim.notice));
        assert_eq!(scene.ack(&claims[..1]).await, [Settled::Settled]);
        assert_eq!(scene.release(&claims[1..]).await, [Settled::Settled]);
        let claims = scene.claim().await;
        assert_eq!(carried(&claims), ["expired a: two"]);
        assert_eq!(scene.ack(&claims).await, [Settled::Settled]);
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}
