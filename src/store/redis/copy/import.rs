//! Writing rows of another store: plain commands, for each shard in one transaction; that of shard 0 comes last and ends with
//! the mark.

use std::collections::BTreeMap;

use redis::Pipeline;
use serde::Serialize;

use crate::model::{FailureRecord, Kind, LeadTime, Name, Notice, span_ms};
use crate::store::copy::{ArmedRow, CopyMark, DeliveryRow, Failed, ParkedRow, Row, Swept};
use crate::store::{StoreError, notation::write_notice};

use super::super::{RedisStore, hand_out::usual_due_at, keys, scope::Scope};

/// The field of the namespace's `meta` that holds the mark.
pub(super) const MARK: &str = "copy";

/// What is to be written to the keys of one shard.
#[derive(Default)]
struct Writes {
    /// score and member
    scores: BTreeMap<String, Vec<Pair>>,
    /// field and value
    fields: BTreeMap<String, Vec<Pair>>,
    gone: BTreeMap<String, Vec<Vec<u8>>>,
}

type Pair = (Vec<u8>, Vec<u8>);

impl Writes {
    fn score(&mut self, key: &str, score: impl ToString, member: impl Into<Vec<u8>>) {
        let pair = (score.to_string().into_bytes(), member.into());
        self.scores.entry(key.to_owned()).or_default().push(pair);
    }

    /// Sets a field, or deletes it.
    fn field(&mut self, key: &str, field: impl Into<Vec<u8>>, value: Option<Vec<u8>>) {
        match value {
            Some(value) => self.fields.entry(key.to_owned()).or_default().push((field.into(), value)),
            None => self.gone.entry(key.to_owned()).or_default().push(field.into()),
        }
    }

    /// Adds one transaction.
    fn add_to(&self, pipeline: &mut Pipeline) {
        if self.scores.is_empty() && self.fields.is_empty() && self.gone.is_empty() {
            return;
        }
        pipeline.cmd("MULTI");
        for (key, fields) in &self.gone {
            pipeline.cmd("HDEL").arg(key).arg(fields);
        }
        for (command, written) in [("HSET", &self.fields), ("ZADD", &self.scores)] {
            for (key, pairs) in written {
                let write = pipeline.cmd(command).arg(key);
                for (first, second) in pairs {
                    write.arg(first).arg(second);
                }
            }
        }
        pipeline.cmd("EXEC");
    }
}

impl RedisStore {
    pub(in super::super) async fn import_page(
        &self,
        namespace: &Name,
        rows: &[Row],
        mark: Option<&CopyMark>,
    ) -> Result<(), StoreError> {
        let mut shards = vec![Writes::default()];
        if !rows.is_empty() {
            let scope = self.reload(namespace).await?;
            shards.resize_with(usize::from(scope.shards()), Writes::default);
            for row in rows {
                self.write_row(&scope, row, &mut shards)?;
            }
        }
        let mark =
            mark.map(serde_json::to_vec).transpose().map_err(|error| self.0.connection.odd(error.to_string()))?;
        shards[0].field(&keys::meta(&self.0.prefix, namespace), MARK, mark);
        let mut pipeline = Pipeline::new();
        shards[1..].iter().for_each(|writes| writes.add_to(&mut pipeline));
        if pipeline.cmd_iter().next().is_some() {
            self.0.connection.pipeline(&pipeline).await?;
        }
        // Only when all others are written may the mark say so.
        let mut last = Pipeline::new();
        shards[0].add_to(&mut last);
        self.0.connection.pipeline(&last).await.map(drop)
    }

    fn write_row(&self, scope: &Scope, row: &Row, shards: &mut [Writes]) -> Result<(), StoreError> {
        let id = match row {
            Row::Cursor { lead, swept } => {
                for (writes, keys) in shards.iter_mut().zip(&scope.keys) {
                    let cursor = swept.as_ref().map(cursor_text);
                    writes.field(&keys[keys::CUR], lead.as_millis().to_string(), cursor);
                }
                return Ok(());
            }
            Row::Armed(armed) => armed.id.as_bytes(),
            Row::Crossed { id, .. } => id.as_bytes(),
            Row::Open { notice, .. } => notice.id.as_bytes(),
            Row::Delivery(delivery) => delivery.notice.id.as_bytes(),
            Row::Parked(parked) => parked.notice.id.as_bytes(),
            Row::Quarantined { id, .. } => id,
        };
        let shard = usize::from(keys::shard_of(id, scope.shards()));
        let (writes, keys) = (&mut shards[shard], &scope.keys[shard]);
        match row {
            Row::Cursor { .. } => {}
            Row::Armed(armed) => write_armed(writes, keys, armed),
            Row::Crossed { lead, id, until_ms } => {
                writes.score(&keys[keys::CROSSED], until_ms, of_lead(*lead, id.as_bytes()));
            }
            Row::Open { notice, recurs } => {
                let kind = notice.kind.to_stored();
                let entry = format!("{kind}:{}{}", notice.expires_at_ms, if *recurs { "+" } else { "" });
                writes.field(&keys[keys::OPEN], notice.id.as_bytes(), Some(entry.into_bytes()));
            }
            Row::Delivery(delivery) => {
                let queue = keys::SHARD_KEYS.len() + scope.route_number(&delivery.route)? - 1;
                let grace_ms = span_ms(scope.settings().grace);
                self.write_delivery(writes, keys, &keys[queue], delivery, grace_ms)?;
            }
            Row::Parked(parked) => self.write_parked(writes, keys, parked)?,
            Row::Quarantined { id, score, payload } => {
                writes.score(&keys[keys::BAD], score, id.as_slice());
                if payload.is_some() {
                    writes.field(&keys[keys::PAYLOAD], id.as_slice(), payload.clone());
                }
            }
        }
        Ok(())
    }

