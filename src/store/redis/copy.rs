//! Copying out of the server: pages by rank, read with plain commands. The other way is `import`.
//!
//! A rank means the same place only while nobody writes: a copy compares both stores at its end. The cursors of several
//! shards become one, the lowest; what another shard had swept beyond it is marked silent.

mod import;
mod read;
mod sweep;

use redis::{Cmd, Pipeline, Value};
use serde::{Deserialize, Serialize};

use crate::model::{Id, LeadTime, Name, span_ms};
use crate::store::copy::{ArmedRow, Bookmark, CopyMark, DeliveryRow, Exported, ParkedRow, Row, fitting};
use crate::store::{Shelf, StoreError};

use super::{
    RedisStore,
    codec::{Reader, unreadable},
    keys,
    scope::Scope,
};

use read::{Scored, scored, split_lead, whole_ms};

/// A part of what a shard holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Cursors,
    Armed,
    Crossed,
    Open,
    Due(Name),
    Dead,
    Review,
    Quarantined,
}

/// Where an export goes on: within a part of a shard by rank, in `open` by the server's own cursor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Place(Part, u16, u64);

/// What is read of one part of one shard.
struct Page {
    rows: Vec<Row>,
    /// Where this part goes on; nothing if it is read to its end.
    next: Option<u64>,
}

/// The first and the last score that can be an expiry.
const FIRST_VALID: f64 = 1e11;
const LAST_VALID: f64 = 1e14;
/// Scores in a queue from here on are no times.
const NO_TIME: f64 = 8e15;

impl RedisStore {
    pub(super) async fn export_page(
        &self,
        namespace: &Name,
        after: Option<&Bookmark>,
        limit: u32,
    ) -> Result<Exported, StoreError> {
        // Read afresh: what another process has changed since the page before must not be missed.
        let scope = self.reload(namespace).await?;
        let reader = self.reader(namespace);
        let parts = parts(&scope);
        let mut place = match after {
            Some(Bookmark(text)) => {
                serde_json::from_str(text).map_err(|error| reader.odd(format!("a bookmark cannot be read: {error}")))?
            }
            None => Place(Part::Cursors, 0, 0),
        };
        loop {
            let page = self.export_part(&scope, &place, u64::from(limit.max(1))).await?;
            let Place(part, shard, _) = &place;
            let next = match page.next {
                Some(at) => Some(Place(part.clone(), *shard, at)),
                None if *part != Part::Cursors && shard + 1 < scope.shards() => Some(Place(part.clone(), shard + 1, 0)),
                None => {
                    let here = parts.iter().position(|known| known == part);
                    let here = here.ok_or_else(|| StoreError::Conflict {
                        namespace: namespace.clone(),
                        reason: "its routes have changed since its copy began".to_owned(),
                    })?;
                    parts.get(here + 1).map(|part| Place(part.clone(), 0, 0))
                }
            };
            match next {
                Some(next) if page.rows.is_empty() => place = next,
                next => {
                    let text = next.map(|next| serde_json::to_string(&next)).transpose();
                    let next = text.map_err(|error| reader.odd(error.to_string()))?.map(Bookmark);
                    return Ok(Exported { rows: page.rows, next });
                }
            }
        }
    }

    pub(super) async fn read_copy_mark(&self, namespace: &Name) -> Result<Option<CopyMark>, StoreError> {
        let reader = self.reader(namespace);
        let meta = keys::meta(&self.0.prefix, namespace);
        let json = self.0.connection.command(Cmd::new().arg("HGET").arg(meta).arg(import::MARK)).await?;
        let Some(json) = reader.bytes(json)? else { return Ok(None) };
        let mark = serde_json::from_slice(&json);
        mark.map(Some).map_err(|error| reader.odd(format!("the mark of a copy cannot be read: {error}")))
    }

