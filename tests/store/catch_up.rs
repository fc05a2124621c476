//! Resuming with a rate (S5.1 to S5.4).

use std::collections::BTreeMap;

use forewarn::model::{CatchingUp, ExpiresAt, Mode, Track};
use forewarn::store::{Next, Stats};

use crate::ground::grounds;
use crate::operation::START;
use crate::scene::{MINUTE, Scene, id, reminding, said};

/// What was handed out: when, on which route, and what.
type Heard = Vec<(i64, &'static str, String)>;

/// Workers of these routes, which look when the store says so, until nothing comes for a second, at most until an instant.
/// Answers also how often they claimed.
async fn work(scene: &Scene, routes: &[&'static str], limit: u32, until: i64) -> (Heard, u32) {
    let (mut heard, mut claims_made, mut last) = (Heard::new(), 0, scene.now());
    let mut polls: BTreeMap<&str, i64> = routes.iter().map(|route| (*route, scene.now())).collect();
    loop {
        let now = scene.now();
        for route in routes.iter().copied().filter(|route| polls[route] <= now).collect::<Vec<_>>() {
            loop {
                let claims = scene.claim_some(route, limit).await;
                claims_made += 1;
                scene.ack_on(route, &claims.claims).await;
                for claim in &claims.claims {
                    heard.push((now, route, said(&claim.notice)));
                    last = now;
                }
                match claims.next {
                    Next::Backlog => continue,
                    Next::At { poll_at_ms, .. } | Next::Paused { poll_at_ms } => {
                        assert!(poll_at_ms - START > now, "a worker that spins");
                        polls.insert(route, poll_at_ms - START);
                    }
                }
                break;
            }
        }
        let next = polls.values().copied().min().expect("a route").min(until);
        if now >= until || next > last + 1_100 {
            return (heard, claims_made);
        }
        scene.at(next);
    }
}

/// The most that was handed out on a route within any second.
fn most_a_second(heard: &Heard, route: &str, is_meant: impl Fn(&str) -> bool) -> usize {
    let at: Vec<i64> = heard.iter().filter(|it| it.1 == route && is_meant(&it.2)).map(|it| it.0).collect();
    at.iter().map(|from| at.iter().filter(|at| (*from..*from + 1_000).contains(*at)).count()).max().unwrap_or(0)
}

fn is_cleanup(what: &str) -> bool {
    what.starts_with("expired")
}

async fn track_many(scene: &Scene, count: usize, at: i64) {
    let entries: Vec<Track> = (0..count)
        .map(|n| Track {
            id: id(format!("n{n}")),
            expires_at: ExpiresAt::from_millis(START + at).unwrap(),
            payload: None,
        })
        .collect();
    scene.store.track(&scene.name, Mode::Upsert, &entries).await.unwrap();
}

async fn stats(scene: &Scene) -> Stats {
    scene.store.stats(&scene.name).await.unwrap()
}

/// Nothing is limited any more, and nothing of it is left.
async fn assert_caught_up(scene: &mut Scene) {
    let stats = stats(scene).await;
    assert_eq!(stats.catching_up, CatchingUp::default());
    assert!(stats.routes.iter().all(|route| route.catching_up == CatchingUp::default()));
    let keyspace = scene.keyspace().await;
    assert!(!keyspace.mentions("catch-up") && !keyspace.mentions("catch_up"), "{keyspace:?}");
}

#[tokio::test]
async fn what_gathered_flows_at_the_rate_over_all_routes_and_shards_and_the_other_class_is_not_slowed() {
    for kind in grounds() {
        for shards in [1, 2] {
            let mut scene = Scene::with_routes(kind, reminding(&["10m"]).shards(shards), &["main", "mail"]).await;
            scene.pause(None, false, true, true).await;
            track_many(&scene, 1_000, 0).await;
            for n in 0..9 {
                scene.track(&format!("r{n}"), 20 * MINUTE + 300 + n * 1_000).await;
            }
            scene.at(10 * MINUTE);
            scene.resume(None, false, true, 100).await;
            assert_eq!(stats(&scene).await.catching_up, CatchingUp { reminders: None, cleanups: Some(100) }, "{kind}");
            let (heard, claims) = work(&scene, &["main", "mail"], 100, 20 * MINUTE).await;
            for route in ["main", "mail"] {
                let cleanups = heard.iter().filter(|it| it.1 == route && is_cleanup(&it.2)).count();
                assert_eq!(cleanups, 1_000, "{kind} {route}");
                // S5.1; a worker comes for what goes in 50 ms.
                let most = most_a_second(&heard, route, is_cleanup);
                assert!((90..=105).contains(&most), "{kind} {route}: {most} in a second");
                // S5.3
                let reminders = heard.iter().filter(|it| it.1 == route && !is_cleanup(&it.2)).map(|it| it.0);
                let expected: Vec<i64> = (0..9).map(|n| 10 * MINUTE + 300 + n * 1_000).collect();
                assert_eq!(reminders.collect::<Vec<_>>(), expected, "{kind} {route}");
            }
            assert!(claims < 2_000, "{kind}: {claims} claims");
            assert_caught_up(&mut scene).await;
        }
    }
}

#[tokio::test]
async fn the_queue_of_a_route_flows_at_the_rate_of_its_resume() {
    for kind in grounds() {
        let mut scene = Scene::with_routes(kind, reminding(&["10m"]), &["main", "mail"]).await;
        scene.pause(Some("mail"), false, true, true).await;
        track_many(&scene, 300, 0).await;
        scene.track("r", 20 * MINUTE).await;
        scene.at(10 * MINUTE - 200);
        assert_eq!(scene.handled_on("main").await.len(), 300);
        // What is paused is put off a few times, and the other class goes on.
        scene.claim_on("mail").await;
        scene.resume(Some("mail"), false, true, 100).await;
        let limited = stats(&scene).await;
        assert_eq!(limited.routes[1].catching_up, CatchingUp { reminders: None, cleanups: Some(100) });
        assert_eq!(limited.routes[0].catching_up, CatchingUp::default());
        let (heard, _) = work(&scene, &["main", "mail"], 50, 20 * MINUTE).await;
        let reminders: Vec<_> = heard.iter().filter(|it| !is_cleanup(&it.2)).map(|it| (it.0, it.1)).collect();
        assert_eq!(reminders, [(10 * MINUTE, "main"), (10 * MINUTE, "mail")], "{kind}");
        let most = most_a_second(&heard, "mail", is_cleanup);
        // What was put off comes after up to a second, of which the rate may be saved.
        assert!((90..=205).contains(&most), "{kind}: {most} in a second");
        assert_eq!(heard.iter().filter(|it| it.1 == "mail" && is_cleanup(&it.2)).count(), 300, "{kind}");
        let span = heard.iter().map(|it| it.0).max().unwrap() - (10 * MINUTE - 200);
        assert!((2_900..=4_000).contains(&span), "{kind}: {span}");
        work(&scene, &["main", "mail"], 50, scene.now() + 2_000).await;
        assert_caught_up(&mut scene).await;
    }
}

#[tokio::test]
async fn a_reminder_that_is_no_longer_true_when_its_turn_comes_is_not_given() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["5s"])).await;
        scene.pause(None, true, false, true).await;
        track_many(&scene, 300, MINUTE).await;
        scene.at(MINUTE - 5_000);
        scene.resume(None, true, false, 10).await;
        let (heard, _) = work(&scene, &["main"], 100, MINUTE + 5_000).await;
        let reminders: Vec<i64> = heard.iter().filter(|it| !is_cleanup(&it.2)).map(|it| it.0).collect();
        // S5.2
        assert!((40..=50).contains(&reminders.len()), "{kind}: {}", reminders.len());
        assert!(reminders.iter().all(|at| *at < MINUTE));
        assert_eq!(heard.iter().filter(|it| is_cleanup(&it.2) && it.0 == MINUTE).count(), 300, "{kind}");
        assert_caught_up(&mut scene).await;
    }
}

