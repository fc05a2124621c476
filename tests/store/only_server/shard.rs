//! Shards that have come apart, and what an older version left out.

use forewarn::store::Change;

use crate::ground::key;
use crate::harness::servers;
use crate::scene::{Scene, reminding};

#[tokio::test]
async fn a_shard_that_lost_its_settings_is_brought_up_from_the_first() {
    for kind in servers() {
        let mut scene = Scene::open(kind, reminding(&["10m"]).shards(3)).await;
        for name in ["cur", "meta"] {
            let key = key("fw", scene.name.as_str(), 2, name);
            let _: i64 = scene.raw(&["DEL", &key]).await;
        }
        for n in 0..10 {
            scene.track(&format!("a{n}"), 0).await;
        }
        assert_eq!(scene.heard().await.len(), 10);
    }
}

#[tokio::test]
async fn a_namespace_of_an_older_version_gets_its_key_when_it_is_applied_again() {
    for kind in servers() {
        let mut scene = Scene::open(kind, reminding(&["10m"]).shards(3)).await;
        let meta = scene.key("meta");
        let _: i64 = scene.raw(&["HDEL", &meta, "id_key"]).await;
        assert_eq!(scene.store.configured(&scene.name).await.unwrap().id_key, None);
        let change = Change::settings(reminding(&["10m"]).shards(3));
        let applied = scene.store.configure(&scene.name, &change).await.unwrap();
        assert!(!applied.changed && !applied.created && applied.configured.id_key.is_some());
        let again = scene.store.configure(&scene.name, &change).await.unwrap();
        assert_eq!(again.configured, applied.configured);
        assert_eq!(scene.store.configured(&scene.name).await.unwrap().id_key, applied.configured.id_key);
    }
}
