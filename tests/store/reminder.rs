//! When a reminder speaks (W1 to W3, W8).

use std::time::Duration;

use forewarn::model::{Late, Settings};
use forewarn::store::{Checked, DropReason, Settled, Verdict};

use crate::ground::grounds;
use crate::operation::START;
use crate::scene::{MINUTE, Scene, due_at, reminding, words};

const SILENCE: [&str; 0] = [];

fn late(late: Late) -> Settings {
    reminding(&["10m", "1m"]).late(late)
}

#[tokio::test]
async fn a_reminder_speaks_when_its_lead_is_reached_and_never_earlier() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m", "1m"])).await;
        scene.track("a", 30 * MINUTE).await;
        let next = scene.claim_some("main", 10).await.next;
        assert_eq!(due_at(next), Some(20 * MINUTE));
        // W1: exactly L counts as inside
        scene.at(20 * MINUTE - 1);
        assert_eq!(scene.handled().await, SILENCE);
        scene.at(20 * MINUTE);
        assert_eq!(scene.handled().await, ["10m a"]);
        scene.at(29 * MINUTE - 1);
        assert_eq!(scene.handled().await, SILENCE);
        scene.at(29 * MINUTE);
        assert_eq!(scene.handled().await, ["1m a"]);
        scene.at(30 * MINUTE);
        assert_eq!(scene.handled().await, ["expired a"]);
    }
}

#[tokio::test]
async fn after_a_standstill_only_the_tightest_lead_speaks() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["20m", "10m", "1m"])).await;
        scene.track("a", 30 * MINUTE).await;
        scene.track("b", 38 * MINUTE).await;
        scene.track("c", 15 * MINUTE).await;
        // W1
        scene.at(29 * MINUTE);
        assert_eq!(scene.heard().await, ["10m b", "1m a", "expired c"]);
    }
}

#[tokio::test]
async fn a_reminder_whose_window_has_passed_is_not_retried() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m", "1m"])).await;
        scene.track("a", 30 * MINUTE).await;
        scene.track("b", 30 * MINUTE).await;
        scene.at(20 * MINUTE);
        let claims = scene.claim().await;
        scene.fail(&claims[..1], Verdict::RetryAfter(Duration::from_secs(599))).await;
        // W1 holds for every later hand-out: at 29m the lead of 1m speaks and that of 10m is coalesced into it.
        scene.at(30 * MINUTE - 1);
        let claims = scene.claim_some("main", 100).await;
        assert_eq!(words(&claims.claims), ["1m a", "1m b"]);
        assert_eq!(claims.dropped.coalesced, 2);
    }
}

#[tokio::test]
async fn a_deadline_created_inside_a_lead_is_not_reminded() {
    for kind in grounds() {
        let scene = Scene::open(kind, late(Late::Crossing)).await;
        // W3.2, leads longer than the TTL
        scene.track("a", 5 * MINUTE).await;
        scene.track("b", MINUTE / 2).await;
        assert_eq!(scene.handled().await, SILENCE);
        scene.at(4 * MINUTE);
        assert_eq!(scene.handled().await, ["1m a", "expired b"]);
    }
}

#[tokio::test]
async fn a_deadline_revived_in_grace_or_by_a_new_life_is_not_reminded_late() {
    for kind in grounds() {
        let scene = Scene::open(kind, late(Late::Crossing).grace(Duration::from_secs(60))).await;
        scene.track("a", 20 * MINUTE).await;
        scene.track("b", 20 * MINUTE).await;
        scene.at(20 * MINUTE);
        // W3.2: revived during grace
        scene.renew("a", 25 * MINUTE).await;
        scene.at(21 * MINUTE);
        // W3.2: a new life over an expired one
        scene.track("b", 26 * MINUTE).await;
        assert_eq!(scene.handled().await, SILENCE);
    }
}

