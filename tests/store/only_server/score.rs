//! What raw clients write: scores of any kind, ids that are none, and ids from before the namespace (S4, V5).

use forewarn::model::FirstStart;
use forewarn::store::{Change, Removed, Renewed, Settled, Tracked};

use crate::harness::servers;
use crate::operation::{Case, Op, START};
use crate::regression::{claim, replay_on, track};
use crate::scene::{MINUTE, Scene, lead, reminding, words};

const SILENCE: [&str; 0] = [];

#[tokio::test]
async fn a_raw_score_that_cannot_be_an_expiry_goes_to_quarantine_and_disturbs_nobody() {
    for kind in servers() {
        let mut scene = Scene::open(kind, reminding(&["10m"])).await;
        for (text, score) in [
            ("seconds", "1796083200"),
            ("small", "0.5"),
            ("below", "99999999999"),
            ("micros", "1796083200000000"),
            ("beyond", "100000000000001"),
            ("never", "inf"),
        ] {
            scene.raw_score(text, score).await;
        }
        scene.track("good", 5 * MINUTE).await;
        scene.track("due", 0).await;
        // V5: at most `limit` of each kind a call
        let first = scene.claim_some("main", 2).await;
        assert_eq!(first.quarantined, 4);
        let heard: Vec<_> = words(&first.claims).into_iter().chain(scene.handled().await).collect();
        assert_eq!(heard, ["expired due"]);
        let stats = scene.store.stats(&scene.name).await.unwrap();
        assert_eq!((stats.quarantined, stats.armed, stats.counters.quarantined), (6, 1, 6));
        assert_eq!(scene.show("never").await.unwrap().quarantined.as_deref(), Some("inf"));
        assert_eq!(scene.renew("seconds", 5 * MINUTE).await, Renewed::Unknown);
        // until it is set again or removed
        assert_eq!(scene.track("seconds", 20 * MINUTE).await, Tracked::Created { already_expired: false });
        scene.raw_set("micros", 20 * MINUTE).await;
        assert_eq!(scene.remove("small").await, Removed::Removed);
        scene.at(10 * MINUTE);
        assert_eq!(scene.handled().await, ["10m micros", "10m seconds", "expired good"]);
        assert_eq!(scene.store.stats(&scene.name).await.unwrap().quarantined, 3);
    }
}

