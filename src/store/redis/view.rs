//! Show, list, stats: what people look at. Writes nothing.

use redis::Pipeline;

use crate::model::{CatchingUp, Id, Name, Paused, Route, span_ms};
use crate::store::notation::whole;
use crate::store::{
    Counters, DeadlineView, DeliveryState, DeliveryView, ListQuery, Listed, RouteStats, Stats, StoreError,
};

use super::{
    RedisStore,
    catch_up::Limits,
    codec::Reader,
    keys,
    scope::{Scope, number},
    scripts,
};

impl RedisStore {
    /// Answers for each id; several callers may share the call.
    pub(super) async fn view_each(
        &self,
        namespace: &Name,
        ids: &[Id],
    ) -> Result<Vec<Option<DeadlineView>>, StoreError> {
        let reader = self.reader(namespace);
        let args =
            |scope: &Scope, ids: &[&Id]| Ok(scope.args(self.manual_now(), ids.iter().map(|id| id.as_bytes().to_vec())));
        let stored = self.ask_each(namespace, &scripts::SHOW, ids, Id::as_bytes, args, Ok).await?;
        let configured = &self.scope(namespace).await?.configured;
        ids.iter().zip(stored).map(|(id, stored)| view(reader, &configured.routes, id, reader.list(stored)?)).collect()
    }

    pub(super) async fn list_armed(&self, namespace: &Name, query: &ListQuery) -> Result<Vec<Listed>, StoreError> {
        let reader = self.reader(namespace);
        let limit = if query.limit == 0 { 100 } else { query.limit }.min(10_000);
        let within = query.within.map_or_else(Vec::new, |within| number(span_ms(within)));
        let (after_e, after_id) = match &query.after {
            Some((e, id)) => (number(e), id.as_bytes().to_vec()),
            None => (Vec::new(), Vec::new()),
        };
        let own = [within, after_e, after_id, number(limit)];
        let shards: Vec<(u16, ())> = (0..self.scope(namespace).await?.shards()).map(|shard| (shard, ())).collect();
        let replies = self
            .ask(namespace, &scripts::LIST, &shards, |scope, ()| Ok(scope.args(self.manual_now(), own.clone())))
            .await?;
        let mut listed = Vec::new();
        for reply in replies {
            let mut fields = reply?.into_iter();
            while let Some(id) = fields.next() {
                let expires_at_ms = reader.number(fields.next().unwrap_or_default())?;
                // A raw client may have written what is no id; the next claim quarantines it.
                if let Ok(id) = Id::new(reader.some_bytes(id)?) {
                    listed.push(Listed { id, expires_at_ms });
                }
            }
        }
        listed.sort_by(|a, b| (a.expires_at_ms, &a.id).cmp(&(b.expires_at_ms, &b.id)));
        listed.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(listed)
    }

    pub(super) async fn count_all(&self, namespace: &Name) -> Result<Stats, StoreError> {
        let scope = self.reload(namespace).await?;
        let reader = self.reader(namespace);
        let routes = scope.configured.routes.iter();
        let mut stats = Stats {
            namespace: namespace.clone(),
            armed: 0,
            overdue: 0,
            open: 0,
            dead: 0,
            review: 0,
            quarantined: 0,
            paused: scope.configured.paused.clone(),
            catching_up: CatchingUp::default(),
            routes: routes
                .map(|route| RouteStats {
                    route: route.name.clone(),
                    pending: 0,
                    due: 0,
                    oldest_due_ms: None,
                    paused: Paused::default(),
                    catching_up: CatchingUp::default(),
                })
                .collect(),
            counters: Counters::default(),
        };
        self.read_route_pauses(&scope, &mut stats).await?;
        let calls: Vec<_> = scope
            .keys
            .iter()
            .map(|keys| super::connection::Call {
                keys: std::sync::Arc::clone(keys),
                args: scope.args(self.manual_now(), []),
            })
            .collect();
        for reply in self.0.connection.run(scripts::STATS.script(false), &calls).await? {
            let mut fields = reader.list(reply?)?.into_iter().skip(1);
            let mut field = || fields.next().unwrap_or_default();
            stats.armed += reader.count(field())?;
            stats.overdue += reader.count(field())?;
            stats.open += reader.count(field())?;
            stats.dead += reader.count(field())?;
            stats.review += reader.count(field())?;
            stats.quarantined += reader.count(field())?;
            let mut numbers = reader.list(field())?.into_iter();
            for route in &mut stats.routes {
                route.pending += reader.count(numbers.next().unwrap_or_default())?;
                route.due += reader.count(numbers.next().unwrap_or_default())?;
                let oldest = whole(&reader.text(numbers.next().unwrap_or_default())?);
                route.oldest_due_ms = route.oldest_due_ms.max(oldest);
            }
            let mut counters = reader.list(field())?.into_iter();
            while let Some(name) = counters.next() {
                stats.counters.add(&reader.text(name)?, reader.count(counters.next().unwrap_or_default())?);
            }
            let limits = Limits::read(reader, &reader.text(field())?)?;
            stats.catching_up.add(limits.of("")?);
            for route in &mut stats.routes {
                route.catching_up.add(limits.of(&format!("{}:", route.route))?);
            }
        }
        Ok(stats)
    }