#[tokio::test]
async fn a_renewal_from_outside_to_inside_speaks_at_once_with_the_tightest_lead() {
    for kind in grounds() {
        let scene = Scene::open(kind, late(Late::Crossing)).await;
        scene.track("a", 60 * MINUTE).await;
        scene.track("b", 60 * MINUTE).await;
        scene.handled().await;
        // W3.2
        scene.renew("a", 5 * MINUTE).await;
        scene.renew("b", MINUTE / 2).await;
        let claims = scene.claim().await;
        assert_eq!(words(&claims), ["10m a", "1m b"]);
        // T3
        assert!(claims.iter().all(|claim| claim.on_set && claim.due_at_ms == START));
    }
}

#[tokio::test]
async fn a_renewal_within_a_lead_that_has_spoken_is_silent() {
    for kind in grounds() {
        let scene = Scene::open(kind, late(Late::Crossing)).await;
        scene.track("a", 30 * MINUTE).await;
        scene.at(20 * MINUTE);
        assert_eq!(scene.handled().await, ["10m a"]);
        scene.at(21 * MINUTE);
        // W3.2
        scene.renew("a", 31 * MINUTE).await;
        assert_eq!(scene.handled().await, SILENCE);
        scene.renew("a", 25 * MINUTE).await;
        assert_eq!(scene.handled().await, SILENCE);
        scene.at(24 * MINUTE);
        assert_eq!(scene.handled().await, ["1m a"]);
    }
}

#[tokio::test]
async fn a_renewal_within_a_lead_still_owes_what_no_worker_has_said() {
    for kind in grounds() {
        let scene = Scene::open(kind, late(Late::Crossing)).await;
        scene.track("a", 30 * MINUTE).await;
        scene.track("b", 30 * MINUTE).await;
        scene.handled().await;
        scene.at(20 * MINUTE);
        // W3.2: not yet swept, so owed for the new expiry, unless a tighter lead covers it
        scene.renew("a", 29 * MINUTE).await;
        scene.renew("b", 20 * MINUTE + 1).await;
        assert_eq!(scene.handled().await, ["10m a", "1m b"]);
    }
}

#[tokio::test]
async fn a_renewal_owes_a_reminder_only_to_the_routes_that_have_not_heard_it() {
    for kind in grounds() {
        let scene = Scene::with_routes(kind, late(Late::Crossing), &["main", "mail"]).await;
        scene.track("a", 30 * MINUTE).await;
        scene.at(20 * MINUTE);
        assert_eq!(scene.heard_on("main").await, ["10m a"]);
        // W3.2: handed out to main, ready for mail
        scene.renew("a", 29 * MINUTE).await;
        assert_eq!(scene.heard_on("main").await, SILENCE);
        assert_eq!(scene.heard_on("mail").await, ["10m a"]);
    }
}

#[tokio::test]
async fn an_expiry_that_flaps_speaks_once_in_the_length_of_the_lead() {
    for kind in grounds() {
        let scene = Scene::open(kind, late(Late::Crossing)).await;
        scene.track("a", 60 * MINUTE).await;
        let mut heard = Vec::new();
        for minute in 0..25 {
            scene.at(minute * MINUTE);
            // W3.3
            scene.renew("a", (minute + 5) * MINUTE).await;
            heard.extend(scene.handled().await.into_iter().map(|word| format!("{minute}: {word}")));
            scene.renew("a", (minute + 60) * MINUTE).await;
        }
        assert_eq!(heard, ["0: 10m a", "10: 10m a", "20: 10m a"]);
    }
}

#[tokio::test]
async fn min_repeat_holds_back_neither_passing_time_nor_what_is_owed() {
    for kind in grounds() {
        let mut settings = late(Late::Crossing);
        settings.min_repeat = Some(Duration::from_secs(3600));
        let scene = Scene::open(kind, settings).await;
        scene.track("a", 60 * MINUTE).await;
        scene.handled().await;
        scene.renew("a", 9 * MINUTE).await;
        assert_eq!(scene.handled().await, ["10m a"]);
        // W3.3: the time that passes is not held back
        scene.renew("a", 11 * MINUTE).await;
        scene.at(MINUTE);
        assert_eq!(scene.handled().await, ["10m a"]);
        // but another crossing is
        scene.renew("a", 60 * MINUTE).await;
        scene.renew("a", 6 * MINUTE).await;
        assert_eq!(scene.handled().await, SILENCE);
    }
}

