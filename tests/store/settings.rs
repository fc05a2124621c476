//! Settings: declared whole, changed in one step, previewed, lost and forgotten (S1, S4, S6, S7), and lead changes.

use std::time::Duration;

use forewarn::model::Settings;
use forewarn::store::{Change, Registered, StoreError};

use crate::ground::grounds;
use crate::scene::{LEASE, MINUTE, Scene, lead, problem, reminding, route};

const SILENCE: [&str; 0] = [];

#[tokio::test]
async fn settings_are_declared_whole() {
    for kind in grounds() {
        let scene = Scene::bare(kind).await;
        let mut settings = reminding(&["10m", "1m"]).grace(Duration::from_secs(5)).lease(Duration::from_secs(9));
        settings.min_repeat = Some(Duration::from_secs(7));
        let applied = scene.store.configure(&scene.name, &Change::settings(settings.clone())).await.unwrap();
        assert!(applied.created && applied.changed);
        assert_eq!(scene.store.configured(&scene.name).await.unwrap().settings, settings);
        let again = scene.store.configure(&scene.name, &Change::settings(settings.clone())).await.unwrap();
        assert!(!again.created && !again.changed);
        assert_eq!(again.configured.version, applied.configured.version);
        // S1: what is not given has its default
        let shorter = scene.store.configure(&scene.name, &Change::settings(reminding(&["10m"]))).await.unwrap();
        assert!(shorter.changed && !shorter.created);
        assert_eq!(shorter.configured.settings, reminding(&["10m"]));
        assert_ne!(shorter.configured.version, applied.configured.version);
        let names = scene.store.namespaces().await.unwrap();
        assert!(names.contains(&Registered { name: scene.name.clone(), shards: 1 }));
    }
}

#[tokio::test]
async fn a_lower_revision_never_replaces_a_higher_one() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["10m"])).await;
        let revised = |leads: &[&str], revision| with_revision(reminding(leads), revision);
        scene.configure(revised(&["10m"], Some(7)), &[]).await;
        let before = scene.keyspace().await;
        // S1
        let refused = scene.store.configure(&scene.name, &Change::settings(revised(&["5m"], Some(6)))).await;
        assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
        assert!(problem(refused).contains('7'));
        assert_eq!(scene.keyspace().await, before);
        scene.configure(revised(&["5m"], Some(7)), &[]).await;
        scene.configure(revised(&["4m"], Some(8)), &[]).await;
        assert_eq!(scene.store.configured(&scene.name).await.unwrap().settings.remind, [lead("4m")]);
    }
}

fn with_revision(mut settings: Settings, revision: Option<u64>) -> Settings {
    settings.revision = revision;
    settings
}

#[tokio::test]
async fn the_number_of_shards_is_fixed_for_the_life_of_a_namespace() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["10m"]).shards(2)).await;
        let before = scene.keyspace().await;
        let refused = scene.store.configure(&scene.name, &Change::settings(reminding(&["10m"]).shards(3))).await;
        assert!(problem(refused).contains("shards"));
        assert_eq!(scene.keyspace().await, before);
    }
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_and_nothing_is_written() {
    for kind in grounds() {
        let mut scene = Scene::bare(kind).await;
        for (settings, field) in [
            (reminding(&["1m", "60s"]), "remind"),
            (reminding(&[]).lease(Duration::ZERO), "lease"),
            (reminding(&[]).shards(0), "shards"),
            (reminding(&[]).shards(2_000), "shards"),
        ] {
            let refused = problem(scene.store.configure(&scene.name, &Change::settings(settings)).await);
            assert!(refused.starts_with(field), "{refused}");
        }
        assert!(scene.keyspace().await.is_empty());
        assert!(scene.store.namespaces().await.unwrap().iter().all(|known| known.name != scene.name));
    }
}

#[tokio::test]
async fn a_namespace_without_settings_says_how_to_create_it() {
    for kind in grounds() {
        let mut scene = Scene::bare(kind).await;
        let unconfigured = |error: &StoreError| matches!(error, StoreError::Unconfigured { .. });
        let store = &scene.store;
        assert!(unconfigured(&store.configured(&scene.name).await.unwrap_err()));
        assert!(unconfigured(&store.claim(&scene.name, &route("main"), 1, LEASE).await.unwrap_err()));
        assert!(unconfigured(&store.stats(&scene.name).await.unwrap_err()));
        let told = problem(store.remove(&scene.name, &[crate::scene::id("a")]).await);
        assert!(told.contains("forewarn namespace apply"), "{told}");
        assert!(scene.keyspace().await.is_empty());
    }
}

