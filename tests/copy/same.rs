//! From then on source and copy say the same, in the same virtual time.

use forewarn::model::OnRearm;
use forewarn::store::copy::{Copied, CopyStage};
use forewarn::store::{Change, Stats};

use crate::life::{ROUTES, leased, live, parked, settings, story};
use crate::stage::{World, ns, run};

/// What there is of everything, by route.
fn amounts(stats: &Stats) -> Vec<(String, u64)> {
    let mut amounts = vec![
        ("armed".to_owned(), stats.armed),
        ("open".to_owned(), stats.open),
        ("dead".to_owned(), stats.dead),
        ("review".to_owned(), stats.review),
    ];
    amounts.extend(stats.routes.iter().map(|route| (route.route.to_string(), route.pending)));
    amounts
}

async fn stats(world: &World) -> Stats {
    world.store.stats(&ns()).await.unwrap()
}

/// Both go on from here and must say the same.
async fn go_on_alike(source: &World, copy: &World, counts_lapses: bool, leased: &[(String, String)]) {
    assert_eq!(amounts(&stats(source).await), amounts(&stats(copy).await));
    assert_eq!(parked(source).await, parked(copy).await);
    source.pause(None, true, true, false).await;
    let before = story(source, leased, counts_lapses).await;
    let after = story(copy, leased, false).await;
    for (line, (before, after)) in before.iter().zip(&after).enumerate() {
        assert_eq!(before, after, "line {line}");
    }
    assert_eq!(before.len(), after.len());
    assert!(before.len() > 150, "the story has only {} lines", before.len());
    assert_eq!(parked(source).await, parked(copy).await);
    assert_eq!(amounts(&stats(source).await), amounts(&stats(copy).await));
}

async fn a_copy_says_the_same(
    source: World,
    source_shards: u16,
    target: World,
    shards: Option<u16>,
    on_rearm: OnRearm,
) {
    live(&source, source_shards, on_rearm).await;
    let leased = leased(&source).await;
    assert!(leased.len() > 5, "{leased:?}");
    let Stats { armed, open, dead, review, .. } = stats(&source).await;
    assert!(armed > 45 && open > 3 && dead > 3 && review > 3, "{armed} {open} {dead} {review}");

    let copied = source.copied_to(&target, shards).await;
    assert_eq!(copied.refused, 0);
    assert!(copied.counts.contains(&("armed".to_owned(), armed)), "{copied:?}");
    let there = target.store.configured(&ns()).await.unwrap();
    assert_eq!(there.settings.shards, shards.unwrap_or(source_shards));
    // Handles are the same there.
    assert_eq!(there.id_key, source.store.configured(&ns()).await.unwrap().id_key);
    let mark = target.store.copy_mark(&ns()).await.unwrap().unwrap();
    assert_eq!((mark.stage, mark.source), (CopyStage::Ended, source.store.place()));
    go_on_alike(&source, &target, true, &leased).await;
}

#[tokio::test]
async fn a_file_goes_to_a_server() {
    a_copy_says_the_same(World::sqlite().await, 1, World::redis().await, None, OnRearm::Supersede).await;
}

#[tokio::test]
async fn a_file_goes_to_a_server_with_four_shards() {
    a_copy_says_the_same(World::sqlite().await, 1, World::redis().await, Some(4), OnRearm::Supersede).await;
}

#[tokio::test]
async fn a_server_with_three_shards_goes_to_a_file() {
    a_copy_says_the_same(World::redis().await, 3, World::sqlite().await, None, OnRearm::Supersede).await;
}

#[tokio::test]
async fn a_server_goes_to_one_with_other_shards() {
    a_copy_says_the_same(World::redis().await, 2, World::redis().await, Some(5), OnRearm::Deliver).await;
}

#[tokio::test]
async fn a_file_goes_to_another_file() {
    a_copy_says_the_same(World::sqlite().await, 1, World::sqlite().await, None, OnRearm::Deliver).await;
}

#[tokio::test]
async fn there_and_back_is_where_it_was() {
    let (source, server, back) = (World::sqlite().await, World::redis().await, World::sqlite().await);
    live(&source, 1, OnRearm::Supersede).await;
    let leased = leased(&source).await;
    source.copied_to(&server, Some(3)).await;
    server.copied_to(&back, Some(1)).await;
    go_on_alike(&source, &back, true, &leased).await;
}

#[tokio::test]
async fn an_empty_namespace_is_copied_with_its_settings_and_routes() {
    let (source, target) = (World::redis().await, World::sqlite().await);
    let mut change = Change::settings(settings(1));
    change.routes = vec!["mail:reminders".parse().unwrap(), "s3:cleanups".parse().unwrap()];
    source.store.configure(&ns(), &change).await.unwrap();
    source.copied_to(&target, None).await;
    let (here, there) = (source.store.configured(&ns()).await.unwrap(), target.store.configured(&ns()).await.unwrap());
    assert_eq!((&here.settings, &here.routes), (&there.settings, &there.routes));
}

#[tokio::test]
async fn what_was_paused_before_is_paused_afterwards_and_the_source_stays_so() {
    for cleanups in [false, true] {
        let (source, target) = (World::sqlite().await, World::redis().await);
        crate::life::configure(&source, settings(1)).await;
        source.pause(None, false, true, cleanups).await;
        source.pause(Some(ROUTES[1]), true, false, true).await;
        let Copied { paused, .. } = source.copied_to(&target, None).await;
        let (here, there) = (stats(&source).await, stats(&target).await);
        assert!(here.paused.reminders && here.paused.cleanups);
        assert_eq!((there.paused.reminders, there.paused.cleanups), (false, cleanups));
        assert_eq!(paused, there.paused);
        let on_routes: Vec<_> =
            there.routes.iter().map(|route| (route.paused.reminders, route.paused.cleanups)).collect();
        assert_eq!(on_routes, [(false, false), (true, false)]);
    }
}

#[tokio::test]
async fn a_target_whose_clock_is_behind_is_told() {
    let (source, target) = (World::sqlite().await, World::sqlite().await);
    crate::life::configure(&source, settings(1)).await;
    let copy = source.copy_to(&target);
    target.at(-60_000);
    assert_eq!(run(&copy).await.unwrap().clock_behind_ms, Some(60_000));
}