#[tokio::test]
async fn under_skip_a_late_lead_is_silent() {
    for kind in grounds() {
        let scene = Scene::open(kind, late(Late::Skip)).await;
        scene.track("a", 5 * MINUTE).await;
        scene.track("b", 60 * MINUTE).await;
        scene.handled().await;
        // W3.4
        scene.renew("b", 5 * MINUTE).await;
        assert_eq!(scene.handled().await, SILENCE);
        scene.at(4 * MINUTE);
        assert_eq!(scene.handled().await, ["1m a", "1m b"]);
    }
}

#[tokio::test]
async fn under_fire_the_tightest_late_lead_speaks_at_once() {
    for kind in grounds() {
        let scene = Scene::open(kind, late(Late::Fire)).await;
        // W3.5, W3.8
        scene.track("a", 5 * MINUTE).await;
        scene.track("b", MINUTE / 2).await;
        let claims = scene.claim().await;
        assert_eq!(words(&claims), ["10m a", "1m b"]);
        assert!(claims.iter().all(|claim| claim.on_set));
        scene.ack(&claims).await;
        assert_eq!(scene.handled().await, SILENCE);
    }
}

#[tokio::test]
async fn a_raw_set_inside_a_lead_speaks_if_no_worker_had_looked_that_far() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, late(Late::Crossing)).await;
        // W3.6: nobody has looked yet
        scene.raw_set("a", 5 * MINUTE).await;
        assert_eq!(scene.handled().await, ["10m a"]);
        // somebody has
        scene.raw_set("b", 5 * MINUTE).await;
        assert_eq!(scene.handled().await, SILENCE);
        // a raw set from outside to inside never crosses
        scene.raw_set("c", 60 * MINUTE).await;
        scene.raw_set("c", 6 * MINUTE).await;
        assert_eq!(scene.handled().await, SILENCE);
        // outside it speaks in its time
        scene.raw_set("d", 11 * MINUTE).await;
        scene.at(MINUTE);
        assert_eq!(scene.handled().await, ["10m d"]);
    }
}

#[tokio::test]
async fn a_renewal_settles_what_was_handed_out_for_the_old_expiry() {
    for kind in grounds() {
        let scene = Scene::open(kind, late(Late::Crossing)).await;
        scene.track("a", 30 * MINUTE).await;
        scene.at(20 * MINUTE);
        let claims = scene.claim().await;
        // W3.7
        scene.renew("a", 60 * MINUTE).await;
        assert_eq!(scene.recheck(&claims).await, [Checked::Stale]);
        assert_eq!(scene.ack(&claims).await, [Settled::Stale]);
        // The lease of the old one ends, and nothing is tried again.
        scene.at(25 * MINUTE);
        assert_eq!(scene.handled().await, SILENCE);
    }
}

#[tokio::test]
async fn a_removed_deadline_is_never_heard_of_again() {
    for kind in grounds() {
        let scene = Scene::open(kind, late(Late::Crossing)).await;
        for text in ["a", "b", "c"] {
            scene.track(text, 30 * MINUTE).await;
        }
        scene.remove("a").await;
        scene.at(20 * MINUTE);
        let claims = scene.claim().await;
        assert_eq!(words(&claims), ["10m b", "10m c"]);
        // W8: also while it is leased
        scene.remove("b").await;
        assert_eq!(scene.recheck(&claims).await, [Checked::Stale, Checked::Current]);
        scene.at(22 * MINUTE);
        assert_eq!(scene.heard().await, ["10m c"]);
        scene.at(30 * MINUTE);
        assert_eq!(scene.handled().await, ["expired c"]);
    }
}

