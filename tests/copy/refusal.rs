//! Copies that are refused, and what stands in the way.

use std::sync::Arc;

use forewarn::store::copy::{CopyError, CopyMark, CopyStage, Progress, StoreCopy};
use forewarn::store::{Store, StoreError};

use forewarn::Forewarn;

use crate::faulty_store::{Fault, FaultyStore};
use crate::harness::{Kind, Server, as_forewarn};
use crate::life::{configure, settings};
use crate::stage::{World, ns, run};

async fn both() -> [(World, World); 2] {
    [(World::sqlite().await, World::redis().await), (World::redis().await, World::sqlite().await)]
}

#[tokio::test]
async fn a_source_that_is_not_paused_is_refused_with_the_command_that_does_it() {
    for (source, target) in both().await {
        configure(&source, settings(1)).await;
        source.pause(None, true, false, true).await;
        let error = run(&source.copy_to(&target).pause(false)).await.unwrap_err();
        assert!(matches!(error, CopyError::NotPaused { .. }), "{error}");
        let command = format!("forewarn namespace pause session --store {}", source.store.place());
        assert!(error.to_string().contains(&command) && error.to_string().contains("--pause"), "{error}");
        assert!(matches!(target.store.configured(&ns()).await, Err(StoreError::Unconfigured { .. })));
        assert!(!source.store.configured(&ns()).await.unwrap().paused.cleanups, "it was paused all the same");
    }
}

#[tokio::test]
async fn a_target_that_has_the_namespace_is_refused_and_untouched() {
    for (source, target) in both().await {
        configure(&source, settings(1)).await;
        configure(&target, settings(2)).await;
        let error = run(&source.copy_to(&target)).await.unwrap_err();
        assert!(matches!(error, CopyError::Occupied { .. }), "{error}");
        let command = format!("forewarn namespace forget session --store {}", target.store.place());
        assert!(error.to_string().contains(&command), "{error}");
        assert_eq!(target.store.configured(&ns()).await.unwrap().settings.shards, 2);
        assert!(!source.store.configured(&ns()).await.unwrap().paused.reminders, "the source was paused all the same");
    }
}

#[tokio::test]
async fn a_key_backed_namespace_cannot_go_into_a_file_which_says_so_and_is_untouched() {
    let (source, target) = (World::redis().await, World::sqlite().await);
    configure(&source, settings(1).key_backed(true)).await;
    let error = run(&source.copy_to(&target)).await.unwrap_err();
    assert!(
        error.to_string().contains("no keys with a time to live of their own; keep such a namespace in Redis"),
        "{error}"
    );
    assert!(matches!(target.store.configured(&ns()).await, Err(StoreError::Unconfigured { .. })));
    assert_eq!(target.store.copy_mark(&ns()).await.unwrap(), None);
    assert!(!source.store.configured(&ns()).await.unwrap().paused.reminders, "the source was paused all the same");
}

#[tokio::test]
async fn a_target_with_a_part_from_elsewhere_is_refused_until_that_is_forgotten() {
    for (source, target) in both().await {
        configure(&source, settings(1)).await;
        configure(&target, settings(1)).await;
        let stage = CopyStage::Copying { next: None };
        let paused = forewarn::model::Paused::default();
        let mark = CopyMark { source: "sqlite:/elsewhere".to_owned(), stage, rows: 0, refused: 0, paused };
        target.store.import(&ns(), &[], Some(&mark)).await.unwrap();
        let error = run(&source.copy_to(&target)).await.unwrap_err();
        assert!(matches!(error, CopyError::OtherCopy { .. }), "{error}");
        assert!(error.to_string().contains("from sqlite:/elsewhere"), "{error}");
        target.store.forget(&ns()).await.unwrap();
        assert_eq!(target.store.copy_mark(&ns()).await.unwrap(), None);
        source.copied_to(&target, None).await;
    }
}