#[tokio::test]
async fn what_is_not_used_lapses_after_a_second() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[])).await;
        scene.pause(None, false, true, true).await;
        track_many(&scene, 100, 0).await;
        scene.resume(None, false, true, 10).await;
        assert_eq!(scene.handled().await.len(), 0, "{kind}");
        scene.pass(10 * MINUTE);
        // S5.1
        assert_eq!(scene.handled().await.len(), 10, "{kind}");
        // A claim for less than may go leaves the rest for the next.
        scene.pass(1_000);
        for _ in 0..10 {
            assert_eq!(scene.claim_some("main", 1).await.claims.len(), 1, "{kind}");
        }
        assert_eq!(scene.claim_some("main", 1).await.claims.len(), 0, "{kind}");
    }
}

#[tokio::test]
async fn a_later_pause_or_resume_takes_the_place_of_a_limit() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&[])).await;
        track_many(&scene, 100, 0).await;
        scene.resume(None, true, true, 10).await;
        assert_eq!(scene.handled().await.len(), 0, "{kind}");
        // S5.4
        scene.pause(None, true, true, true).await;
        assert_caught_up(&mut scene).await;
        scene.resume(None, true, true, 1).await;
        scene.pause(None, true, true, false).await;
        assert_eq!(scene.handled().await.len(), 100, "{kind}");
        assert_caught_up(&mut scene).await;
    }
}

#[tokio::test]
async fn a_clock_that_steps_back_does_not_hold_it_up() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[])).await;
        track_many(&scene, 100, -MINUTE).await;
        scene.at(10 * MINUTE);
        scene.resume(None, true, true, 10).await;
        scene.claim_on("main").await;
        scene.at(0);
        let (heard, _) = work(&scene, &["main"], 100, MINUTE).await;
        assert_eq!(heard.len(), 100, "{kind}");
        assert!(most_a_second(&heard, "main", is_cleanup) <= 11, "{kind}");
    }
}
