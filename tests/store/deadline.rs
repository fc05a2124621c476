//! What track, renew, remove, expire and replace answer in every state, and what becomes of the payload (A1 to A10).

use forewarn::model::{ExpiresAt, Mode, OnRearm, Settings, Track};
use forewarn::store::{Expired, Removed, Renewed, Replaced, Tracked};

use crate::ground::grounds;
use crate::operation::START;
use crate::scene::{MINUTE, Scene, id, reminding};

const CREATED: Tracked = Tracked::Created { already_expired: false };
const MOVED: Tracked = Tracked::Moved { already_expired: false };

fn delivering() -> Settings {
    let mut settings = reminding(&["10m"]);
    settings.on_rearm = OnRearm::Deliver;
    settings
}

#[tokio::test]
async fn track_creates_then_moves_and_says_when_nothing_changes() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        // A1
        assert_eq!(scene.track("a", 30 * MINUTE).await, CREATED);
        assert_eq!(scene.track("a", 30 * MINUTE).await, Tracked::Unchanged);
        assert_eq!(scene.track("a", 40 * MINUTE).await, MOVED);
        assert_eq!(scene.track("a", 20 * MINUTE).await, MOVED);
        assert_eq!(scene.track("a", 0).await, Tracked::Moved { already_expired: true });
        assert_eq!(scene.track("b", -1).await, Tracked::Created { already_expired: true });
    }
}

#[tokio::test]
async fn mode_create_leaves_an_armed_id_alone_even_at_the_same_expiry() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        // A2
        assert_eq!(scene.track_as(Mode::Create, "a", 30 * MINUTE, None).await, CREATED);
        assert_eq!(scene.track_as(Mode::Create, "a", 40 * MINUTE, None).await, Tracked::Exists);
        assert_eq!(scene.track_as(Mode::Create, "a", 30 * MINUTE, None).await, Tracked::Exists);
        assert_eq!(scene.show("a").await.unwrap().expires_at_ms, Some(START + 30 * MINUTE));
        scene.at(31 * MINUTE);
        assert_eq!(scene.track_as(Mode::Create, "a", 60 * MINUTE, None).await, CREATED);
    }
}

#[tokio::test]
async fn mode_extend_only_never_shortens_a_life() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        // A2
        assert_eq!(scene.track_as(Mode::ExtendOnly, "a", 30 * MINUTE, None).await, CREATED);
        assert_eq!(scene.track_as(Mode::ExtendOnly, "a", 20 * MINUTE, None).await, Tracked::Kept);
        assert_eq!(scene.track_as(Mode::ExtendOnly, "a", 30 * MINUTE, None).await, Tracked::Unchanged);
        assert_eq!(scene.track_as(Mode::ExtendOnly, "a", 40 * MINUTE, None).await, MOVED);
    }
}

#[tokio::test]
async fn an_expired_life_no_worker_has_noticed_gives_way_to_a_new_one() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track("a", MINUTE).await;
        scene.at(2 * MINUTE);
        // A3
        assert_eq!(scene.track("a", 60 * MINUTE).await, CREATED);
        assert_eq!(scene.heard().await, [""; 0]);

        let scene = Scene::open(kind, delivering()).await;
        scene.track("a", MINUTE).await;
        scene.at(2 * MINUTE);
        assert_eq!(scene.track("a", 60 * MINUTE).await, CREATED);
        assert_eq!(scene.heard().await, ["expired a"]);
    }
}

#[tokio::test]
async fn the_same_expiry_again_is_no_set_even_over_an_expired_life() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track("a", MINUTE).await;
        scene.at(2 * MINUTE);
        // W2
        assert_eq!(scene.track_as(Mode::Upsert, "a", MINUTE, Some("new")).await, Tracked::Unchanged);
        let claims = scene.claim().await;
        assert_eq!(claims.len(), 1);
        assert_eq!(claims[0].payload, None);
    }
}

#[tokio::test]
async fn renew_moves_what_lives_and_never_creates() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        // A4
        assert_eq!(scene.renew("a", 30 * MINUTE).await, Renewed::Unknown);
        assert_eq!(scene.show("a").await, None);
        scene.track("a", 30 * MINUTE).await;
        assert_eq!(scene.renew("a", 40 * MINUTE).await, Renewed::Renewed);
        assert_eq!(scene.renew("a", 40 * MINUTE).await, Renewed::Unchanged);
        assert_eq!(scene.renew("a", 20 * MINUTE).await, Renewed::Renewed);
    }
}

