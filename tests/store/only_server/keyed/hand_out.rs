//! Examples of B1 to B6: what goes out, and what is found at the keys before.

use forewarn::Settings;
use forewarn::model::{OnGone, OnRearm};
use forewarn::store::{Checked, Next, Verdict};

use super::Keys;
use crate::harness::servers;
use crate::operation::{FAR, START};
use crate::scene::{MINUTE, failing, reminding};

#[tokio::test]
async fn a_key_that_was_renewed_unobserved_is_resynced_and_speaks_at_its_own_time() {
    for kind in servers() {
        let mut keys = Keys::open(kind, reminding(&["10m", "1m"])).await;
        keys.arm("a", 30 * MINUTE).await;
        assert!(keys.heard().await.is_empty());
        keys.slide("a", 45 * MINUTE).await;
        keys.at(20 * MINUTE).await;
        assert!(keys.heard().await.is_empty(), "the key expires later than the score says");
        assert_eq!(keys.armed("a").await, Some(45 * MINUTE));
        keys.at(35 * MINUTE).await;
        assert_eq!(keys.handled().await, ["10m a"]);
        keys.at(44 * MINUTE).await;
        assert_eq!(keys.handled().await, ["1m a"]);
        keys.at(45 * MINUTE).await;
        assert!(keys.heard().await.is_empty(), "at that very instant the key is still there");
        keys.at(45 * MINUTE + 1).await;
        assert_eq!(keys.handled().await, ["expired a"]);
        assert!(keys.scene.leftovers().await.is_empty());
        assert_eq!(keys.counters().await.resynced, 1);
    }
}

#[tokio::test]
async fn a_shortened_key_is_reminded_by_what_it_says_now() {
    for kind in servers() {
        let mut keys = Keys::open(kind, reminding(&["10m", "1m"])).await;
        keys.arm("a", 30 * MINUTE).await;
        keys.heard().await;
        keys.at(20 * MINUTE).await;
        keys.slide("a", 25 * MINUTE).await;
        assert_eq!(keys.handled().await, ["10m a"], "owed for the new expiry, which is inside the lead, too");
        assert_eq!(keys.armed("a").await, Some(25 * MINUTE));
        keys.at(24 * MINUTE).await;
        assert_eq!(keys.handled().await, ["1m a"]);
    }
}

#[tokio::test]
async fn a_key_without_ttl_is_disarmed_and_counted() {
    for kind in servers() {
        let mut keys = Keys::open(kind, reminding(&["10m"])).await;
        keys.arm("a", 30 * MINUTE).await;
        keys.persist("a").await;
        keys.at(20 * MINUTE).await;
        assert!(keys.heard().await.is_empty());
        assert_eq!((keys.armed("a").await, keys.counters().await.persisted), (None, 1));
        keys.at(40 * MINUTE).await;
        assert!(keys.heard().await.is_empty());
        assert!(keys.scene.leftovers().await.is_empty());
    }
}

#[tokio::test]
async fn a_key_that_vanished_early_is_cleaned_a_second_after_that_was_seen() {
    for kind in servers() {
        let mut keys = Keys::open(kind, reminding(&["10m"])).await;
        keys.arm("a", 30 * MINUTE).await;
        keys.delete("a").await;
        keys.at(20 * MINUTE).await;
        let claims = keys.scene.claim_some("main", 100).await;
        assert!(claims.claims.is_empty());
        assert!(matches!(claims.next, Next::At { due_at_ms: Some(at), .. } if at == START + FAR + 20 * MINUTE + 1000));
        keys.at(20 * MINUTE + 999).await;
        assert!(keys.heard().await.is_empty());
        keys.at(20 * MINUTE + 1000).await;
        assert_eq!(keys.handled().await, ["gone a"]);
        assert_eq!(keys.counters().await.gone, 1);
        assert!(keys.scene.leftovers().await.is_empty());
    }
}

