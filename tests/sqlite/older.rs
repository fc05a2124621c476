//! Files of earlier versions open and keep what they hold.

use forewarn::model::{Kind, Reason};
use forewarn::store::{ParkedQuery, Shelf, Store as _};
use futures::StreamExt as _;

use crate::harness::within;
use crate::stage::{Place, START, armed, claim, id, name, turn};

/// A file as version 1 of the layout wrote it. Never changed: such files are out there.
const VERSION_1: &str = include_str!("version_1.sql");

#[tokio::test]
async fn a_file_of_version_1_opens_and_goes_on() {
    let place = Place::new();
    place.connection().execute_batch(VERSION_1).unwrap();
    let (store, clock) = place.open_still().await;
    let session = name("session");
    assert_eq!(store.namespaces().await.unwrap()[0].name, session);
    let configured = store.configured(&session).await.unwrap();
    assert_eq!(configured.settings.leads()[0].as_millis(), 600_000);
    assert_eq!(armed(&store).await, 2);
    let view = store.show(&session, &id("wang")).await.unwrap().unwrap();
    assert_eq!((view.expires_at_ms, view.payload.as_deref()), (Some(START + 700_000), Some(&b"{\"user\":7}"[..])));
    let dead = store.parked(&session, Shelf::Dead, &ParkedQuery::default()).await.unwrap();
    assert_eq!(dead.entries.len(), 1);
    assert_eq!(dead.entries[0].failures[0].summary, "403 from the bucket");

    turn(&clock, 100_000);
    let claims = claim(&store).await.claims;
    let said: Vec<_> =
        claims.iter().map(|claim| (claim.notice.kind, claim.notice.id.to_string(), claim.attempt)).collect();
    let kinds = |kind: &Kind| matches!(kind, Kind::Cleanup(Reason::Expired));
    // A retry whose time has come, and the reminder of the one that has come inside its lead.
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said.iter().any(|(kind, id, attempt)| kinds(kind) && id == "late" && *attempt == 2));
    assert!(said.iter().any(|(kind, id, attempt)| !kinds(kind) && id == "wang" && *attempt == 1));

    // What later versions brought works, too.
    let mut feed = store.feed(&session).await.unwrap();
    turn(&clock, 200_000);
    let mut heard = Vec::new();
    for _ in claim(&store).await.claims {
        let handed = within("a hand-out", feed.next()).await.unwrap().unwrap();
        heard.push((handed.notice.id.to_string(), handed.attempt));
    }
    heard.sort();
    assert_eq!(heard, [("late".to_owned(), 3), ("wang".to_owned(), 2)]);
}