#[tokio::test]
async fn a_raw_score_that_is_not_after_1970_means_clean_up_now() {
    for kind in servers() {
        let mut scene = Scene::with_routes(kind, reminding(&["10m"]), &["main", "mail"]).await;
        for (text, score) in [("a", "0"), ("b", "-0"), ("c", "-5"), ("d", "-1e300"), ("e", "-inf"), ("f", "-0.25")] {
            scene.raw_score(text, score).await;
        }
        let all = ["a", "b", "c", "d", "e", "f"].map(|text| format!("expired {text}"));
        // V5
        let claims = scene.claim().await;
        assert_eq!(words(&claims), all);
        assert!(claims.iter().all(|claim| claim.notice.expires_at_ms == 0));
        assert!(scene.ack(&claims).await.iter().all(|answer| *answer == Settled::Settled));
        assert_eq!(scene.handled_on("mail").await, all);
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}

#[tokio::test]
async fn a_fraction_of_a_millisecond_is_kept_and_cut_in_events() {
    for kind in servers() {
        let mut scene = Scene::with_routes(kind, reminding(&["10m"]), &["main", "mail"]).await;
        let e = START + 30 * MINUTE;
        for (text, fraction) in [("a", "25"), ("b", "5"), ("c", "999")] {
            scene.raw_score(text, &format!("{e}.{fraction}")).await;
        }
        scene.at(20 * MINUTE);
        assert_eq!(scene.heard().await, SILENCE, "never early");
        scene.at(20 * MINUTE + 1);
        // V5
        let claims = scene.claim().await;
        assert_eq!(words(&claims), ["10m a", "10m b", "10m c"]);
        assert!(claims.iter().all(|claim| claim.notice.expires_at_ms == e && claim.attempt == 1));
        assert!(scene.ack(&claims).await.iter().all(|answer| *answer == Settled::Settled));
        assert_eq!(scene.handled_on("mail").await.len(), 3);
        assert_eq!(scene.remove("c").await, Removed::Removed);
        scene.at(30 * MINUTE + 1);
        for name in ["main", "mail"] {
            let claims = scene.claim_on(name).await;
            assert_eq!(words(&claims), ["expired a", "expired b"]);
            assert!(claims.iter().all(|claim| claim.attempt == 1), "{claims:?}");
            assert!(scene.ack_on(name, &claims).await.iter().all(|answer| *answer == Settled::Settled));
        }
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}

#[tokio::test]
async fn a_raw_id_that_is_none_disturbs_nobody() {
    for kind in servers() {
        let mut scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.raw_set("", 0).await;
        scene.raw_set(&"x".repeat(1025), 0).await;
        scene.raw_set(&"~".repeat(1025), 0).await;
        scene.raw_set(&"y".repeat(70_000), 30 * MINUTE).await;
        scene.track("good", 30 * MINUTE).await;
        // V5: what is no id goes to quarantine, too
        assert_eq!(scene.handled().await, SILENCE);
        scene.at(20 * MINUTE);
        assert_eq!(scene.handled().await, ["10m good"]);
        scene.at(30 * MINUTE);
        assert_eq!(scene.handled().await, ["expired good"]);
        assert_eq!(scene.store.stats(&scene.name).await.unwrap().quarantined, 4);
    }
}

#[tokio::test]
async fn ids_that_are_inside_a_lead_when_a_namespace_begins_are_reminded_unless_it_begins_silently() {
    for kind in servers() {
        for (first_start, expected) in [(FirstStart::Speak, vec!["10m a"]), (FirstStart::Silent, vec![])] {
            let mut scene = Scene::bare(kind).await;
            scene.raw_set("a", 5 * MINUTE).await;
            scene.raw_set("b", 15 * MINUTE).await;
            let change = Change { first_start, ..Change::settings(reminding(&["10m"])) };
            // S4
            let preview = scene.store.preview(&scene.name, &change).await.unwrap();
            assert_eq!(preview.reminders, [(lead("10m"), expected.len() as u64)]);
            scene.store.configure(&scene.name, &change).await.unwrap();
            assert_eq!(scene.handled().await, expected);
            scene.at(5 * MINUTE);
            assert_eq!(scene.handled().await, ["10m b", "expired a"]);
        }
    }
}

#[tokio::test]
async fn a_notice_under_a_lease_is_not_handed_out_again_for_the_same_raw_score() {
    let again = Op::RawScore { id: 0, score: 0.0 };
    for kind in servers() {
        replay_on(kind.into(), &Case::default(), &[again.clone(), claim(1), again.clone()]).await;
    }
}

#[tokio::test]
async fn a_fraction_of_a_millisecond_is_no_hand_out() {
    let case = Case { grace: 3, routes: vec![(true, true, None), (true, true, None)], ..Case::default() };
    let delivers = Case { delivers: true, ..case.clone() };
    let fraction = Op::RawScore { id: 0, score: 999_999_999_995.5 };
    for kind in servers() {
        let ops = [fraction.clone(), claim(1), Op::Claim { route: 1, limit: 1, lease: 1 }];
        replay_on(kind.into(), &case, &ops).await;
        replay_on(kind.into(), &delivers, &[fraction.clone(), track(0, 20), claim(3)]).await;
    }
}

#[tokio::test]
async fn a_quarantined_id_is_shown_and_can_be_removed() {
    for kind in servers() {
        let mut scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.raw_score("q", "1234567890").await;
        scene.claim().await;
        assert_eq!(scene.show("q").await.unwrap().quarantined.as_deref(), Some("1234567890"));
        assert_eq!(scene.remove("q").await, Removed::Removed);
        assert_eq!(scene.show("q").await, None);
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}