#[tokio::test]
async fn a_key_that_is_back_within_the_second_goes_on_living() {
    for kind in servers() {
        for on_rearm in [OnRearm::Supersede, OnRearm::Deliver] {
            let mut settings = reminding(&["10m"]);
            settings.on_rearm = on_rearm;
            let mut keys = Keys::open(kind, settings).await;
            keys.arm("a", 30 * MINUTE).await;
            keys.delete("a").await;
            keys.at(20 * MINUTE).await;
            keys.heard().await;
            keys.slide("a", 50 * MINUTE).await;
            keys.at(20 * MINUTE + 1000).await;
            assert!(keys.heard().await.is_empty(), "it was only being rewritten");
            assert_eq!(keys.armed("a").await, Some(50 * MINUTE));
            keys.at(40 * MINUTE).await;
            assert_eq!(keys.handled().await, ["10m a"]);
            keys.at(51 * MINUTE).await;
            assert_eq!(keys.handled().await, ["expired a"]);
            assert!(keys.scene.leftovers().await.is_empty());
        }
    }
}

#[tokio::test]
async fn with_on_gone_drop_a_key_that_vanished_early_is_only_disarmed() {
    for kind in servers() {
        let mut keys = Keys::open(kind, reminding(&["10m"]).on_gone(OnGone::Drop)).await;
        keys.arm("a", 30 * MINUTE).await;
        keys.delete("a").await;
        keys.at(20 * MINUTE).await;
        assert!(keys.heard().await.is_empty());
        keys.at(40 * MINUTE).await;
        assert!(keys.heard().await.is_empty());
        assert_eq!((keys.armed("a").await, keys.counters().await.gone), (None, 1));
        assert!(keys.scene.leftovers().await.is_empty());
    }
}

#[tokio::test]
async fn a_retried_cleanup_is_void_once_the_key_is_back() {
    for kind in servers() {
        for (on_rearm, expected) in [(OnRearm::Supersede, &[][..]), (OnRearm::Deliver, &["expired a"][..])] {
            let mut settings = Settings::default();
            settings.on_rearm = on_rearm;
            let mut keys = Keys::open(kind, settings).await;
            keys.arm("a", MINUTE).await;
            keys.at(2 * MINUTE).await;
            let claims = keys.scene.claim().await;
            keys.scene.fail(&claims, Verdict::RetryAfter(std::time::Duration::from_secs(60))).await;
            keys.slide("a", 9 * MINUTE).await;
            keys.at(3 * MINUTE).await;
            assert_eq!(keys.handled().await, expected, "{on_rearm}");
            let armed = if on_rearm == OnRearm::Supersede { Some(9 * MINUTE) } else { None };
            assert_eq!(keys.armed("a").await, armed, "{on_rearm}");
        }
    }
}

#[tokio::test]
async fn what_waited_before_its_handler_is_checked_against_the_key() {
    for kind in servers() {
        let mut keys = Keys::open(kind, reminding(&["10m"])).await;
        for text in ["a", "b", "c"] {
            keys.arm(text, 30 * MINUTE).await;
        }
        keys.arm("d", 19 * MINUTE).await;
        keys.heard().await;
        keys.at(20 * MINUTE).await;
        let claims = keys.scene.claim().await;
        assert_eq!(keys.words(&claims), ["10m a", "10m b", "10m c", "expired d"]);
        keys.slide("b", 60 * MINUTE).await;
        keys.delete("c").await;
        keys.slide("d", 60 * MINUTE).await;
        let said = keys.words(&claims);
        let mut checked = Vec::new();
        for claim in &claims {
            checked.extend(keys.scene.recheck(std::slice::from_ref(claim)).await);
        }
        let of = |words: &str| {
            checked[claims.iter().position(|claim| keys.words(std::slice::from_ref(claim)) == [words]).unwrap()]
        };
        assert_eq!(of(&said[0]), Checked::Current);
        for words in &said[1..] {
            assert!(matches!(of(words), Checked::Dropped(_)), "{words}: {:?}", of(words));
        }
        assert_eq!(keys.armed("b").await, Some(60 * MINUTE));
        assert_eq!(keys.armed("d").await, Some(60 * MINUTE));
        keys.at(20 * MINUTE + 1000).await;
        assert_eq!(keys.heard().await, ["gone c"]);
    }
}

#[tokio::test]
async fn a_key_renewed_for_ever_is_silent() {
    for kind in servers() {
        let mut keys = Keys::open(kind, reminding(&["2m", "10m"])).await;
        keys.heard().await;
        keys.arm("a", 5 * MINUTE).await;
        for second in 0..1200 {
            keys.at(second * 1000).await;
            keys.slide("a", second * 1000 + 5 * MINUTE).await;
            assert!(keys.heard().await.is_empty(), "at {second} s");
        }
        let last = 1199 * 1000 + 5 * MINUTE;
        let mut heard = Vec::new();
        for second in 1200..1600 {
            keys.at(second * 1000).await;
            heard.extend(keys.handled().await.into_iter().map(|words| (words, second * 1000 - last)));
        }
        assert_eq!(heard, [("2m a".to_owned(), -2 * MINUTE), ("expired a".to_owned(), 1000)]);
        assert!(keys.counters().await.resynced < 10, "only when its score comes up");
    }
}