#[tokio::test]
async fn renewing_after_expiry_and_grace_comes_too_late_claimed_or_not() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"]).grace(std::time::Duration::from_secs(60))).await;
        scene.track("a", MINUTE).await;
        scene.track("b", MINUTE).await;
        scene.at(2 * MINUTE - 1);
        // W4: during grace a renewal revives
        assert_eq!(scene.renew("b", 3 * MINUTE).await, Renewed::Renewed);
        scene.at(2 * MINUTE);
        // W9
        assert_eq!(scene.renew("a", 30 * MINUTE).await, Renewed::Expired);
        let claims = scene.claim().await;
        assert_eq!(scene.renew("a", 30 * MINUTE).await, Renewed::Expired);
        scene.ack(&claims).await;
        assert_eq!(scene.renew("a", 30 * MINUTE).await, Renewed::Unknown);
    }
}

#[tokio::test]
async fn remove_tells_an_armed_id_from_an_open_cleanup_and_from_nothing() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track("a", 30 * MINUTE).await;
        // A5
        assert_eq!(scene.remove("a").await, Removed::Removed);
        assert_eq!(scene.remove("a").await, Removed::Unknown);
        scene.track("a", 0).await;
        let claims = scene.claim().await;
        assert_eq!(scene.remove("a").await, Removed::Voided);
        assert_eq!(scene.remove("a").await, Removed::Unknown);
        assert_eq!(scene.ack(&claims).await, [forewarn::store::Settled::Stale]);
        assert_eq!(scene.leftovers().await, [""; 0]);
    }
}

#[tokio::test]
async fn expire_ends_an_armed_id_once() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        // A6
        assert_eq!(scene.expire("a").await, Expired::Unknown);
        scene.track("a", 30 * MINUTE).await;
        assert_eq!(scene.expire("a").await, Expired::Ended);
        assert_eq!(scene.expire("a").await, Expired::Open);
        assert_eq!(scene.handled().await, ["ended a"]);
        assert_eq!(scene.expire("a").await, Expired::Unknown);
        scene.track("late", MINUTE).await;
        scene.at(2 * MINUTE);
        assert_eq!(scene.expire("late").await, Expired::Ended);
        assert_eq!(scene.handled().await, ["ended late"]);
    }
}

#[tokio::test]
async fn an_id_can_take_the_place_of_another() {
    for kind in grounds() {
        for shards in [1, 5] {
            let scene = Scene::open(kind, reminding(&["10m"]).shards(shards)).await;
            scene.track_as(Mode::Upsert, "old", 30 * MINUTE, Some("who")).await;
            // A7
            let replaced = scene.replace(Mode::Upsert, "new", 40 * MINUTE, None, "old").await;
            assert_eq!(replaced, Replaced { tracked: CREATED, replaced: true });
            assert_eq!(scene.show("old").await, None);
            assert_eq!(scene.payload("new").await.as_deref(), Some("who"));

            let replaced = scene.replace(Mode::Upsert, "newer", 40 * MINUTE, Some("else"), "unknown").await;
            assert_eq!(replaced, Replaced { tracked: CREATED, replaced: false });
            assert_eq!(scene.payload("newer").await.as_deref(), Some("else"));

            let replaced = scene.replace(Mode::Create, "newer", 50 * MINUTE, None, "new").await;
            assert_eq!(replaced, Replaced { tracked: Tracked::Exists, replaced: false });
            assert!(scene.show("new").await.is_some());

            let replaced = scene.replace(Mode::ExtendOnly, "newer", 30 * MINUTE, None, "new").await;
            assert_eq!(replaced, Replaced { tracked: Tracked::Kept, replaced: true });
            assert_eq!(scene.show("new").await, None);

            let entry = Track { id: id("x"), expires_at: ExpiresAt::from_millis(START).unwrap(), payload: None };
            let error = scene.store.replace(&scene.name, Mode::Upsert, &entry, &id("x")).await.unwrap_err();
            assert!(error.to_string().starts_with("replaces "), "{error}");
        }
    }
}