#[tokio::test]
async fn a_store_is_not_copied_into_itself() {
    for (world, _) in both().await {
        configure(&world, settings(1)).await;
        let error = run(&world.copy_to(&world)).await.unwrap_err();
        assert!(matches!(error, CopyError::SamePlace { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_source_without_the_namespace_is_told() {
    let (source, target) = (World::sqlite().await, World::redis().await);
    let error = run(&source.copy_to(&target)).await.unwrap_err();
    assert!(matches!(error, CopyError::Store(StoreError::Unconfigured { .. })), "{error}");
}

#[tokio::test]
async fn a_copy_goes_on_only_from_where_it_came() {
    let (source, other, target) = (World::sqlite().await, World::sqlite().await, World::redis().await);
    configure(&source, settings(1)).await;
    configure(&other, settings(1)).await;
    cut_before_comparing(&source, &target).await;
    let error = run(&other.copy_to(&target)).await.unwrap_err();
    assert!(matches!(error, CopyError::OtherCopy { .. }), "{error}");
}

/// Copies all pages, and is cut off before it compares.
async fn cut_before_comparing(source: &World, target: &World) {
    let faulty = FaultyStore::new(Arc::clone(&source.store));
    let from: Arc<dyn Store> = faulty.clone();
    let copy = StoreCopy::new(from, Arc::clone(&target.store)).pause(true);
    let outcome = copy
        .run(&ns(), &mut |progress| {
            if let Progress::Compared { .. } = progress {
                faulty.fail("export", Fault::Before, 1);
            }
        })
        .await;
    assert!(matches!(outcome, Err(CopyError::Store(_))), "{outcome:?}");
    let mark = target.store.copy_mark(&ns()).await.unwrap().unwrap();
    assert_eq!(mark.stage, CopyStage::Copied);
}

#[tokio::test]
async fn a_source_that_changed_meanwhile_is_told_and_the_target_stays_paused() {
    for (source, target) in both().await {
        configure(&source, settings(1)).await;
        for number in 0..5 {
            source.track(format!("a{number}"), 60_000_000, None).await;
        }
        target.at(source.now());
        cut_before_comparing(&source, &target).await;
        source.track("late", 60_000_000, None).await;
        let error = run(&source.copy_to(&target)).await.unwrap_err().to_string();
        assert!(error.contains("armed: 6 in the source, 5 in the target"), "{error}");
        assert!(error.contains("namespace forget session --force --store"), "{error}");
        let paused = target.store.configured(&ns()).await.unwrap().paused.clone();
        assert!(paused.reminders && paused.cleanups);

        // As many, but not the same.
        source.store.remove(&ns(), &[crate::stage::id("late")]).await.unwrap();
        source.track("a0", 61_000_000, None).await;
        let error = run(&source.copy_to(&target)).await.unwrap_err().to_string();
        assert!(error.contains("armed: 5 in both, but not the same"), "{error}");

        target.store.forget(&ns()).await.unwrap();
        source.copied_to(&target, None).await;
    }
}

#[tokio::test]
async fn a_target_that_changed_meanwhile_is_told() {
    for (source, target) in both().await {
        configure(&source, settings(1)).await;
        source.track("a", 60_000_000, None).await;
        cut_before_comparing(&source, &target).await;
        target.track("own", 60_000_000, None).await;
        let error = run(&source.copy_to(&target)).await.unwrap_err().to_string();
        assert!(error.contains("armed: 1 in the source, 2 in the target"), "{error}");
    }
}

#[tokio::test]
async fn settings_that_changed_meanwhile_are_told() {
    let (source, target) = (World::sqlite().await, World::redis().await);
    configure(&source, settings(1)).await;
    cut_before_comparing(&source, &target).await;
    let change = forewarn::store::Change::settings(settings(1).grace(std::time::Duration::from_secs(9)));
    source.store.configure(&ns(), &change).await.unwrap();
    let error = run(&source.copy_to(&target)).await.unwrap_err().to_string();
    assert!(error.contains("settings or routes: changed since the copy began"), "{error}");
}

#[tokio::test]
async fn a_copy_that_has_ended_is_not_done_again() {
    for (source, target) in both().await {
        configure(&source, settings(1)).await;
        source.track("a", 60_000_000, None).await;
        assert!(!source.copied_to(&target, None).await.is_earlier);
        // The copy lives on.
        target.track("b", 60_000_000, None).await;
        let copied = source.copied_to(&target, None).await;
        assert!(copied.is_earlier && copied.counts.is_empty());
        assert_eq!(target.store.stats(&ns()).await.unwrap().armed, 2);

        let other = World::sqlite().await;
        configure(&other, settings(1)).await;
        let error = run(&other.copy_to(&target)).await.unwrap_err();
        assert!(matches!(error, CopyError::Occupied { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_place_is_a_url_that_leads_there_and_tells_one_store_from_another() {
    let server = Server::shared(Kind::Redis);
    for (url, place) in [
        (server.owner_url(), format!("{}/0?prefix=fw", server.owner_url())),
        (format!("{}/3?prefix=app", server.owner_url()), format!("{}/3?prefix=app", server.owner_url())),
        (server.owner_socket_url(), format!("{}?db=0&prefix=fw", server.owner_socket_url())),
    ] {
        for url in [&url, &place] {
            let store = Forewarn::connect(&as_forewarn(url)).await.unwrap();
            assert_eq!(store.store().place(), place);
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("a.db"), directory.path().join("b.db"));
    let store = Forewarn::connect(&format!("sqlite:{}", file.display())).await.unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let linked = Forewarn::connect(&format!("sqlite:{}", link.display())).await.unwrap();
    assert_eq!(store.store().place(), linked.store().place());
}
