//! When no room is left for the file.

use forewarn::Settings;
use forewarn::model::{Mode, Track};
use forewarn::store::sqlite::SqliteOptions;
use forewarn::store::{Removed, Settled, Store, StoreError};

use crate::stage::{PAST, Place, armed, claim, configure, id, name, track};

/// A batch with payloads.
fn batch(number: usize) -> Vec<Track> {
    let entry = |place| Track { payload: Some(vec![b'x'; 1000]), ..track(&format!("{number}-{place}"), PAST) };
    (0..20).map(entry).collect()
}

#[tokio::test]
async fn without_room_nothing_of_a_batch_is_written_and_removal_goes_on() {
    let place = Place::new();
    let options = SqliteOptions { max_bytes: Some(600_000), ..SqliteOptions::default() };
    let store = place.open_with(options).await;
    configure(&store, Settings::default()).await;
    let session = name("session");
    let mut kept = 0;
    let error = loop {
        match store.track(&session, Mode::Upsert, &batch(kept)).await {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 1000, "the limit is ignored");
    };
    assert!(kept > 5);
    assert!(matches!(error, StoreError::DiskFull { .. }) && error.is_transient(), "{error:?}");
    assert!(error.to_string().contains("free space on its disk or raise its size limit"), "{error}");
    assert_eq!(armed(&store).await, 20 * kept as u64);
    assert_eq!(store.show(&session, &id(&format!("{kept}-0"))).await.unwrap(), None);

    // Half of it goes: how the rest lies in the pages of the file must not matter.
    let gone = kept / 2;
    for number in 0..gone {
        let ids: Vec<_> = batch(number).into_iter().map(|track| track.id).collect();
        assert_eq!(store.remove(&session, &ids).await.unwrap(), vec![Removed::Removed; 20]);
    }
    store.track(&session, Mode::Upsert, &batch(kept)).await.unwrap();
    assert_eq!(armed(&store).await, 20 * (kept - gone + 1) as u64);
}

#[tokio::test]
async fn an_operation_without_room_takes_nobody_with_it() {
    let place = Place::new();
    let options = SqliteOptions { max_bytes: Some(600_000), ..SqliteOptions::default() };
    let store = place.open_with(options).await;
    configure(&store, Settings::default()).await;
    let session = name("session");
    track_all(&store, 5).await;
    let claims = claim(&store).await.claims;
    assert_eq!(claims.len(), 100);
    let tokens: Vec<_> = claims.iter().map(|claim| claim.token.clone()).collect();
    // Handed in at once, so that they share transactions: one is far too large.
    let large = |number: usize| Track { payload: Some(vec![b'y'; 16_000]), ..track(&format!("large-{number}"), PAST) };
    let large: Vec<Track> = (0..100).map(large).collect();
    let main = name("main");
    let (first, refused, second) = tokio::join!(
        store.ack(&session, &main, &tokens[..50]),
        store.track(&session, Mode::Upsert, &large),
        store.ack(&session, &main, &tokens[50..]),
    );
    assert!(matches!(refused.unwrap_err(), StoreError::DiskFull { .. }));
    // A database that is full may take back the whole transaction; then each of its tasks is told so, and may be repeated.
    for (outcome, tokens) in [(first, &tokens[..50]), (second, &tokens[50..])] {
        let settled = match outcome {
            Ok(settled) => settled,
            Err(StoreError::DiskFull { .. }) => store.ack(&session, &main, tokens).await.unwrap(),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(settled, vec![Settled::Settled; 50]);
    }
    assert_eq!(armed(&store).await, 0);
}

async fn track_all(store: &dyn Store, batches: usize) {
    for number in 0..batches {
        store.track(&name("session"), Mode::Upsert, &batch(number)).await.unwrap();
    }
}