#[tokio::test]
async fn lost_settings_are_noticed_and_can_be_applied_again() {
    for kind in grounds() {
        for shards in [1, 3] {
            let mut scene = Scene::open(kind, reminding(&["10m"]).shards(shards)).await;
            scene.track("a", 30 * MINUTE).await;
            scene.peer.wipe(&scene.name).await;
            // S6
            let entry = scene.store.remove(&scene.name, &[crate::scene::id("a")]).await;
            assert!(matches!(entry, Err(StoreError::Unconfigured { .. })), "{entry:?}");
            let claims = scene.store.claim(&scene.name, &route("main"), 1, LEASE).await;
            assert!(matches!(claims, Err(StoreError::Unconfigured { .. })), "{claims:?}");
            assert!(scene.keyspace().await.is_empty());
            scene.configure(reminding(&["10m"]).shards(shards), &[]).await;
            scene.track("b", 30 * MINUTE).await;
            scene.at(20 * MINUTE);
            assert_eq!(scene.heard().await, ["10m b"]);
        }
    }
}

#[tokio::test]
async fn a_client_with_old_settings_follows_a_change_it_did_not_make() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"]).shards(3)).await;
        let other = scene.beside().await;
        other.track("a", 30 * MINUTE).await;
        scene.configure(reminding(&["20m"]).shards(3), &["main", "mail"]).await;
        scene.at(10 * MINUTE);
        assert_eq!(other.heard_on("mail").await, ["20m a"]);
        assert_eq!(other.heard_on("main").await, ["20m a"]);
    }
}

#[tokio::test]
async fn a_preview_tells_what_a_change_would_say_at_once_and_writes_nothing() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["1m"]).shards(3)).await;
        for n in 0..12 {
            scene.track(&format!("a{n:02}"), n * MINUTE).await;
        }
        scene.handled().await;
        scene.at(2 * MINUTE);
        let before = scene.keyspace().await;
        let change = Change::settings(reminding(&["5m"]).shards(3));
        let preview = scene.store.preview(&scene.name, &change).await.unwrap();
        assert!(preview.changed && !preview.created);
        // S4: in the place of a smaller one: it speaks for those to which that had not spoken yet
        assert_eq!((preview.reminders, preview.cleanups), (vec![(lead("5m"), 5)], 2));
        assert_eq!(scene.keyspace().await, before);
        scene.store.configure(&scene.name, &change).await.unwrap();
        let heard = scene.handled().await;
        assert_eq!(heard.iter().filter(|word| word.starts_with("5m")).count(), 5);
        assert_eq!(heard.iter().filter(|word| word.starts_with("expired")).count(), 2);
    }
}

#[tokio::test]
async fn a_lead_added_later_is_silent_for_what_is_inside_it_already() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["1m"])).await;
        scene.track("inside", 5 * MINUTE).await;
        scene.track("outside", 15 * MINUTE).await;
        scene.handled().await;
        // S4
        scene.configure(reminding(&["10m", "1m"]), &[]).await;
        assert_eq!(scene.handled().await, SILENCE);
        scene.at(4 * MINUTE);
        assert_eq!(scene.handled().await, ["1m inside"]);
        scene.at(5 * MINUTE);
        assert_eq!(scene.handled().await, ["10m outside", "expired inside"]);
    }
}

#[tokio::test]
async fn a_lead_that_takes_the_place_of_a_smaller_one_goes_on_where_that_had_come_to() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["5m"])).await;
        scene.track("a", 5 * MINUTE).await;
        scene.track("b", 9 * MINUTE).await;
        scene.at(MINUTE);
        scene.handled().await;
        // S4: to b the smaller one had not spoken yet
        scene.configure(reminding(&["10m"]), &[]).await;
        assert_eq!(scene.handled().await, ["10m b"]);
    }
}

#[tokio::test]
async fn a_lead_that_is_removed_takes_its_waiting_reminders_with_it() {
    for kind in grounds() {
        let mut scene = Scene::with_routes(kind, reminding(&["10m", "5m"]), &["main", "mail"]).await;
        scene.track("a", 30 * MINUTE).await;
        scene.at(20 * MINUTE);
        let claims = scene.claim().await;
        // C6
        scene.configure(reminding(&["5m"]), &[]).await;
        assert_eq!(scene.heard_on("mail").await, SILENCE);
        assert_eq!(scene.ack(&claims).await, [forewarn::store::Settled::Stale]);
        scene.at(25 * MINUTE);
        assert_eq!(scene.handled_on("mail").await, ["5m a"]);
        scene.handled().await;
        scene.remove("a").await;
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}

#[tokio::test]
async fn a_forgotten_namespace_is_gone_with_everything_in_it() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["10m"]).shards(3)).await;
        for n in 0..10 {
            scene.track(&format!("a{n}"), n).await;
        }
        scene.claim().await;
        // S7
        assert!(scene.store.forget(&scene.name).await.unwrap());
        assert!(!scene.store.forget(&scene.name).await.unwrap());
        assert!(scene.keyspace().await.is_empty());
        assert!(scene.store.namespaces().await.unwrap().iter().all(|known| known.name != scene.name));
    }
}
