//! Shards that have come apart.

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
