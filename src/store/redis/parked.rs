//! Dead letters and reviews: list, put back, delete.

use redis::{Cmd, Pipeline};

use crate::model::Name;
use crate::store::notation::id_of_notice;
use crate::store::{Parked, ParkedPage, ParkedQuery, Requeued, Shelf, StoreError};

use super::{
    RedisStore, keys,
    scope::Scope,
    scripts::{self, Operation},
};

/// How many members are read at a time while looking for those that match.
const PAGE: usize = 500;

impl RedisStore {
    pub(super) async fn read_parked(
        &self,
        namespace: &Name,
        shelf: Shelf,
        query: &ParkedQuery,
    ) -> Result<ParkedPage, StoreError> {
        let scope = self.scope(namespace).await?;
        let limit = usize::try_from(if query.limit == 0 { 100 } else { query.limit }).unwrap_or(usize::MAX);
        let offset = usize::try_from(query.offset).unwrap_or(usize::MAX);
        let mut page = ParkedPage { entries: Vec::new(), total: 0 };
        let only = query.id.as_ref().map(|id| keys::shard_of(id.as_bytes(), scope.shards()));
        for shard in (0..scope.shards()).filter(|shard| only.is_none_or(|only| only == *shard)) {
            self.read_shelf(&scope, shard, shelf, query, offset.saturating_add(limit), &mut page).await?;
        }
        page.entries.sort_by(|a, b| (a.parked_at_ms, &a.key).cmp(&(b.parked_at_ms, &b.key)));
        page.entries.drain(..offset.min(page.entries.len()));
        page.entries.truncate(limit);
        Ok(page)
    }

    /// Adds the first `wanted` of one shard that match.
    async fn read_shelf(
        &self,
        scope: &Scope,
        shard: u16,
        shelf: Shelf,
        query: &ParkedQuery,
        wanted: usize,
        page: &mut ParkedPage,
    ) -> Result<(), StoreError> {
        let reader = self.reader(&scope.namespace);
        let stem = keys::stem(&self.0.prefix, &scope.namespace, shard);
        let (letters, times) = (format!("{stem}{}", shelf.as_str()), format!("{stem}{}_at", shelf.as_str()));
        page.total += reader.count(self.0.connection.command(Cmd::new().arg("ZCARD").arg(&times)).await?)?;
        let (mut start, mut found) = (0, 0);
        while found < wanted {
            let mut range = Cmd::new();
            range.arg("ZRANGE").arg(&times).arg(start).arg(start + PAGE - 1).arg("WITHSCORES");
            let mut members = reader.list(self.0.connection.command(&range).await?)?.into_iter();
            let mut keys = Vec::new();
            while let Some(member) = members.next() {
                keys.push((reader.some_bytes(member)?, reader.number(members.next().unwrap_or_default())?));
            }
            if keys.is_empty() {
                break;
            }
            start += PAGE;
            let mut pipeline = Pipeline::new();
            let read = pipeline.cmd("HMGET").arg(&letters);
            for (key, _) in &keys {
                read.arg(key);
            }
            let stored = self.0.connection.pipeline(&pipeline).await?.pop().unwrap_or_default();
            for ((key, parked_at_ms), json) in keys.into_iter().zip(reader.list(stored)?) {
                let Some(json) = reader.bytes(json)? else { continue };
                let colon = key
                    .iter()
                    .position(|byte| *byte == b':')
                    .ok_or_else(|| reader.odd("a parked key without a route"))?;
                let route = Name::new("route", String::from_utf8_lossy(&key[..colon]))?;
                let notice = reader.notice(&key[colon + 1..])?;
                let other_route = query.route.as_ref().is_some_and(|wanted| *wanted != route);
                let other_id = query.id.as_ref().is_some_and(|wanted| *wanted != notice.id);
                if other_route || other_id || query.event_id.is_some_and(|wanted| wanted != notice.event_id()) {
                    continue;
                }
                let stored = reader.failures(&json)?;
                let payload = stored.payload.map(serde_bytes::ByteBuf::into_vec);
                page.entries.push(Parked { route, notice, parked_at_ms, payload, failures: stored.last, key });
                found += 1;
            }
        }
        Ok(())
    }

    pub(super) async fn requeue_all(
        &self,
        namespace: &Name,
        shelf: Shelf,
        parked: &[Parked],
    ) -> Result<Vec<Requeued>, StoreError> {
        let reader = self.reader(namespace);
        let decode = |word| match reader.text(word)?.as_str() {
            "requeued" => Ok(Requeued::Requeued),
            "superseded" => Ok(Requeued::Superseded),
            "unknown" => Ok(Requeued::Unknown),
            "no_route" => Ok(Requeued::NoRoute),
            word => Err(reader.odd(format!("unknown word \"{word}\""))),
        };
        self.ask_shelf(namespace, &scripts::REQUEUE, shelf, parked, decode).await
    }

    pub(super) async fn discard_all(
        &self,
        namespace: &Name,
        shelf: Shelf,
        parked: &[Parked],
    ) -> Result<Vec<bool>, StoreError> {
        let reader = self.reader(namespace);
        self.ask_shelf(namespace, &scripts::DISCARD, shelf, parked, |value| Ok(reader.number(value)? == 1)).await
    }

    async fn ask_shelf<A>(
        &self,
        namespace: &Name,
        operation: &Operation,
        shelf: Shelf,
        parked: &[Parked],
        decode: impl Fn(redis::Value) -> Result<A, StoreError>,
    ) -> Result<Vec<A>, StoreError> {
        let args = |scope: &Scope, chunk: &[&Parked]| {
            let keys = chunk.iter().map(|parked| parked.key.clone());
            Ok(scope.args(self.manual_now(), std::iter::once(shelf.as_str().into()).chain(keys)))
        };
        self.ask_each(namespace, operation, parked, |parked| parked_id(&parked.key), args, decode).await
    }
}

/// The id in `<route>:<kind>:<e>:<id>`.
fn parked_id(key: &[u8]) -> &[u8] {
    let colon = key.iter().position(|byte| *byte == b':');
    colon.and_then(|colon| id_of_notice(&key[colon + 1..])).unwrap_or_default()
}