#[tokio::test]
async fn keys_inside_the_largest_lead_are_looked_at_again_every_interval() {
    for kind in servers() {
        let mut keys = Keys::open(kind, reminding(&["10m", "1m"])).await;
        keys.heard().await;
        assert_eq!(keys.resync().await, 10_000);
        keys.arm("a", 15 * MINUTE).await;
        keys.arm("far", 90 * MINUTE).await;
        keys.at(5 * MINUTE).await;
        assert_eq!(keys.handled().await, ["10m a"]);
        // Renewed for so short that it crosses 10m again before its old score comes up at 1m.
        keys.slide("a", 15 * MINUTE + 30_000).await;
        keys.slide("far", 80 * MINUTE).await;
        keys.at(5 * MINUTE + 10_000).await;
        assert_eq!(keys.resync().await, 10_000);
        assert_eq!(keys.armed("a").await, Some(15 * MINUTE + 30_000));
        assert_eq!(keys.armed("far").await, Some(90 * MINUTE), "outside the largest lead nothing is read");
        keys.slide("a", 16 * MINUTE).await;
        keys.at(5 * MINUTE + 15_000).await;
        assert_eq!(keys.resync().await, 5_000, "one pass an interval, whoever asks");
        assert_eq!(keys.armed("a").await, Some(15 * MINUTE + 30_000));
        keys.delete("a").await;
        keys.at(6 * MINUTE).await;
        keys.resync().await;
        assert_eq!(keys.armed("a").await, None);
        keys.at(6 * MINUTE + 1000).await;
        assert_eq!(keys.handled().await, ["gone a"]);
    }
}

#[tokio::test]
async fn a_pass_goes_over_any_number_of_keys() {
    for kind in servers() {
        let mut keys = Keys::open(kind, reminding(&["10m"]).shards(3)).await;
        let count = 1_700;
        for n in 0..count {
            keys.slide(&format!("k{n}"), 6 * MINUTE).await;
            let key = keys.name(&format!("k{n}"));
            let shard = keys.scene.key("exp").replace(":0}", &format!(":{}}}", crc32fast::hash(key.as_bytes()) % 3));
            let e = (START + FAR + 5 * MINUTE).to_string();
            let _: i64 = keys.scene.raw(&["ZADD", &shard, &e, &key]).await;
        }
        assert_eq!(keys.resync().await, 10_000);
        assert_eq!(keys.counters().await.resynced, count);
    }
}

