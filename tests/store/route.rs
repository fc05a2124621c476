//! Routes: each hears what it wants, with a queue of its own (S2, S3).

use std::time::Duration;

use forewarn::model::{LeadTime, Route};
use forewarn::store::{Change, Settled, StoreError, Verdict};

use crate::ground::grounds;
use crate::scene::{LEASE, MINUTE, Scene, lead, problem, reminding, route};

const SILENCE: [&str; 0] = [];

#[tokio::test]
async fn each_route_hears_every_notice_it_wants_once() {
    for kind in grounds() {
        let mut scene =
            Scene::with_routes(kind, reminding(&["10m"]), &["main", "mail:reminders", "disk:cleanups"]).await;
        scene.track("a", 30 * MINUTE).await;
        scene.at(20 * MINUTE);
        // S3
        assert_eq!(scene.handled_on("mail").await, ["10m a"]);
        assert_eq!(scene.handled_on("disk").await, SILENCE);
        assert_eq!(scene.handled_on("main").await, ["10m a"]);
        scene.at(30 * MINUTE);
        assert_eq!(scene.handled_on("mail").await, SILENCE);
        assert_eq!(scene.handled_on("main").await, ["expired a"]);
        assert!(scene.show("a").await.unwrap().open.is_some(), "open until it is settled on all routes");
        assert_eq!(scene.handled_on("disk").await, ["expired a"]);
        assert_eq!(scene.show("a").await, None);
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}

#[tokio::test]
async fn a_route_may_want_some_leads_only() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m", "1m"])).await;
        let mut urgent = Route::all(route("urgent"));
        urgent.leads = vec![lead("1m")];
        scene.store.configure(&scene.name, &Change::add_route(urgent)).await.unwrap();
        scene.track("a", 30 * MINUTE).await;
        scene.at(20 * MINUTE);
        assert_eq!(scene.handled_on("urgent").await, SILENCE);
        assert_eq!(scene.handled().await, ["10m a"]);
        scene.at(29 * MINUTE);
        assert_eq!(scene.handled_on("urgent").await, ["1m a"]);
        let kept = scene.store.configured(&scene.name).await.unwrap();
        assert_eq!(kept.routes[1].leads, [LeadTime::from_millis(MINUTE).unwrap()]);
    }
}

#[tokio::test]
async fn a_failure_on_one_route_is_no_concern_of_another() {
    for kind in grounds() {
        let scene = Scene::with_routes(kind, reminding(&["10m"]), &["main", "mail"]).await;
        scene.track("a", 0).await;
        let mine = scene.claim_on("main").await;
        let theirs = scene.claim_on("mail").await;
        let retry = scene.fail_on("main", &mine, Verdict::RetryAfter(Duration::from_secs(60))).await;
        assert!(matches!(retry[..], [Settled::Retry { .. }]));
        // A token of one route settles nothing on another.
        assert_eq!(scene.ack_on("mail", &mine).await, [Settled::Stale]);
        assert_eq!(scene.ack_on("mail", &theirs).await, [Settled::Settled]);
        scene.pass(MINUTE);
        let again = scene.claim_on("main").await;
        assert_eq!((again[0].attempt, again[0].failures), (2, 1));
        assert_eq!(scene.heard_on("mail").await, SILENCE);
    }
}

#[tokio::test]
async fn a_route_added_later_hears_what_becomes_due_from_then_on() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track("a", 30 * MINUTE).await;
        scene.track("b", 40 * MINUTE).await;
        scene.at(20 * MINUTE);
        scene.handled().await;
        // S2
        let added = scene.store.configure(&scene.name, &Change::add_route(Route::all(route("mail")))).await.unwrap();
        assert!(added.changed);
        assert_eq!(scene.heard_on("mail").await, SILENCE);
        scene.at(30 * MINUTE);
        assert_eq!(scene.heard_on("mail").await, ["10m b", "expired a"]);
    }
}

#[tokio::test]
async fn dropping_a_route_settles_its_cleanups() {
    for kind in grounds() {
        let mut scene = Scene::with_routes(kind, reminding(&["10m"]), &["main", "mail"]).await;
        scene.track_as(forewarn::model::Mode::Upsert, "a", 0, Some("who")).await;
        scene.handled_on("main").await;
        let claims = scene.claim_on("mail").await;
        scene.fail_on("mail", &claims, Verdict::RetryAfter(Duration::from_secs(60))).await;
        // S2
        let change = Change { drop_routes: vec![route("mail")], ..Change::default() };
        scene.store.configure(&scene.name, &change).await.unwrap();
        assert_eq!(scene.show("a").await, None);
        assert_eq!(scene.leftovers().await, SILENCE);
        assert!(!scene.keyspace().await.mentions("mail"));
        let error = scene.store.claim(&scene.name, &route("mail"), 1, LEASE).await;
        assert!(matches!(error, Err(StoreError::NoRoute { .. })), "{error:?}");
        assert!(problem(error).contains("has no route \"mail\""));
    }
}

#[tokio::test]
async fn the_last_route_cannot_be_dropped() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["10m"])).await;
        let before = scene.keyspace().await;
        let change = Change { drop_routes: vec![route("main")], ..Change::default() };
        // S2
        let error = scene.store.configure(&scene.name, &change).await;
        assert!(error.is_err(), "{error:?}");
        assert_eq!(scene.keyspace().await, before);
    }
}

#[tokio::test]
async fn a_namespace_begins_with_main_or_with_exactly_the_routes_given() {
    for kind in grounds() {
        let names = async |scene: &Scene| {
            let configured = scene.store.configured(&scene.name).await.unwrap();
            configured.routes.iter().map(|route| route.name.to_string()).collect::<Vec<_>>()
        };
        // S2
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        assert_eq!(names(&scene).await, ["main"]);
        let scene = Scene::with_routes(kind, reminding(&["10m"]), &["mail", "disk:cleanups"]).await;
        assert_eq!(names(&scene).await, ["mail", "disk"]);
        // Routes are no part of the settings: applying those leaves them alone.
        scene.configure(reminding(&["5m"]), &[]).await;
        assert_eq!(names(&scene).await, ["mail", "disk"]);
        scene.configure(reminding(&["5m"]), &["mail:cleanups", "audit"]).await;
        assert_eq!(names(&scene).await, ["mail", "disk", "audit"]);
        assert!(!scene.store.configured(&scene.name).await.unwrap().routes[0].reminders);
    }
}
