//! Copies that are cut off at every page, before or after it was written, and go on.

use std::sync::Arc;

use forewarn::model::OnRearm;
use forewarn::store::copy::{CopyError, CopyMark, CopyStage, Progress, Row, StoreCopy};
use forewarn::store::{Store, StoreError};

use crate::faulty_store::{Fault, FaultyStore};
use crate::harness::Server;
use crate::life::{leased, live, parked, story};
use crate::stage::{World, ns, run};

/// All rows of a store, in the order of an export.
async fn rows(store: &dyn Store, page: u32) -> Vec<Row> {
    let (mut rows, mut next) = (Vec::new(), None);
    loop {
        let page = store.export(&ns(), next.as_ref(), page).await.unwrap();
        rows.extend(page.rows);
        next = page.next;
        if next.is_none() {
            return rows;
        }
    }
}

async fn a_copy_cut_off_at_each_page_is_the_same(source: World, target: World, fault: Fault) {
    live(&source, 2, OnRearm::Supersede).await;
    let held = leased(&source).await;
    let faulty = FaultyStore::new(Arc::clone(&target.store));
    let to: Arc<dyn Store> = faulty.clone();
    target.at(source.now());
    let copy = StoreCopy::new(Arc::clone(&source.store), to).pause(true).page(20).shards(Some(3));
    let (mut runs, mut last) = (0, 0);
    let copied = loop {
        runs += 1;
        assert!(runs < 200, "it does not come to an end");
        let mut seen = last;
        // Each run may write one page and is cut off at the next.
        let outcome = copy
            .run(&ns(), &mut |progress| match progress {
                Progress::Began { rows, .. } => assert!(rows >= last, "it begins anew"),
                Progress::Copied { rows } => {
                    seen = rows;
                    faulty.fail("import", fault.clone(), 1);
                }
                _ => {}
            })
            .await;
        last = seen;
        match outcome {
            Ok(copied) => break copied,
            Err(CopyError::Store(_)) => faulty.heal("import"),
            Err(error) => panic!("{error}"),
        }
    };
    assert!(runs > 4, "only {runs} runs");
    assert!(!copied.counts.is_empty());
    assert_eq!(parked(&source).await, parked(&target).await);
    source.pause(None, true, true, false).await;
    assert_eq!(story(&source, &held, true).await, story(&target, &held, false).await);
}

#[tokio::test]
async fn a_copy_to_a_server_goes_on_where_it_was_cut_off() {
    a_copy_cut_off_at_each_page_is_the_same(World::sqlite().await, World::redis().await, Fault::Before).await;
}

#[tokio::test]
async fn a_copy_to_a_server_whose_replies_are_lost_goes_on() {
    a_copy_cut_off_at_each_page_is_the_same(World::sqlite().await, World::redis().await, Fault::After).await;
}

#[tokio::test]
async fn a_copy_to_a_file_goes_on_where_it_was_cut_off() {
    a_copy_cut_off_at_each_page_is_the_same(World::redis().await, World::sqlite().await, Fault::Before).await;
}

#[tokio::test]
async fn a_page_written_twice_is_a_page_written_once() {
    for target in [World::redis().await, World::sqlite().await] {
        let source = World::redis().await;
        live(&source, 3, OnRearm::Supersede).await;
        source.pause(None, true, true, true).await;
        source.copied_to(&target, Some(2)).await;
        target.pause(None, true, true, true).await;
        let before = rows(&*target.store, 500).await;
        let again = rows(&*source.store, 9).await;
        for page in again.chunks(11) {
            target.store.import(&ns(), page, None).await.unwrap();
        }
        assert_eq!(rows(&*target.store, 500).await, before);
    }
}

#[tokio::test]
async fn pages_of_any_size_are_the_same_rows() {
    for world in [World::redis().await, World::sqlite().await] {
        live(&world, 3, OnRearm::Supersede).await;
        world.pause(None, true, true, true).await;
        let whole = rows(&*world.store, 10_000).await;
        let sorted = |mut rows: Vec<Row>| {
            rows.sort_by_key(|row| format!("{row:?}"));
            rows
        };
        let in_pieces = rows(&*world.store, 1).await;
        assert_eq!(sorted(in_pieces), sorted(whole));
    }
}

