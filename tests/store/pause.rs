//! Pausing a namespace or a route (S5).

use forewarn::model::Settings;
use forewarn::store::Next;

use crate::ground::grounds;
use crate::operation::START;
use crate::scene::{MINUTE, Scene, problem, reminding, route};

const SILENCE: [&str; 0] = [];

fn settings() -> Settings {
    reminding(&["10m", "1m"])
}

#[tokio::test]
async fn in_a_paused_namespace_nothing_is_made_or_handed_out_and_what_is_still_allowed_comes_after() {
    for kind in grounds() {
        let scene = Scene::open(kind, settings()).await;
        for (text, minutes) in [("a", 10), ("b", 30), ("c", 31)] {
            scene.track(text, minutes * MINUTE).await;
        }
        scene.pause(None, true, true, true).await;
        assert!(scene.store.configured(&scene.name).await.unwrap().paused.reminders);
        scene.at(20 * MINUTE);
        // S5
        let paused = scene.claim_some("main", 10).await;
        assert!(paused.claims.is_empty());
        assert!(matches!(paused.next, Next::Paused { poll_at_ms } if poll_at_ms <= START + 20 * MINUTE + 1_000));
        assert!(scene.show("a").await.unwrap().expires_at_ms.is_some());
        scene.pause(None, true, true, false).await;
        assert_eq!(scene.handled().await, ["10m b", "expired a"]);
        scene.at(21 * MINUTE);
        assert_eq!(scene.handled().await, ["10m c"]);
    }
}

#[tokio::test]
async fn only_the_class_that_is_meant_is_paused() {
    for kind in grounds() {
        let scene = Scene::open(kind, settings()).await;
        scene.track("a", 10 * MINUTE).await;
        scene.track("b", 20 * MINUTE).await;
        scene.pause(None, true, false, true).await;
        scene.at(10 * MINUTE);
        assert_eq!(scene.handled().await, ["expired a"]);
        scene.pause(None, true, false, false).await;
        scene.pause(None, false, true, true).await;
        assert_eq!(scene.handled().await, ["10m b"]);
        scene.at(20 * MINUTE);
        assert_eq!(scene.handled().await, SILENCE);
        scene.pause(None, false, true, false).await;
        assert_eq!(scene.handled().await, ["expired b"]);
    }
}

#[tokio::test]
async fn on_a_paused_route_notices_are_made_and_wait_and_other_routes_go_on() {
    for kind in grounds() {
        let scene = Scene::with_routes(kind, settings(), &["main", "mail"]).await;
        scene.track("a", 10 * MINUTE).await;
        scene.track("b", 20 * MINUTE).await;
        scene.pause(Some("mail"), true, true, true).await;
        scene.at(10 * MINUTE);
        // S5
        assert!(matches!(scene.claim_some("mail", 10).await.next, Next::Paused { .. }));
        assert_eq!(scene.handled_on("main").await, ["10m b", "expired a"]);
        assert!(scene.show("a").await.unwrap().open.is_some(), "mail has not settled it");
        let stats = scene.store.stats(&scene.name).await.unwrap();
        assert!(stats.routes[1].paused.reminders && stats.routes[1].paused.cleanups && !stats.paused.reminders);
        assert_eq!(stats.routes[1].pending, 2);
        scene.pause(Some("mail"), true, true, false).await;
        // What was put off while it was paused is looked at again within a second.
        scene.pass(1_000);
        assert_eq!(scene.handled_on("mail").await, ["10m b", "expired a"]);
        assert_eq!(scene.show("a").await, None);
    }
}

#[tokio::test]
async fn a_lease_that_ends_on_a_paused_route_is_no_lapse_until_it_is_resumed() {
    for kind in grounds() {
        let scene = Scene::open(kind, settings()).await;
        scene.track("a", 0).await;
        let claims = scene.claim().await;
        scene.pause(Some("main"), false, true, true).await;
        scene.at(10 * MINUTE);
        assert_eq!(scene.heard().await, SILENCE);
        // Its worker may still settle it.
        assert_eq!(scene.recheck(&claims).await, [forewarn::store::Checked::Current]);
        scene.pause(Some("main"), false, true, false).await;
        scene.pass(1_000);
        let again = scene.claim().await;
        assert_eq!(again[0].attempt, 2);
    }
}

#[tokio::test]
async fn an_unknown_route_cannot_be_paused() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, settings()).await;
        let before = scene.keyspace().await;
        let pause = forewarn::model::Pause {
            route: Some(route("nope")),
            reminders: true,
            cleanups: true,
            paused: true,
            rate: None,
        };
        assert!(problem(scene.store.pause(&scene.name, &pause).await).contains("has no route \"nope\""));
        assert_eq!(scene.keyspace().await, before);
    }
}