#[tokio::test]
async fn a_payload_is_kept_by_a_move_and_cleared_by_a_new_life() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track_as(Mode::Upsert, "a", 30 * MINUTE, Some("one")).await;
        // A8
        scene.track("a", 40 * MINUTE).await;
        assert_eq!(scene.payload("a").await.as_deref(), Some("one"));
        scene.renew("a", 41 * MINUTE).await;
        assert_eq!(scene.payload("a").await.as_deref(), Some("one"));
        scene.renew_with("a", 42 * MINUTE, Some("two")).await;
        assert_eq!(scene.payload("a").await.as_deref(), Some("two"));
        scene.track_as(Mode::Upsert, "a", 43 * MINUTE, Some("")).await;
        assert_eq!(scene.payload("a").await.as_deref(), Some(""));
        scene.track_as(Mode::Upsert, "a", 44 * MINUTE, Some("three")).await;
        scene.remove("a").await;
        scene.track("a", 50 * MINUTE).await;
        assert_eq!(scene.payload("a").await, None);
    }
}

#[tokio::test]
async fn the_payload_goes_out_with_each_notice_and_ends_with_the_cleanup() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track_as(Mode::Upsert, "a", 30 * MINUTE, Some("who")).await;
        scene.at(20 * MINUTE);
        let reminders = scene.claim().await;
        assert_eq!(reminders[0].payload.as_deref(), Some(&b"who"[..]));
        scene.ack(&reminders).await;
        scene.at(30 * MINUTE);
        let cleanups = scene.claim().await;
        assert_eq!(cleanups[0].payload.as_deref(), Some(&b"who"[..]));
        assert_eq!(scene.payload("a").await.as_deref(), Some("who"));
        scene.ack(&cleanups).await;
        assert_eq!(scene.leftovers().await, [""; 0]);
    }
}

#[tokio::test]
async fn with_cleanup_off_an_id_is_disarmed_and_nothing_opens() {
    for kind in grounds() {
        // A9
        for (settings, routes) in
            [(reminding(&["10m"]).cleanup(false), vec![]), (reminding(&["10m"]), vec!["mail:reminders"])]
        {
            let mut scene = Scene::with_routes(kind, settings, &routes).await;
            let name = if routes.is_empty() { "main" } else { "mail" };
            scene.track_as(Mode::Upsert, "a", MINUTE, Some("who")).await;
            scene.at(MINUTE);
            assert_eq!(scene.handled_on(name).await, [""; 0]);
            assert_eq!(scene.show("a").await, None);
            assert_eq!(scene.leftovers().await, [""; 0]);
            scene.track("b", 60 * MINUTE).await;
            assert_eq!(scene.expire("b").await, Expired::Ended);
            assert_eq!(scene.expire("b").await, Expired::Unknown);
        }
    }
}

#[tokio::test]
async fn a_batch_answers_for_each_entry_in_order() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"]).shards(3)).await;
        let entry = |text: &str, at: i64| Track {
            id: id(text),
            expires_at: ExpiresAt::from_millis(START + at).unwrap(),
            payload: None,
        };
        // A10: an id that comes twice is set twice
        let entries =
            [entry("a", MINUTE), entry("b", MINUTE), entry("a", 2 * MINUTE), entry("b", MINUTE), entry("c", -1)];
        let answers = scene.store.track(&scene.name, Mode::Upsert, &entries).await.unwrap();
        let expired = Tracked::Created { already_expired: true };
        assert_eq!(answers, [CREATED, CREATED, MOVED, Tracked::Unchanged, expired]);
        assert_eq!(scene.store.track(&scene.name, Mode::Upsert, &[]).await.unwrap(), []);

        let many: Vec<Track> = (0..2_500).map(|n| entry(&format!("id{n}"), n)).collect();
        let answers = scene.store.track(&scene.name, Mode::Upsert, &many).await.unwrap();
        assert_eq!(answers.len(), many.len());
        let ids: Vec<_> = many.iter().map(|track| track.id.clone()).collect();
        let removed = scene.store.remove(&scene.name, &ids).await.unwrap();
        assert!(removed.iter().all(|answer| *answer == Removed::Removed));
    }
}
