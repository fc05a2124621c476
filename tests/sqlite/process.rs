//! Several stores on one file, in one process and in several: nothing one writes is lost on another.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Read as _},
    process::Child,
};

use forewarn::Settings;
use forewarn::model::{Mode, Track};
use forewarn::store::sqlite::{SqliteOptions, SqliteStore};
use forewarn::store::{Next, Settled, Store, Token};

use crate::stage::{
    LEASE, PAST, Place, START, armed, claim, configure, inner, inner_path, name, say, track, track_one, turn,
};

/// Tracks so many ids, in batches of ten.
async fn track_many(store: &dyn Store, prefix: &str, count: usize) {
    for first in (0..count).step_by(10) {
        let batch: Vec<Track> = (first..first + 10).map(|number| track(&format!("{prefix}-{number}"), PAST)).collect();
        store.track(&name("session"), Mode::Upsert, &batch).await.unwrap();
    }
}

/// Claims and acks until nothing is left; answers the ids.
async fn drain(store: &dyn Store) -> Vec<String> {
    let (session, main) = (name("session"), name("main"));
    let mut ids = Vec::new();
    loop {
        let claims = store.claim(&session, &main, 20, LEASE).await.unwrap();
        let tokens: Vec<Token> = claims.claims.iter().map(|claim| claim.token.clone()).collect();
        let settled = store.ack(&session, &main, &tokens).await.unwrap();
        assert_eq!(settled, vec![Settled::Settled; tokens.len()]);
        ids.extend(claims.claims.iter().map(|claim| claim.notice.id.to_string()));
        if claims.next != Next::Backlog {
            return ids;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_on_one_file_lose_no_write_and_hand_nothing_out_twice() {
    let place = Place::new();
    let (one, two) = (place.open().await, place.open().await);
    configure(&one, Settings::default()).await;
    tokio::join!(
        track_many(&one, "a", 200),
        track_many(&two, "b", 200),
        track_many(&one, "c", 200),
        track_many(&two, "d", 200),
    );
    assert_eq!(armed(&one).await, 800);
    let (mut ids, more) = tokio::join!(drain(&one), drain(&two));
    ids.extend(more);
    assert_eq!(ids.len(), 800);
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 800);
    let stats = two.stats(&name("session")).await.unwrap();
    assert_eq!((stats.armed, stats.open, stats.counters.handed_out, stats.counters.acked), (0, 0, 800, 800));
}

#[tokio::test]
async fn processes_on_one_file_lose_no_write() {
    if let Some(path) = inner_path() {
        let store = SqliteStore::open(path, SqliteOptions::default()).await.unwrap();
        track_many(&store, &std::process::id().to_string(), 200).await;
        say(format_args!("done"));
        return;
    }
    let place = Place::new();
    let store = place.open().await;
    configure(&store, Settings::default()).await;
    let begin = || inner("process::processes_on_one_file_lose_no_write", &place.file()).spawn().unwrap();
    let children = [begin(), begin(), begin()];
    track_many(&store, "outer", 200).await;
    children.into_iter().for_each(finish);
    assert_eq!(armed(&store).await, 800);
    assert_eq!(drain(&store).await.len(), 800);
}

#[tokio::test]
async fn processes_that_open_a_file_at_once_make_it_once() {
    if let Some(path) = inner_path() {
        let store = SqliteStore::open(path, SqliteOptions::default()).await.unwrap();
        configure(&store, Settings::default()).await;
        track_one(&store, &std::process::id().to_string(), PAST).await;
        say(format_args!("done"));
        return;
    }
    let place = Place::new();
    let begin = || inner("process::processes_that_open_a_file_at_once_make_it_once", &place.file()).spawn().unwrap();
    [begin(), begin(), begin(), begin()].into_iter().for_each(finish);
    assert_eq!(armed(&place.open().await).await, 4);
}

/// Waits until an inner run has said that it is done.
fn finish(mut child: Child) {
    let mut reader = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while reader.read_line(&mut said).unwrap() > 0 && !said.ends_with("done\n") {}
    reader.read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success() && said.contains("done\n"), "{said}");
}

#[tokio::test]
async fn settings_changed_on_one_store_are_in_force_on_the_other() {
    let place = Place::new();
    let (one, clock) = place.open_still().await;
    configure(&one, Settings::default()).await;
    let options = SqliteOptions { manual_clock: Some(std::sync::Arc::clone(&clock)), ..SqliteOptions::default() };
    let two = place.open_with(options).await;
    track_one(&two, "wang", START + 1000).await;
    assert_eq!(claim(&two).await.claims.len(), 0);
    configure(&one, crate::stage::reminding(600)).await;
    turn(&clock, 500);
    let claims = claim(&two).await.claims;
    assert_eq!(claims.iter().map(|claim| claim.notice.lead_ms()).collect::<Vec<_>>(), [600]);
    assert_eq!(one.configured(&name("session")).await.unwrap(), two.configured(&name("session")).await.unwrap());
}

#[tokio::test]
async fn a_store_waits_while_another_program_writes() {
    let place = Place::new();
    let store = place.open().await;
    configure(&store, Settings::default()).await;
    let other = place.connection();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE namespace SET claims = claims").unwrap();
    let tracked = tokio::spawn(async move { track_one(&store, "wang", PAST).await });
    let reader = place.open().await;
    // What only looks does not wait.
    assert_eq!(armed(&reader).await, 0);
    assert!(!tracked.is_finished());
    other.execute_batch("COMMIT").unwrap();
    tracked.await.unwrap();
    assert_eq!(armed(&reader).await, 1);
}

#[tokio::test]
async fn an_operation_that_fails_leaves_those_handed_in_beside_it() {
    let place = Place::new();
    let store = place.open().await;
    configure(&store, Settings::default()).await;
    let (session, unknown) = (name("session"), name("unknown"));
    let one = [track("one", PAST)];
    let two = [track("two", PAST)];
    let (first, refused, second) = tokio::join!(
        store.track(&session, Mode::Upsert, &one),
        store.track(&unknown, Mode::Upsert, &one),
        store.track(&session, Mode::Upsert, &two),
    );
    assert!(first.is_ok() && second.is_ok());
    let error = refused.unwrap_err().to_string();
    assert!(error.starts_with("namespace \"unknown\" is not configured"), "{error}");
    assert_eq!(armed(&store).await, 2);
}
