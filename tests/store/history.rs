//! The history: what is remembered of notices that have ended, so that "there was no prompt" can be answered.

use std::time::Duration;

use forewarn::model::{Late, format_span};
use forewarn::store::{Ending, HistoryEntry, HistoryQuery, Next, Verdict};

use crate::ground::grounds;
use crate::operation::START;
use crate::scene::{MINUTE, Scene, id, reminding, said};

/// What is remembered of an id, in words, the oldest first.
async fn remembered(scene: &Scene, text: Option<&str>) -> Vec<String> {
    let query = HistoryQuery { id: text.map(id), limit: 0 };
    let entries = scene.store.history(&scene.name, &query).await.unwrap();
    entries.iter().rev().map(words).collect()
}

fn words(entry: &HistoryEntry) -> String {
    let minutes = |ms: i64| (ms - START) / MINUTE;
    match entry {
        HistoryEntry::Ended { at_ms, route, notice, ending } => {
            let route = route.as_ref().map_or("nowhere", |route| route.as_str());
            format!(
                "{} {} of {} {} {route}",
                minutes(*at_ms),
                said(notice),
                minutes(notice.expires_at_ms),
                ending.as_str()
            )
        }
        HistoryEntry::PassedOver { at_ms, lead, after_ms, upto_ms, count } => {
            let lead = format_span(lead.as_duration());
            format!("{} {lead} passed {:?}..{} of {count}", minutes(*at_ms), after_ms.map(minutes), minutes(*upto_ms))
        }
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn what_was_delivered_and_where_to_is_remembered() {
    for kind in grounds() {
        let scene = Scene::with_routes(kind, reminding(&["10m"]).history(100), &["main", "mail:cleanups"]).await;
        scene.track("a", 30 * MINUTE).await;
        scene.heard().await;
        scene.at(20 * MINUTE);
        scene.handled().await;
        scene.at(30 * MINUTE);
        scene.handled().await;
        scene.at(31 * MINUTE);
        scene.handled_on("mail").await;
        let expected =
            ["20 10m a of 30 delivered main", "30 expired a of 30 delivered main", "31 expired a of 30 delivered mail"];
        assert_eq!(remembered(&scene, Some("a")).await, expected);
        assert_eq!(remembered(&scene, None).await, expected);
        assert!(remembered(&scene, Some("b")).await.is_empty());
    }
}

#[tokio::test]
async fn a_reminder_that_stays_silent_by_the_settings_is_remembered_as_skipped() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m", "1m"]).history(100)).await;
        scene.track("a", 5 * MINUTE).await;
        assert_eq!(remembered(&scene, Some("a")).await, ["0 10m a of 5 skipped nowhere"]);
        let late = reminding(&["10m", "1m"]).history(100).late(Late::Skip);
        let scene = Scene::open(kind, late).await;
        scene.track("a", 30 * MINUTE).await;
        scene.heard().await;
        scene.track("a", 5 * MINUTE).await;
        assert_eq!(remembered(&scene, Some("a")).await, ["0 10m a of 5 skipped nowhere"]);
        scene.track("a", 4 * MINUTE).await;
        assert_eq!(remembered(&scene, Some("a")).await.len(), 1, "it was inside already");
    }
}

#[tokio::test]
async fn what_a_renewal_or_a_removal_makes_void_is_remembered_as_superseded() {
    for kind in grounds() {
        let scene = Scene::with_routes(kind, reminding(&["10m"]).history(100), &["main", "mail"]).await;
        scene.track("a", 30 * MINUTE).await;
        scene.heard().await;
        scene.at(20 * MINUTE);
        let claims = scene.claim().await;
        scene.renew("a", 60 * MINUTE).await;
        scene.ack(&claims).await;
        scene.at(60 * MINUTE);
        scene.heard().await;
        scene.remove("a").await;
        let mut expected = vec![
            "20 10m a of 30 superseded main",
            "20 10m a of 30 superseded mail",
            "60 expired a of 60 superseded main",
            "60 expired a of 60 superseded mail",
        ];
        let mut found = remembered(&scene, Some("a")).await;
        found.retain(|words| words.contains("superseded"));
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn leads_that_passed_while_nobody_claimed_are_remembered_once() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m", "1m"]).history(100)).await;
        for text in ["a", "b"] {
            scene.track(text, 30 * MINUTE).await;
        }
        scene.heard().await;
        scene.at(29 * MINUTE);
        assert_eq!(scene.handled().await, ["1m a", "1m b"]);
        scene.handled().await;
        scene.pass(1);
        scene.handled().await;
        let found = remembered(&scene, Some("a")).await;
        assert_eq!(found, ["29 10m passed Some(10)..30 of 2", "29 1m a of 30 delivered main"]);
    }
}

