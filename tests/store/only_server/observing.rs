//! Observing hand-outs with the rights that servers give (Q5).

use forewarn::model::Name;
use forewarn::store::redis::RedisStore;
use forewarn::store::{Change, Store};
use futures::StreamExt;

use crate::harness::{Kind, Rights, Server, servers, within};
use crate::scene::{LEASE, id, reminding, route};

/// To ask for observers.
const RIGHT: &str = "+pubsub|numsub";

async fn hand_out(store: &dyn Store, namespace: &Name, text: &str) -> usize {
    store.track(namespace, forewarn::model::Mode::Upsert, &[overdue(store, text).await]).await.unwrap();
    store.claim(namespace, &route("main"), 10, LEASE).await.unwrap().claims.len()
}

async fn overdue(store: &dyn Store, text: &str) -> forewarn::model::Track {
    let expires_at = forewarn::model::ExpiresAt::from_millis(store.now().await.unwrap()).unwrap();
    forewarn::model::Track { id: id(text), expires_at, payload: None }
}

#[tokio::test]
async fn who_lacks_the_right_to_ask_for_observers_claims_all_the_same_and_is_told_when_it_observes() {
    for kind in servers() {
        let server = Server::start_with(kind, &[]);
        let url = server.url_with(&Rights::documented().without(RIGHT));
        let (store, owner) =
            (RedisStore::connect(&url).await.unwrap(), RedisStore::connect(&server.url()).await.unwrap());
        let session = Name::new("namespace", "session").unwrap();
        store.configure(&session, &Change::settings(reminding(&[]))).await.unwrap();
        let mut feed = owner.feed(&session).await.unwrap();
        assert_eq!(hand_out(&store, &session, "unheard").await, 1);
        let problem = store.feed(&session).await.map(drop).unwrap_err();
        let cause = std::error::Error::source(&problem).map(ToString::to_string).unwrap_or_default();
        assert!(format!("{problem} {cause}").to_lowercase().contains("pubsub"), "{problem}: {cause}");
        server.command(&format!("ACL SETUSER forewarn-0 {RIGHT}"));
        let mut own = store.feed(&session).await.unwrap();
        assert_eq!(hand_out(&store, &session, "heard").await, 1);
        for feed in [&mut feed, &mut own] {
            let handed = within("a hand-out", feed.next()).await.unwrap().unwrap();
            assert_eq!(handed.notice.id.as_text(), Some("heard"));
        }
    }
}

#[tokio::test]
async fn a_feed_ends_with_its_connection() {
    let server = Server::start_with(Kind::Redis, &[]);
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let session = Name::new("namespace", "session").unwrap();
    store.configure(&session, &Change::settings(reminding(&[]))).await.unwrap();
    let mut feed = store.feed(&session).await.unwrap();
    server.command("CLIENT KILL TYPE pubsub");
    assert!(within("the end of the feed", feed.next()).await.is_none());
    let mut feed = store.feed(&session).await.unwrap();
    assert_eq!(hand_out(&store, &session, "a").await, 1);
    assert!(within("a hand-out", feed.next()).await.unwrap().is_ok());
}
