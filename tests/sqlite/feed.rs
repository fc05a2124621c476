//! Observing hand-outs across stores on one file, and what is left of observers that are gone.

use std::time::Duration;

use forewarn::Settings;
use forewarn::store::Store as _;
use futures::StreamExt as _;

use crate::harness::{eventually, within};
use crate::stage::{Place, claim, configure, inner, inner_path, name, say, track_one};

/// How late another process's hand-out may be heard on a busy machine.
const AT_THE_LATEST: Duration = Duration::from_secs(1);

/// Rows of a table.
fn rows(connection: &rusqlite::Connection, table: &str) -> i64 {
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_claim_of_another_process_is_heard() {
    if let Some(path) = inner_path() {
        let store = forewarn::store::sqlite::SqliteStore::open(path, Default::default()).await.unwrap();
        say(format_args!("claimed {}", claim(&store).await.claims.len()));
        return;
    }
    let place = Place::new();
    let store = place.open().await;
    configure(&store, Settings::default()).await;
    track_one(&store, "wang", store.now().await.unwrap()).await;
    let mut feed = store.feed(&name("session")).await.unwrap();
    let child = tokio::process::Command::from(inner("feed::a_claim_of_another_process_is_heard", &place.file()));
    let mut child = child;
    let ended = within("the other process", child.output()).await.unwrap();
    assert!(String::from_utf8_lossy(&ended.stderr).contains("claimed 1"), "{ended:?}");
    let handed = tokio::time::timeout(AT_THE_LATEST, feed.next()).await.unwrap().unwrap().unwrap();
    assert_eq!((handed.notice.id.as_text(), handed.route.as_str()), (Some("wang"), "main"));
}

#[tokio::test]
async fn claims_write_nothing_down_while_nobody_observes() {
    let place = Place::new();
    let (store, _clock) = place.open_still().await;
    configure(&store, Settings::default()).await;
    let watched = place.connection();
    track_one(&store, "a", crate::stage::START).await;
    claim(&store).await;
    assert_eq!((rows(&watched, "observer"), rows(&watched, "handed")), (0, 0));
    let feed = store.feed(&name("session")).await.unwrap();
    track_one(&store, "b", crate::stage::START).await;
    claim(&store).await;
    assert_eq!((rows(&watched, "observer"), rows(&watched, "handed")), (1, 1));
    drop(feed);
    eventually("the observer to be gone", async || (rows(&watched, "observer") == 0).then_some(())).await;
    assert_eq!(rows(&watched, "handed"), 0);
}

#[tokio::test]
async fn the_claim_after_an_observer_has_vanished_tidies_up() {
    let place = Place::new();
    let (store, _clock) = place.open_still().await;
    configure(&store, Settings::default()).await;
    let watched = place.connection();
    let key: i64 = watched.query_row("SELECT key FROM namespace", [], |row| row.get(0)).unwrap();
    // One whose process was killed, and one that was registered before the clock was set back by far.
    for until in [1_000, i64::MAX] {
        watched.execute("INSERT INTO observer VALUES (?1, 7, ?2)", (key, until)).unwrap();
        track_one(&store, &until.to_string(), crate::stage::START).await;
        assert_eq!(claim(&store).await.claims.len(), 1);
        assert_eq!((rows(&watched, "observer"), rows(&watched, "handed")), (0, 0));
    }
}

#[tokio::test]
async fn what_was_told_long_ago_is_deleted_by_the_next_claim() {
    let place = Place::new();
    let (store, _clock) = place.open_still().await;
    configure(&store, Settings::default()).await;
    let watched = place.connection();
    let _feed = store.feed(&name("session")).await.unwrap();
    track_one(&store, "a", crate::stage::START).await;
    claim(&store).await;
    watched.execute("UPDATE handed SET told_at = told_at - 60000", []).unwrap();
    track_one(&store, "b", crate::stage::START).await;
    claim(&store).await;
    let id: Vec<u8> = watched.query_row("SELECT id FROM handed", [], |row| row.get(0)).unwrap();
    assert_eq!((rows(&watched, "handed"), id.as_slice()), (1, b"b".as_slice()));
}

#[tokio::test]
async fn the_feed_ends_with_the_store_or_the_namespace() {
    let place = Place::new();
    let store = place.open().await;
    configure(&store, Settings::default()).await;
    let mut feed = store.feed(&name("session")).await.unwrap();
    let other = place.open().await;
    let mut forgotten = other.feed(&name("session")).await.unwrap();
    drop(store);
    assert!(within("the end of the feed", feed.next()).await.is_none());
    other.forget(&name("session")).await.unwrap();
    assert!(within("the end of the feed", forgotten.next()).await.is_none());
}