#[tokio::test]
async fn every_route_looks_at_the_key_for_itself() {
    for kind in servers() {
        let mut keys = Keys::with_routes(kind, reminding(&["10m"]), &["main", "mail"]).await;
        keys.arm("a", 30 * MINUTE).await;
        keys.arm("b", 30 * MINUTE).await;
        keys.heard().await;
        keys.at(20 * MINUTE).await;
        assert_eq!(keys.handled().await, ["10m a", "10m b"]);
        keys.slide("a", 60 * MINUTE).await;
        let claims = keys.scene.claim_on("mail").await;
        assert_eq!(keys.words(&claims), ["10m b"]);
        keys.at(50 * MINUTE).await;
        let claims = keys.scene.claim_on("mail").await;
        assert_eq!(keys.words(&claims).len(), 2, "10m a for its new expiry, and the cleanup of b");
        keys.scene
            .store
            .fail(&keys.scene.name, &crate::scene::route("mail"), &[failing(&claims[0], Verdict::Dead, 8)])
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn small_limits_hand_out_all_that_agree() {
    for kind in servers() {
        for limit in [1, 2, 3] {
            let mut keys = Keys::open(kind, reminding(&["10m", "1m"])).await;
            for n in 0..12 {
                keys.arm(&format!("k{n:02}"), 30 * MINUTE + n / 4).await;
            }
            keys.heard().await;
            for n in [0, 3, 4, 9, 11] {
                keys.slide(&format!("k{n:02}"), 50 * MINUTE).await;
            }
            keys.at(20 * MINUTE + 3).await;
            let mut said = Vec::new();
            for _ in 0..60 {
                let claims = keys.scene.claim_some("main", limit).await;
                said.extend(keys.words(&claims.claims));
                keys.scene.ack(&claims.claims).await;
                if !matches!(claims.next, Next::Backlog) {
                    break;
                }
            }
            said.sort();
            assert_eq!(
                said,
                ["k01", "k02", "k05", "k06", "k07", "k08", "k10"].map(|text| format!("10m {text}")),
                "{limit}"
            );
        }
    }
}

/// Claims and acks one notice at a time until nothing is due; tells what went out.
async fn one_by_one(keys: &Keys, route: &str) -> Vec<String> {
    let mut said = Vec::new();
    for _ in 0..500 {
        let claims = keys.scene.claim_some(route, 1).await;
        said.extend(keys.words(&claims.claims));
        keys.scene.ack_on(route, &claims.claims).await;
        if !matches!(claims.next, Next::Backlog) {
            return said;
        }
    }
    panic!("the backlog does not end; so far: {said:?}");
}

#[tokio::test]
async fn what_a_claim_had_no_time_to_look_at_waits_for_the_next() {
    let names: Vec<String> = (0..250).map(|n| format!("k{n:03}")).collect();
    for kind in servers() {
        let mut keys = Keys::with_routes(kind, reminding(&["10m"]), &["main", "mail"]).await;
        keys.heard().await;
        for name in &names {
            keys.arm(name, 30 * MINUTE).await;
        }
        for name in &names[..249] {
            keys.slide(name, 50 * MINUTE).await;
        }
        // Swept.
        keys.at(20 * MINUTE).await;
        assert_eq!(one_by_one(&keys, "main").await, ["10m k249"]);
        assert_eq!(keys.counters().await.resynced, 249);
        // Waiting, reminders and then cleanups.
        assert_eq!(one_by_one(&keys, "mail").await, ["10m k249"]);
        keys.at(40 * MINUTE).await;
        assert_eq!(keys.handled().await.len(), 250, "249 reminders and a cleanup");
        for name in &names[..248] {
            keys.slide(name, 60 * MINUTE).await;
        }
        assert_eq!(one_by_one(&keys, "mail").await, ["expired k249", "10m k248"]);
        keys.at(61 * MINUTE).await;
        assert_eq!(keys.handled().await.len(), 249);
        for name in &names[..248] {
            keys.slide(name, 90 * MINUTE).await;
        }
        assert_eq!(one_by_one(&keys, "mail").await, ["expired k248"]);
        // Expired, by what was seen last.
        keys.at(80 * MINUTE).await;
        keys.handled().await;
        one_by_one(&keys, "mail").await;
        for name in &names[..248] {
            keys.slide(name, 120 * MINUTE).await;
        }
        keys.at(91 * MINUTE).await;
        assert!(one_by_one(&keys, "main").await.is_empty());
        assert!(one_by_one(&keys, "mail").await.is_empty());
    }
}

#[tokio::test]
async fn a_key_that_outlives_all_that_can_be_tracked_keeps_its_id_armed() {
    for kind in servers() {
        let mut keys = Keys::open(kind, reminding(&["10m"])).await;
        keys.arm("a", 30 * MINUTE).await;
        keys.slide("a", 253_402_300_799_000 - START - FAR).await;
        keys.at(20 * MINUTE).await;
        assert!(keys.heard().await.is_empty());
        assert_eq!(keys.armed("a").await, Some(100_000_000_000_000 - START - FAR));
        keys.at(40 * MINUTE).await;
        assert!(keys.heard().await.is_empty());
        assert_eq!(keys.counters().await.quarantined, 0);
    }
}

#[tokio::test]
async fn while_everything_is_paused_no_pass_looks_at_keys() {
    for kind in servers() {
        let mut keys = Keys::open(kind, reminding(&["10m"])).await;
        keys.arm("a", 5 * MINUTE).await;
        keys.delete("a").await;
        keys.scene.pause(None, true, true, true).await;
        keys.resync().await;
        assert_eq!((keys.armed("a").await, keys.counters().await.gone), (Some(5 * MINUTE), 0));
        keys.scene.pause(None, true, true, false).await;
        keys.resync().await;
        assert_eq!((keys.armed("a").await, keys.counters().await.gone), (None, 1));
    }
}
