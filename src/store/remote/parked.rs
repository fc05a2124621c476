//! What is parked, through a daemon: read page by page, put back and dropped by event id and route.

use reqwest::Method;

use crate::api::{ParkedAction, ParkedAnswers, ParkedBatch, ParkedName, ParkedPageForm, ParkedWord};
use crate::model::{Id, Name};
use crate::store::{Parked, ParkedPage, ParkedQuery, Requeued, Shelf, StoreError};

use super::RemoteStore;

impl RemoteStore {
    /// Dead letters or reviews, from as many pages as it takes.
    pub(super) async fn parked_pages(
        &self,
        namespace: &Name,
        shelf: Shelf,
        mut query: ParkedQuery,
    ) -> Result<ParkedPage, StoreError> {
        let limit = if query.limit == 0 { 100 } else { query.limit };
        let mut page = ParkedPage { entries: Vec::new(), total: 0 };
        loop {
            let left = limit - u32::try_from(page.entries.len()).unwrap_or(limit).min(limit);
            query.limit = left.min(1000);
            let ParkedPage { entries, total } = self.parked_page(namespace, shelf, &query).await?;
            let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
            page.entries.extend(entries);
            page.total = total;
            if count < query.limit || count >= left {
                return Ok(page);
            }
            query.offset = query.offset.saturating_add(count);
        }
    }

    /// One page, of at most 1,000.
    async fn parked_page(&self, namespace: &Name, shelf: Shelf, query: &ParkedQuery) -> Result<ParkedPage, StoreError> {
        let ParkedQuery { event_id, route, id, offset, limit } = query;
        let mut url = self.url(namespace, &[shelf_part(shelf)]);
        {
            let mut pairs = url.query_pairs_mut();
            pairs.append_pair("offset", &offset.to_string()).append_pair("limit", &limit.to_string());
            let given = [
                ("event_id", event_id.map(|id| id.to_string())),
                ("route", route.as_ref().map(ToString::to_string)),
                ("id_base64", id.as_ref().map(Id::to_base64)),
            ];
            for (name, value) in given {
                value.map(|value| pairs.append_pair(name, &value));
            }
        }
        let ParkedPageForm { entries, total } = self.daemon.get(url, namespace.into()).await?;
        let entries = entries.into_iter().map(|form| {
            let id = self.read_id(form.id.as_deref(), form.id_base64.as_deref(), form.handle.as_deref())?;
            Ok(form.read(namespace, id, Vec::new())?)
        });
        Ok(ParkedPage { entries: entries.collect::<Result<_, StoreError>>()?, total })
    }

    pub(super) async fn requeue_each(
        &self,
        namespace: &Name,
        shelf: Shelf,
        keys: &[Parked],
    ) -> Result<Vec<Requeued>, StoreError> {
        let words = self.on_shelf(namespace, shelf, ParkedAction::Requeue, keys).await?;
        let requeued = |word| match word {
            ParkedWord::Requeued => Ok(Requeued::Requeued),
            ParkedWord::Superseded => Ok(Requeued::Superseded),
            ParkedWord::NoRoute => Ok(Requeued::NoRoute),
            ParkedWord::Unknown => Ok(Requeued::Unknown),
            ParkedWord::Dropped => Err(self.daemon.odd("it has dropped what was to be requeued")),
        };
        words.into_iter().map(requeued).collect()
    }

    pub(super) async fn discard_each(
        &self,
        namespace: &Name,
        shelf: Shelf,
        keys: &[Parked],
    ) -> Result<Vec<bool>, StoreError> {
        let words = self.on_shelf(namespace, shelf, ParkedAction::Drop, keys).await?;
        Ok(words.into_iter().map(|word| word == ParkedWord::Dropped).collect())
    }

    async fn on_shelf(
        &self,
        namespace: &Name,
        shelf: Shelf,
        action: ParkedAction,
        parked: &[Parked],
    ) -> Result<Vec<ParkedWord>, StoreError> {
        let mut words = Vec::with_capacity(parked.len());
        for parked in parked.chunks(crate::api::MAX_BATCH) {
            let name = |one: &Parked| ParkedName { event_id: one.event_id().to_string(), route: one.route.to_string() };
            let body = ParkedBatch { action, entries: parked.iter().map(name).collect() };
            let url = self.url(namespace, &[shelf_part(shelf)]);
            let ParkedAnswers { results } = self.daemon.ask(Method::POST, url, &body, namespace.into()).await?;
            if results.len() != parked.len() {
                return Err(self.daemon.odd("it answered another number of notices"));
            }
            words.extend(results.into_iter().map(|answer| answer.result));
        }
        Ok(words)
    }
}

fn shelf_part(shelf: Shelf) -> &'static str {
    match shelf {
        Shelf::Dead => "dead",
        Shelf::Review => "reviews",
    }
}