    async fn export_part(&self, scope: &Scope, place: &Place, limit: u64) -> Result<Page, StoreError> {
        let Place(part, shard, at) = place;
        let keys =
            scope.keys.get(usize::from(*shard)).ok_or_else(|| self.0.connection.odd("a bookmark of no shard"))?;
        let range = Range { keys, at: *at, limit };
        match part {
            Part::Cursors => Ok(Page { rows: self.read_sweeps(scope).await?.rows(), next: None }),
            Part::Armed => self.export_armed(scope, *shard, &range).await,
            Part::Crossed => self.export_crossed(scope, &range).await,
            Part::Open => self.export_open(scope, &range).await,
            Part::Due(route) => self.export_due(scope, route, &range).await,
            Part::Dead => self.export_parked(scope, Shelf::Dead, &range).await,
            Part::Review => self.export_parked(scope, Shelf::Review, &range).await,
            Part::Quarantined => self.export_quarantined(scope, &range).await,
        }
    }

    async fn export_armed(&self, scope: &Scope, shard: u16, range: &Range<'_>) -> Result<Page, StoreError> {
        let reader = self.reader(&scope.namespace);
        let (entries, _) = self.read_range(reader, range, keys::EXP).await?;
        let ids: Vec<&[u8]> = entries.iter().map(|entry| entry.member.as_slice()).collect();
        let (payloads, count) = self.read_fitting(reader, &range.keys[keys::PAYLOAD], &ids).await?;
        let ids = &ids[..count];
        let periods = self.read_fields(reader, &range.keys[keys::EVERY], ids).await?;
        let sweeps = self.read_sweeps(scope).await?;
        let marks = self.read_marks(reader, &range.keys[keys::SKIP], &sweeps.leads(), ids).await?;
        let mut rows = Vec::with_capacity(count);
        for (at, (entry, payload)) in entries.iter().zip(payloads).enumerate() {
            // The rest is what the next claim would put into quarantine.
            let (Ok(id), true) = (Id::new(&*entry.member), is_expiry(entry.score)) else {
                rows.push(Row::Quarantined { id: entry.member.clone(), score: entry.text.clone(), payload });
                continue;
            };
            let expires_at_ms = whole_ms(entry.score).max(0);
            let every = periods[at].as_ref().map(|period| String::from_utf8_lossy(period).into_owned());
            let is_marked = |lead: usize| marks.get(lead).is_some_and(|marks| marks[at] == Some(entry.score));
            let silent = sweeps.silent(shard, entry, expires_at_ms, is_marked);
            rows.push(Row::Armed(ArmedRow { id, expires_at_ms, payload, every, silent }));
        }
        Ok(range.page(rows, entries.len()))
    }

    /// For each lead and each id the expiry for which it is marked silent.
    async fn read_marks(
        &self,
        reader: Reader<'_>,
        skip: &str,
        leads: &[LeadTime],
        ids: &[&[u8]],
    ) -> Result<Vec<Vec<Option<f64>>>, StoreError> {
        let is_empty = reader.count(self.0.connection.command(Cmd::new().arg("ZCARD").arg(skip)).await?)? == 0;
        if is_empty || leads.is_empty() || ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = Pipeline::new();
        for lead in leads {
            let read = pipeline.cmd("ZMSCORE").arg(skip);
            for id in ids {
                read.arg(import::of_lead(*lead, id));
            }
        }
        let replies = self.0.connection.pipeline(&pipeline).await?;
        replies.into_iter().map(|scores| read::scores(reader, scores)).collect()
    }

    async fn export_crossed(&self, scope: &Scope, range: &Range<'_>) -> Result<Page, StoreError> {
        let reader = self.reader(&scope.namespace);
        let (entries, count) = self.read_range(reader, range, keys::CROSSED).await?;
        let read = |entry: Scored| {
            let (lead, id) =
                split_lead(&entry.member).ok_or_else(|| reader.odd(unreadable("crossing", &entry.member)))?;
            Ok(Row::Crossed { lead, id, until_ms: whole_ms(entry.score) })
        };
        Ok(range.page(entries.into_iter().map(read).collect::<Result<_, StoreError>>()?, count))
    }

