//! Listening for what becomes due earlier than a sleeping worker knew.

use futures::StreamExt;

use crate::model::Name;
use crate::store::{StoreError, Wakeups};

use super::{RedisStore, keys};

impl RedisStore {
    /// One subscription to the wake channels of all shards.
    pub(super) async fn listen(&self, namespace: &Name) -> Result<Wakeups, StoreError> {
        let shards = self.scope(namespace).await?.shards();
        let channels: Vec<String> =
            (0..shards).map(|shard| format!("{}wake", keys::stem(&self.0.prefix, namespace, shard))).collect();
        let pubsub = self.0.connection.subscribe(&channels).await?;
        let instants = pubsub.into_on_message().filter_map(async |message| {
            let text = std::str::from_utf8(message.get_payload_bytes()).ok()?;
            text.parse().ok()
        });
        Ok(instants.boxed())
    }
}