    async fn read_route_pauses(&self, scope: &Scope, stats: &mut Stats) -> Result<(), StoreError> {
        let reader = self.reader(&scope.namespace);
        let meta = format!("{}meta", keys::stem(&self.0.prefix, &scope.namespace, 0));
        let mut pipeline = Pipeline::new();
        let read = pipeline.cmd("HMGET").arg(meta);
        for route in &stats.routes {
            read.arg(format!("paused:{}:reminders", route.route)).arg(format!("paused:{}:cleanups", route.route));
        }
        let mut flags =
            reader.list(self.0.connection.pipeline(&pipeline).await?.pop().unwrap_or_default())?.into_iter();
        let mut flag = || reader.bytes(flags.next().unwrap_or_default()).map(|flag| flag.is_some());
        for route in &mut stats.routes {
            route.paused = Paused { reminders: flag()?, cleanups: flag()? };
        }
        Ok(())
    }
}

fn view(
    reader: Reader<'_>,
    routes: &[Route],
    id: &Id,
    stored: Vec<redis::Value>,
) -> Result<Option<DeadlineView>, StoreError> {
    let mut fields = stored.into_iter();
    let mut field = || fields.next().unwrap_or_default();
    let e = reader.bytes(field())?;
    let payload = reader.bytes(field())?;
    let open = match reader.bytes(field())? {
        Some(entry) => {
            let entry = entry.strip_suffix(b"+").unwrap_or(&entry).to_vec();
            Some(reader.notice(&[&entry[..], b":", id.as_bytes()].concat())?)
        }
        None => None,
    };
    let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let (quarantined, every) = (text(reader.bytes(field())?), text(reader.bytes(field())?));
    let mut deliveries = Vec::new();
    let mut stored = reader.list(field())?.into_iter();
    while let Some(route) = stored.next() {
        let route = usize::try_from(reader.number(route)?).unwrap_or_default();
        let route = routes.get(route.wrapping_sub(1)).ok_or_else(|| reader.odd("an unknown route"))?;
        deliveries.push(delivery(reader, route.name.clone(), &mut stored)?);
    }
    let expires_at_ms = text(e).as_deref().and_then(whole);
    let view = DeadlineView { id: id.clone(), expires_at_ms, payload, open, quarantined, every, deliveries };
    let is_known = view.expires_at_ms.is_some()
        || view.open.is_some()
        || view.quarantined.is_some()
        || !view.deliveries.is_empty();
    Ok(is_known.then_some(view))
}

fn delivery(
    reader: Reader<'_>,
    route: Name,
    stored: &mut impl Iterator<Item = redis::Value>,
) -> Result<DeliveryView, StoreError> {
    let mut field = || stored.next().unwrap_or_default();
    let notice = reader.notice(&reader.some_bytes(field())?)?;
    let score: f64 = reader.text(field())?.parse().map_err(|_| reader.odd("a score that is no number"))?;
    let failures = reader.failures(&reader.bytes(field())?.unwrap_or_default())?.last;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the fraction of a score is below 1024/1024"
    )]
    let fence = (score.rem_euclid(1.0) * 1024.0) as u32;
    let state = match (fence / 64, fence % 64) {
        (_, 1..) => DeliveryState::Leased,
        (0, 0) => DeliveryState::Ready,
        _ => DeliveryState::Waiting,
    };
    let at_ms = whole(&score.floor().to_string()).unwrap_or_default();
    Ok(DeliveryView { route, notice, state, at_ms, hand_outs: u8::try_from(fence / 64).unwrap_or(15), failures })
}
