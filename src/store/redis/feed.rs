//! Listening to what claims hand out.

use futures::{StreamExt, stream};
use redis::Cmd;

use crate::model::Name;
use crate::store::{Feed, Handed, StoreError};

use super::{RedisStore, codec::Reader, connection::Connection, hand_out::read_hand_outs, keys};

impl RedisStore {
    /// One subscription to the tails of all shards.
    pub(super) async fn observe(&self, namespace: &Name) -> Result<Feed, StoreError> {
        let shards = self.scope(namespace).await?.shards();
        let channels: Vec<String> =
            (0..shards).map(|shard| keys::tail(&keys::stem(&self.0.prefix, namespace, shard))).collect();
        // What claims ask before they tell anything. Who must not ask would hear nothing of its own claims.
        self.0.connection.command(Cmd::new().arg("PUBSUB").arg("NUMSUB").arg(&channels)).await?;
        let pubsub = self.0.connection.subscribe(&channels).await?;
        let (connection, namespace) = (self.0.connection.clone(), namespace.clone());
        let handed = pubsub.into_on_message().flat_map(move |message| {
            let handed = match read(&connection, &namespace, message.get_payload_bytes()) {
                Ok(handed) => handed.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            };
            stream::iter(handed)
        });
        Ok(handed.boxed())
    }
}

/// What one claim has handed out.
fn read(connection: &Connection, namespace: &Name, message: &[u8]) -> Result<Vec<Handed>, StoreError> {
    let reader = Reader::new(connection, namespace);
    let value = redis::parse_redis_value(message).map_err(|error| reader.odd(format!("on a tail: {error}")))?;
    let mut fields = reader.list(value)?.into_iter();
    let mut field = || fields.next().unwrap_or_default();
    let route = Name::new("route", reader.text(field())?)?;
    let (at_ms, grace_ms, fence) = (reader.number(field())?, reader.number(field())?, reader.number(field())?);
    let claims = read_hand_outs(reader, grace_ms, fence, [field(), field(), field()])?;
    Ok(claims.into_iter().map(|claim| Handed::new(at_ms, &route, claim)).collect())
}