    fn write_delivery(
        &self,
        writes: &mut Writes,
        keys: &[String],
        queue: &str,
        row: &DeliveryRow,
        grace_ms: i64,
    ) -> Result<(), StoreError> {
        let notice = write_notice(&row.notice);
        // The fraction is n * 64 / 1024, exactly.
        writes.score(queue, format!("{}.{:04}", row.at_ms, u32::from(row.hand_outs) * 625), notice.clone());
        let is_usual = !row.on_set && row.due_at_ms == usual_due_at(&row.notice, grace_ms);
        // One that is ready says by its time when it was due.
        let is_needed = row.failed != Failed::default() || row.hand_outs > 0 && !is_usual;
        let record = is_needed.then(|| Record::new(&row.failed, Some((row.due_at_ms, row.on_set)), None));
        let record = record.map(|record| self.json(&record)).transpose()?;
        writes.field(&keys[keys::FAIL], of_route(&row.route, &notice), record);
        if matches!(row.notice.kind, Kind::Cleanup(_)) {
            writes.field(&keys[keys::PAYLOAD], notice, row.payload.clone());
        }
        Ok(())
    }

    fn write_parked(&self, writes: &mut Writes, keys: &[String], row: &ParkedRow) -> Result<(), StoreError> {
        let (letters, times) = keys::shelf(row.shelf);
        let member = of_route(&row.route, &write_notice(&row.notice));
        let mut json = self.json(&Record::new(&row.failed, None, Some(&row.notice)))?;
        if let Some(payload) = &row.payload {
            // The rest of it is an object that is not empty.
            json.pop();
            json.extend_from_slice(b",\"payload\":\"");
            escape(payload, &mut json);
            json.extend_from_slice(b"\"}");
        }
        writes.field(&keys[letters], member.clone(), Some(json));
        writes.score(&keys[times], row.parked_at_ms, member);
        Ok(())
    }

    fn json(&self, record: &Record<'_>) -> Result<Vec<u8>, StoreError> {
        serde_json::to_vec(record).map_err(|error| self.0.connection.odd(error.to_string()))
    }
}

fn write_armed(writes: &mut Writes, keys: &[String], armed: &ArmedRow) {
    let id = armed.id.as_bytes();
    writes.score(&keys[keys::EXP], armed.expires_at_ms, id);
    writes.field(&keys[keys::PAYLOAD], id, armed.payload.clone());
    writes.field(&keys[keys::EVERY], id, armed.every.clone().map(String::into_bytes));
    for lead in &armed.silent {
        writes.score(&keys[keys::SKIP], armed.expires_at_ms, of_lead(*lead, id));
    }
}

/// What the scripts write of failures.
#[derive(Serialize)]
struct Record<'a> {
    failures: u32,
    lapses: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at_ms: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_set: Option<bool>,
    last: &'a [FailureRecord],
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    e: Option<String>,
}

impl<'a> Record<'a> {
    fn new(failed: &'a Failed, due: Option<(i64, bool)>, parked: Option<&Notice>) -> Self {
        Self {
            failures: failed.failures,
            lapses: failed.lapses,
            due_at_ms: due.map(|(at, _)| at.to_string()),
            on_set: due.map(|(_, on_set)| on_set),
            last: &failed.last,
            kind: parked.map(|notice| notice.kind.to_stored()),
            e: parked.map(|notice| notice.expires_at_ms.to_string()),
        }
    }
}

/// `<lead>:<id>`.
pub(super) fn of_lead(lead: LeadTime, id: &[u8]) -> Vec<u8> {
    [lead.as_millis().to_string().as_bytes(), b":", id].concat()
}

/// `<route>:<notice>`.
pub(super) fn of_route(route: &Name, notice: &[u8]) -> Vec<u8> {
    [route.as_str().as_bytes(), b":", notice].concat()
}

fn cursor_text(swept: &Swept) -> Vec<u8> {
    let mut text = swept.expires_at_ms.to_string().into_bytes();
    if let Some(id) = &swept.id {
        text.push(b' ');
        text.extend_from_slice(id);
    }
    text
}

/// Any bytes within a JSON string, as the server's own encoder writes them: those that are no ASCII pass through.
fn escape(bytes: &[u8], json: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'"' | b'\\' => json.extend([b'\\', *byte]),
            0..0x20 => json.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => json.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_within_json() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut json = b"{\"payload\":\"".to_vec();
        escape(&bytes, &mut json);
        json.extend_from_slice(b"\"}");
        let read: super::super::super::codec::StoredFailures = serde_json::from_slice(&json).unwrap();
        assert_eq!(read.payload.unwrap().into_vec(), bytes);
    }
}
