//! Waking across stores on one file, as between a daemon and the command line.

use std::time::Duration;

use forewarn::store::Store as _;
use forewarn::store::sqlite::SqliteOptions;
use forewarn::{Outcome, Settings, Worker};
use futures::StreamExt as _;
use tokio_util::sync::CancellationToken;

use crate::harness::{Inbox, within};
use crate::stage::{HOUR, Place, START, claim, configure, face, name, reminding, track_one, turn};

/// How late a wake-up from another process may be.
const AT_THE_LATEST: Duration = Duration::from_secs(1);

/// Options of a worker that looks only once an hour.
fn unpolled() -> SqliteOptions {
    SqliteOptions { max_poll: HOUR, ..SqliteOptions::default() }
}

#[tokio::test]
async fn what_another_store_on_the_file_makes_due_is_heard_within_a_second() {
    let place = Place::new();
    let sleeper = place.open_with(unpolled()).await;
    configure(&sleeper, reminding(10_000)).await;
    let mut wakeups = sleeper.wakeups(&name("session")).await.unwrap();
    claim(&sleeper).await;
    let other = place.open().await;
    let expires_at = other.now().await.unwrap() + 60_000;
    track_one(&other, "wang", expires_at).await;
    let heard = tokio::time::timeout(AT_THE_LATEST, wakeups.next()).await.unwrap();
    assert_eq!(heard, Some(expires_at - 10_000));
}

#[tokio::test]
async fn each_later_wake_is_heard_too() {
    let place = Place::new();
    let sleeper = place.open_with(unpolled()).await;
    configure(&sleeper, Settings::default()).await;
    let other = place.open().await;
    let mut wakeups = sleeper.wakeups(&name("session")).await.unwrap();
    claim(&sleeper).await;
    let now = other.now().await.unwrap();
    for at in [90_000, 60_000, 30_000] {
        track_one(&other, &format!("in {at}"), now + at).await;
        assert_eq!(within("the wake-up", wakeups.next()).await, Some(now + at));
    }
}

#[tokio::test]
async fn what_the_same_store_makes_due_is_heard_at_once_and_once() {
    let place = Place::new();
    let (store, _clock) = place.open_still().await;
    configure(&store, Settings::default()).await;
    let mut wakeups = store.wakeups(&name("session")).await.unwrap();
    let mut others = store.wakeups(&name("session")).await.unwrap();
    claim(&store).await;
    for at in [900, 600, 300] {
        track_one(&store, &format!("in {at}"), START + at).await;
    }
    for at in [900, 600, 300] {
        assert_eq!(within("the wake-up", wakeups.next()).await, Some(START + at));
        assert_eq!(within("the wake-up", others.next()).await, Some(START + at));
    }
    // Several looks at the file later nothing has been told twice.
    let more = tokio::time::timeout(Duration::from_millis(700), wakeups.next()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn nobody_is_woken_for_what_comes_later_than_known() {
    let place = Place::new();
    let (store, clock) = place.open_still().await;
    configure(&store, Settings::default()).await;
    track_one(&store, "soon", START + 300).await;
    let mut wakeups = store.wakeups(&name("session")).await.unwrap();
    claim(&store).await;
    track_one(&store, "later", START + 301).await;
    track_one(&store, "sooner", START + 299).await;
    assert_eq!(within("the wake-up", wakeups.next()).await, Some(START + 299));
    turn(&clock, 300);
    assert_eq!(claim(&store).await.claims.len(), 2);
}

#[tokio::test]
async fn a_worker_that_sleeps_is_woken_by_what_another_store_tracks() {
    let place = Place::new();
    let sessions = face(place.open_with(unpolled()).await).namespace("session");
    sessions.apply(Settings::default()).await.unwrap();
    let (inbox, stop) = (std::sync::Arc::new(Inbox::new()), CancellationToken::new());
    let (heard, stopped) = (std::sync::Arc::clone(&inbox), stop.clone());
    let worker = Worker::builder(&sessions)
        .max_poll(HOUR)
        .on_cleanup(move |delivery| {
            heard.push(delivery.notice().id.clone());
            async { Outcome::Done }
        })
        .run(async move { stopped.cancelled().await });
    let worker = tokio::spawn(worker);
    // It sleeps once its first claim has said until when.
    let watched = place.connection();
    let sleeps = || watched.query_row("SELECT 1 FROM route WHERE wake_at IS NOT NULL", [], |_| Ok(())).ok();
    crate::harness::eventually("the worker to sleep", async || sleeps()).await;
    let other = place.open().await;
    let now = other.now().await.unwrap();
    track_one(&other, "wang", now).await;
    let ids = tokio::time::timeout(AT_THE_LATEST, inbox.wait_for(1)).await.unwrap();
    assert_eq!(ids[0].as_text(), Some("wang"));
    stop.cancel();
    within("the worker to stop", worker).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_wakeups_end_with_the_store() {
    let place = Place::new();
    let store = place.open().await;
    configure(&store, Settings::default()).await;
    let mut wakeups = store.wakeups(&name("session")).await.unwrap();
    drop(store);
    assert_eq!(within("the end of the wake-ups", wakeups.next()).await, None);
}