    async fn export_open(&self, scope: &Scope, range: &Range<'_>) -> Result<Page, StoreError> {
        let reader = self.reader(&scope.namespace);
        let mut scan = Cmd::new();
        scan.arg("HSCAN").arg(&range.keys[keys::OPEN]).arg(range.at).arg("COUNT").arg(range.limit);
        let mut reply = reader.list(self.0.connection.command(&scan).await?)?.into_iter();
        let next: u64 = reader.text(reply.next().unwrap_or_default())?.parse().unwrap_or_default();
        let mut fields = reader.list(reply.next().unwrap_or_default())?.into_iter();
        let mut rows = Vec::new();
        while let Some(id) = fields.next() {
            let id = reader.some_bytes(id)?;
            let entry = reader.some_bytes(fields.next().unwrap_or_default())?;
            // The sentinel is longer than any id.
            if id.len() > Id::MAX_LEN {
                continue;
            }
            let bare = entry.strip_suffix(b"+");
            let notice = [bare.unwrap_or(&entry), b":", &id].concat();
            rows.push(Row::Open { notice: reader.notice(&notice)?, recurs: bare.is_some() });
        }
        Ok(Page { rows, next: Some(next).filter(|next| *next != 0) })
    }

    async fn export_due(&self, scope: &Scope, route: &Name, range: &Range<'_>) -> Result<Page, StoreError> {
        let reader = self.reader(&scope.namespace);
        let queue = keys::SHARD_KEYS.len() + scope.route_number(route)? - 1;
        let (mut entries, found) = self.read_range(reader, range, queue).await?;
        entries.retain(|entry| entry.score < NO_TIME);
        let is_end = entries.len() < found;
        let notices: Vec<&[u8]> = entries.iter().map(|entry| entry.member.as_slice()).collect();
        let (payloads, count) = self.read_fitting(reader, &range.keys[keys::PAYLOAD], &notices).await?;
        let fields: Vec<Vec<u8>> = notices[..count].iter().map(|notice| import::of_route(route, notice)).collect();
        let records = self.read_fields(reader, &range.keys[keys::FAIL], &fields).await?;
        let grace_ms = span_ms(scope.settings().grace);
        let mut rows = Vec::with_capacity(count);
        for ((entry, payload), record) in entries.iter().zip(payloads).zip(records) {
            let notice = reader.notice(&entry.member)?;
            let stored = reader.failures(&record.unwrap_or_default())?;
            let (at_ms, hand_outs) = read::time_and_hand_outs(entry.score);
            let (due_at_ms, on_set) = read::due(&notice, grace_ms, (hand_outs == 0).then_some(at_ms), &stored);
            rows.push(Row::Delivery(DeliveryRow {
                route: route.clone(),
                notice,
                at_ms,
                hand_outs,
                due_at_ms,
                on_set,
                failed: read::failed(stored),
                payload,
            }));
        }
        let mut page = range.page(rows, found);
        if is_end && count == entries.len() {
            page.next = None;
        }
        Ok(page)
    }

    async fn export_parked(&self, scope: &Scope, shelf: Shelf, range: &Range<'_>) -> Result<Page, StoreError> {
        let reader = self.reader(&scope.namespace);
        let (letters, times) = keys::shelf(shelf);
        let (entries, found) = self.read_range(reader, range, times).await?;
        let members: Vec<&[u8]> = entries.iter().map(|entry| entry.member.as_slice()).collect();
        let (stored, count) = self.read_fitting(reader, &range.keys[letters], &members).await?;
        let mut rows = Vec::with_capacity(count);
        for (entry, json) in entries.iter().zip(stored) {
            let Some(json) = json else { continue };
            let (route, notice) = read::split_route(&entry.member)
                .ok_or_else(|| reader.odd(unreadable("parked notice", &entry.member)))?;
            let mut stored = reader.failures(&json)?;
            let payload = stored.payload.take().map(serde_bytes::ByteBuf::into_vec);
            rows.push(Row::Parked(ParkedRow {
                shelf,
                route,
                notice: reader.notice(notice)?,
                parked_at_ms: whole_ms(entry.score),
                payload,
                failed: read::failed(stored),
            }));
        }
        Ok(Page { rows, next: range.after(count, found) })
    }

