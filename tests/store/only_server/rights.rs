//! What the documented rights leave unsaid: nothing is tried that they do not hold.

use forewarn::model::{ExpiresAt, Mode, Name, Track};
use forewarn::store::redis::RedisStore;
use forewarn::store::{Change, Store};
use futures::StreamExt;
use redis::Value;

use crate::harness::{Server, servers, within};
use crate::scene::{LEASE, id, reminding, route, tokens};

#[tokio::test]
async fn nothing_that_a_store_does_in_any_database_is_denied_in_silence() {
    for kind in servers() {
        let server = Server::start_with(kind, &[]);
        let store = RedisStore::connect(&format!("{}/3", server.url())).await.unwrap();
        let session = Name::new("namespace", "session").unwrap();
        store.configure(&session, &Change::settings(reminding(&[]))).await.unwrap();
        let mut feed = store.feed(&session).await.unwrap();
        let wakeups = store.wakeups(&session).await.unwrap();
        let expires_at = ExpiresAt::from_millis(store.now().await.unwrap()).unwrap();
        store.track(&session, Mode::Upsert, &[Track { id: id("a"), expires_at, payload: None }]).await.unwrap();
        let claims = store.claim(&session, &route("main"), 10, LEASE).await.unwrap().claims;
        assert!(within("a hand-out", feed.next()).await.unwrap().is_ok());
        drop((feed, wakeups));
        store.ack(&session, &route("main"), &tokens(&claims)).await.unwrap();
        store.forget(&session).await.unwrap();
        let mut owner = server.connection().await;
        let denied: Vec<Value> = redis::cmd("ACL").arg("LOG").query_async(&mut owner).await.unwrap();
        assert!(denied.is_empty(), "{kind}: {denied:?}");
        let list: String = redis::cmd("CLIENT").arg("LIST").query_async(&mut owner).await.unwrap();
        assert!(list.contains("user=forewarn") && list.contains("db=3"), "{kind}: {list}");
    }
}