#[tokio::test]
async fn what_was_given_up_parked_or_dropped_is_remembered() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m", "1m"]).history(100)).await;
        for text in ["dead", "review", "late"] {
            scene.track(text, 30 * MINUTE).await;
        }
        scene.heard().await;
        scene.at(20 * MINUTE);
        for claim in scene.claim().await {
            let verdict = match claim.notice.id.to_string().as_str() {
                "dead" => Verdict::Dead,
                "review" => Verdict::Review,
                _ => Verdict::RetryAfter(Duration::from_secs(600)),
            };
            scene.fail(std::slice::from_ref(&claim), verdict).await;
        }
        assert_eq!(remembered(&scene, Some("dead")).await, ["20 10m dead of 30 dead main"]);
        assert_eq!(remembered(&scene, Some("review")).await, ["20 10m review of 30 review main"]);
        assert!(remembered(&scene, Some("late")).await.is_empty(), "it is still to come");
        scene.at(30 * MINUTE);
        scene.handled().await;
        let found = remembered(&scene, Some("late")).await;
        assert!(found.contains(&"30 10m late of 30 expired main".to_owned()), "{found:?}");
    }
}

#[tokio::test]
async fn a_lead_that_is_taken_away_is_remembered_with_what_waited_of_it() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"]).history(100)).await;
        scene.track("a", 30 * MINUTE).await;
        scene.heard().await;
        scene.at(20 * MINUTE);
        scene.claim().await;
        scene.configure(reminding(&["5m"]).history(100), &[]).await;
        assert_eq!(remembered(&scene, Some("a")).await, ["20 10m a of 30 lead main"]);
    }
}

#[tokio::test]
async fn without_a_history_nothing_is_remembered_and_an_old_one_goes() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track("a", 5 * MINUTE).await;
        scene.at(5 * MINUTE);
        scene.handled().await;
        assert!(remembered(&scene, None).await.is_empty());
        scene.configure(reminding(&["10m"]).history(10), &[]).await;
        scene.track("b", 6 * MINUTE).await;
        assert_eq!(remembered(&scene, None).await, ["5 10m b of 6 skipped nowhere"]);
        scene.configure(reminding(&["10m"]), &[]).await;
        scene.track("c", 6 * MINUTE).await;
        assert!(remembered(&scene, None).await.is_empty());
        scene.configure(reminding(&["10m"]).history(10), &[]).await;
        scene.track("d", 6 * MINUTE).await;
        scene.store.forget(&scene.name).await.unwrap();
        scene.configure(reminding(&["10m"]), &[]).await;
        assert!(remembered(&scene, None).await.is_empty());
    }
}

#[tokio::test]
async fn only_about_so_many_are_kept_the_newest() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"]).history(200)).await;
        for n in 0..1_000 {
            scene.track(&format!("k{n}"), 5 * MINUTE).await;
        }
        let query = HistoryQuery { id: None, limit: 10_000 };
        let entries = scene.store.history(&scene.name, &query).await.unwrap();
        // A server may keep up to a node of its stream more.
        assert!((200..=320).contains(&entries.len()), "{kind}: {}", entries.len());
        assert!(
            matches!(&entries[0], HistoryEntry::Ended { notice, ending: Ending::Skipped, .. } if notice.id == id("k999"))
        );
        let few = scene.store.history(&scene.name, &HistoryQuery { id: None, limit: 3 }).await.unwrap();
        assert_eq!(few, entries[..3]);
    }
}

#[tokio::test]
async fn all_shards_are_told_together_by_time() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"]).history(100).shards(3)).await;
        let mut expected = Vec::new();
        for n in 0..9 {
            scene.at(n * MINUTE);
            scene.track(&format!("k{n}"), 9 * MINUTE).await;
            expected.push(format!("{n} 10m k{n} of 9 skipped nowhere"));
        }
        assert_eq!(remembered(&scene, None).await, expected);
        assert_eq!(remembered(&scene, Some("k7")).await, expected[7..8]);
    }
}

#[tokio::test]
async fn a_claim_that_only_looks_is_no_different_for_the_history() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m", "1m"]).history(100)).await;
        scene.track("a", 30 * MINUTE).await;
        scene.heard().await;
        scene.at(29 * MINUTE);
        assert!(matches!(scene.claim_some("main", 0).await.next, Next::Backlog));
        assert_eq!(scene.handled().await, ["1m a"]);
        assert_eq!(remembered(&scene, Some("a")).await.len(), 2);
    }
}

#[tokio::test]
async fn leads_of_others_that_were_passed_over_hide_nothing_of_an_id() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m", "1m"]).history(1000)).await;
        scene.track("a", 30 * MINUTE).await;
        scene.heard().await;
        scene.at(20 * MINUTE);
        scene.handled().await;
        scene.at(29 * MINUTE);
        scene.handled().await;
        for n in 0..5 {
            scene.track(&format!("other {n}"), (60 + 40 * n) * MINUTE).await;
            scene.heard().await;
            scene.at((60 + 40 * n) * MINUTE - 1);
            scene.handled().await;
        }
        let query = HistoryQuery { id: Some(id("a")), limit: 2 };
        let entries = scene.store.history(&scene.name, &query).await.unwrap();
        let own: Vec<_> =
            entries.iter().filter(|entry| matches!(entry, HistoryEntry::Ended { .. })).map(words).collect();
        assert_eq!(own.len(), 2, "{own:?}");
        assert!(own.iter().all(|words| words.contains(" a of 30 ")), "{own:?}");
    }
}