#[tokio::test]
async fn large_payloads_come_in_small_pages() {
    for world in [World::redis().await, World::sqlite().await] {
        let mut settings = crate::life::settings(1);
        settings.max_payload = 16 * 1024 * 1024;
        crate::life::configure(&world, settings).await;
        let payload = vec![b'x'; 3 * 1024 * 1024];
        for number in 0..4 {
            world.track(format!("a{number}"), 60_000_000, Some(&payload)).await;
        }
        let (mut next, mut sizes) = (None, Vec::new());
        loop {
            let page = world.store.export(&ns(), next.as_ref(), 500).await.unwrap();
            sizes.push(page.rows.iter().filter(|row| matches!(row, Row::Armed(_))).count());
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        sizes.retain(|size| *size > 0);
        assert_eq!(sizes, [1, 1, 1, 1]);
    }
}

#[tokio::test]
async fn a_copy_cut_off_while_it_is_let_go_ends_without_comparing_again() {
    for (source, target) in
        [(World::sqlite().await, World::redis().await), (World::redis().await, World::sqlite().await)]
    {
        crate::life::configure(&source, crate::life::settings(1)).await;
        source.track("a", 60_000_000, None).await;
        target.at(source.now());
        let faulty = FaultyStore::new(Arc::clone(&target.store));
        let to: Arc<dyn Store> = faulty.clone();
        let copy = StoreCopy::new(Arc::clone(&source.store), to).pause(true);
        let cut = copy
            .run(&ns(), &mut |progress| {
                if let Progress::Compared { .. } = progress {
                    faulty.fail("pause", Fault::After, 1);
                }
            })
            .await;
        assert!(matches!(cut, Err(CopyError::Store(_))), "{cut:?}");
        assert_eq!(target.store.copy_mark(&ns()).await.unwrap().unwrap().stage, CopyStage::Verified);
        // The copy has been let go, and the source goes its own way.
        target.track("b", 60_000_000, None).await;
        source.pause(None, true, true, false).await;
        let copied = run(&copy.clone().pause(false)).await.unwrap();
        assert_eq!(copied.counts, [("armed".to_owned(), 2)]);
        let paused = target.store.configured(&ns()).await.unwrap().paused.clone();
        assert!(!paused.reminders && !paused.cleanups);
        assert_eq!(target.store.copy_mark(&ns()).await.unwrap().unwrap().stage, CopyStage::Ended);
    }
}

#[tokio::test]
async fn a_full_server_takes_no_part_of_a_page_and_the_copy_goes_on_once_there_is_room() {
    let server = Server::start();
    let (source, target) = (World::sqlite().await, World::on(&server).await);
    crate::life::configure(&source, crate::life::settings(1)).await;
    for number in 0..40 {
        source.track(format!("a{number}"), 60_000_000, Some(&[b'x'; 10_000])).await;
    }
    let limit = async |bytes: &str| {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET").arg("maxmemory").arg(bytes);
        set.exec_async(&mut server.connection().await).await.unwrap();
    };
    let mut pages = 0;
    let copy = source.copy_to(&target);
    // Full from the third page on.
    let cut = copy
        .run(&ns(), &mut |progress| {
            if let Progress::Copied { .. } = progress {
                pages += 1;
                if pages == 3 {
                    let mut connection = server.blocking_connection();
                    redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg("1mb").exec(&mut connection).unwrap();
                }
            }
        })
        .await;
    assert!(matches!(cut, Err(CopyError::Store(StoreError::Full { .. }))), "{cut:?}");
    limit("0").await;
    let mark = target.store.copy_mark(&ns()).await.unwrap().unwrap();
    assert_eq!(target.store.stats(&ns()).await.unwrap().armed, mark.rows);
    let copied = run(&copy).await.unwrap();
    assert_eq!(copied.counts, [("armed".to_owned(), 40)]);
}

#[tokio::test]
async fn a_mark_is_kept_until_it_is_taken_away_also_before_the_namespace_is_there() {
    for world in [World::redis().await, World::sqlite().await] {
        assert_eq!(world.store.copy_mark(&ns()).await.unwrap(), None);
        let stage = CopyStage::Copying { next: None };
        let paused = forewarn::model::Paused { reminders: true, cleanups: false };
        let mark = CopyMark { source: "elsewhere".to_owned(), stage, rows: 3, refused: 1, paused };
        world.store.import(&ns(), &[], Some(&mark)).await.unwrap();
        assert_eq!(world.store.copy_mark(&ns()).await.unwrap(), Some(mark));
        world.store.import(&ns(), &[], None).await.unwrap();
        assert_eq!(world.store.copy_mark(&ns()).await.unwrap(), None);
    }
}