#[tokio::test]
async fn a_claimed_reminder_is_void_once_a_raw_client_has_moved_or_removed_its_id() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, late(Late::Crossing)).await;
        for text in ["a", "b", "c", "d"] {
            scene.track(text, 30 * MINUTE).await;
        }
        scene.at(20 * MINUTE);
        let claims = scene.claim().await;
        scene.raw_set("a", 60 * MINUTE).await;
        scene.raw_remove("b").await;
        // W8: raw ZREM and raw ZADD of the very same expiry, and the old delivery serves the new life
        scene.raw_remove("c").await;
        scene.raw_set("c", 30 * MINUTE).await;
        let void = Checked::Dropped(DropReason::Superseded);
        assert_eq!(scene.recheck(&claims).await, [void, void, Checked::Current, Checked::Current]);
        assert_eq!(scene.ack(&claims).await, [Settled::Stale, Settled::Stale, Settled::Settled, Settled::Settled]);
    }
}

#[tokio::test]
async fn leads_below_a_second_are_exact_to_the_millisecond() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["250ms", "1ms"])).await;
        scene.track("a", 1_000).await;
        let mut heard = Vec::new();
        for ms in 740..=1_001 {
            scene.at(ms);
            heard.extend(scene.handled().await.into_iter().map(|word| format!("{ms}: {word}")));
        }
        assert_eq!(heard, ["750: 250ms a", "999: 1ms a", "1000: expired a"]);
    }
}

#[tokio::test]
async fn a_small_step_of_the_clock_back_repeats_nothing_and_loses_nothing() {
    for kind in grounds() {
        let scene = Scene::open(kind, late(Late::Crossing)).await;
        scene.track("a", 30 * MINUTE).await;
        scene.at(20 * MINUTE);
        assert_eq!(scene.handled().await, ["10m a"]);
        // T5: within the tolerance of 5 s
        scene.pass(-4_000);
        assert_eq!(scene.handled().await, SILENCE);
        // Set behind the place the sweep has come to, and reminded all the same.
        scene.track("b", 30 * MINUTE - 2_000).await;
        scene.at(20 * MINUTE - 2_001);
        assert_eq!(scene.handled().await, SILENCE);
        scene.at(20 * MINUTE - 2_000);
        assert_eq!(scene.handled().await, ["10m b"]);
        scene.at(20 * MINUTE + 1);
        assert_eq!(scene.handled().await, SILENCE);
    }
}

#[tokio::test]
async fn a_large_step_of_the_clock_back_may_repeat_and_loses_nothing() {
    for kind in grounds() {
        let scene = Scene::open(kind, late(Late::Crossing)).await;
        scene.track("a", 90 * MINUTE).await;
        scene.at(80 * MINUTE);
        assert_eq!(scene.handled().await, ["10m a"]);
        // T5
        scene.at(0);
        scene.track("b", 40 * MINUTE).await;
        scene.at(30 * MINUTE);
        assert_eq!(scene.handled().await, ["10m b"]);
        scene.at(80 * MINUTE);
        assert_eq!(scene.handled().await, ["10m a", "expired b"]);
    }
}

#[tokio::test]
async fn what_one_id_is_owed_is_not_owed_to_another_with_the_same_expiry() {
    for kind in grounds() {
        let scene = Scene::with_routes(kind, reminding(&["10m"]), &["main", "mail"]).await;
        scene.track("a", 30 * MINUTE).await;
        scene.track("b", 30 * MINUTE).await;
        scene.at(20 * MINUTE);
        assert_eq!(scene.handled().await, ["10m a", "10m b"]);
        let spoken = scene.claim_some("mail", 1).await.claims;
        scene.ack_on("mail", &spoken).await;
        let (spoken, other) = if words(&spoken) == ["10m a"] { ("a", "b") } else { ("b", "a") };
        // W3.3: its reminder was handed out, so this lead stays silent; that of the other was not.
        scene.renew(spoken, 29 * MINUTE).await;
        assert_eq!(scene.heard_on("mail").await, [format!("10m {other}")]);
        assert_eq!(scene.heard().await, SILENCE);
    }
}