    async fn export_quarantined(&self, scope: &Scope, range: &Range<'_>) -> Result<Page, StoreError> {
        let reader = self.reader(&scope.namespace);
        let (entries, found) = self.read_range(reader, range, keys::BAD).await?;
        let ids: Vec<&[u8]> = entries.iter().map(|entry| entry.member.as_slice()).collect();
        let (payloads, _) = self.read_fitting(reader, &range.keys[keys::PAYLOAD], &ids).await?;
        let row = |(entry, payload): (&Scored, _)| Row::Quarantined {
            id: entry.member.clone(),
            score: entry.text.clone(),
            payload,
        };
        Ok(range.page(entries.iter().zip(payloads).map(row).collect(), found))
    }

    /// The members of a ZSET from a rank on, and how many were found.
    async fn read_range(
        &self,
        reader: Reader<'_>,
        range: &Range<'_>,
        key: usize,
    ) -> Result<(Vec<Scored>, usize), StoreError> {
        let mut command = Cmd::new();
        let last = range.at + range.limit - 1;
        command.arg("ZRANGE").arg(&range.keys[key]).arg(range.at).arg(last).arg("WITHSCORES");
        let entries = scored(reader, self.0.connection.command(&command).await?)?;
        let found = entries.len();
        Ok((entries, found))
    }

    /// The values of the first of these fields that fit into a page, and how many those are.
    async fn read_fitting(
        &self,
        reader: Reader<'_>,
        key: &str,
        fields: &[&[u8]],
    ) -> Result<(Vec<Option<Vec<u8>>>, usize), StoreError> {
        let is_empty = reader.count(self.0.connection.command(Cmd::new().arg("HLEN").arg(key)).await?)? == 0;
        if is_empty || fields.is_empty() {
            return Ok((vec![None; fields.len()], fields.len()));
        }
        let mut pipeline = Pipeline::new();
        for field in fields {
            pipeline.cmd("HSTRLEN").arg(key).arg(*field);
        }
        let sizes = self.0.connection.pipeline(&pipeline).await?.into_iter().map(|size| reader.count(size));
        let sizes = sizes.collect::<Result<Vec<u64>, _>>()?;
        let count = fitting(sizes.into_iter().map(|size| usize::try_from(size).unwrap_or(usize::MAX)));
        Ok((self.read_fields(reader, key, &fields[..count]).await?, count))
    }

    async fn read_fields(
        &self,
        reader: Reader<'_>,
        key: &str,
        fields: &[impl AsRef<[u8]>],
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        if fields.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = Cmd::new();
        command.arg("HMGET").arg(key);
        for field in fields {
            command.arg(field.as_ref());
        }
        let values: Vec<Value> = reader.list(self.0.connection.command(&command).await?)?;
        values.into_iter().map(|value| reader.bytes(value)).collect()
    }
}

/// The entries that a page is made of.
struct Range<'a> {
    keys: &'a [String],
    at: u64,
    limit: u64,
}

impl Range<'_> {
    /// A page with one row for each entry taken of those found.
    fn page(&self, rows: Vec<Row>, found: usize) -> Page {
        let next = self.after(rows.len(), found);
        Page { rows, next }
    }

    /// Where the part goes on after so many taken of those found.
    fn after(&self, taken: usize, found: usize) -> Option<u64> {
        let is_end = taken == found && (found as u64) < self.limit;
        (!is_end).then(|| self.at + taken as u64)
    }
}

/// What is exported, in order.
fn parts(scope: &Scope) -> Vec<Part> {
    let queues = scope.configured.routes.iter().map(|route| Part::Due(route.name.clone()));
    let before = [Part::Cursors, Part::Armed, Part::Crossed, Part::Open];
    before.into_iter().chain(queues).chain([Part::Dead, Part::Review, Part::Quarantined]).collect()
}

/// Whether a raw score can be the expiry of a deadline. Others go to quarantine; what is not after 1970 means: clean now.
fn is_expiry(score: f64) -> bool {
    score <= 0.0 || (FIRST_VALID..=LAST_VALID).contains(&score)
}
