//! Reads the streams that remember ended notices.

use std::collections::HashMap;

use redis::{Cmd, Value};

use crate::model::{LeadTime, Name};
use crate::store::notation::{read_notice, whole};
use crate::store::{Ending, HistoryEntry, HistoryQuery, StoreError};

use super::{RedisStore, codec::Reader, keys};

/// Entries read at a time.
const PAGE: usize = 1_000;

impl RedisStore {
    pub(super) async fn read_history(
        &self,
        namespace: &Name,
        query: &HistoryQuery,
    ) -> Result<Vec<HistoryEntry>, StoreError> {
        let shards = self.scope(namespace).await?.shards();
        let shards = match &query.id {
            Some(id) => {
                let shard = keys::shard_of(id.as_bytes(), shards);
                shard..shard + 1
            }
            None => 0..shards,
        };
        let mut found = Vec::new();
        for shard in shards {
            found.extend(self.read_shard(namespace, shard, query).await?);
        }
        found.sort_by_key(|entry| std::cmp::Reverse(entry.at_ms()));
        Ok(query.limited(found))
    }

    async fn read_shard(
        &self,
        namespace: &Name,
        shard: u16,
        query: &HistoryQuery,
    ) -> Result<Vec<HistoryEntry>, StoreError> {
        let reader = self.reader(namespace);
        let key = keys::history(&keys::stem(&self.0.prefix, namespace, shard));
        let (mut found, mut before, mut counted) = (Vec::new(), "+".to_owned(), 0);
        loop {
            let mut command = Cmd::new();
            command.arg("XREVRANGE").arg(&key).arg(&before).arg("-").arg("COUNT").arg(PAGE);
            let page = reader.list(self.0.connection.command(&command).await?)?;
            let count = page.len();
            for entry in page {
                let mut parts = reader.list(entry)?.into_iter();
                let mut part = || parts.next().unwrap_or_default();
                before = format!("({}", reader.text(part())?);
                let entry = read_entry(reader, namespace, part())?;
                if query.id.as_ref().is_none_or(|id| entry.may_concern(id)) {
                    counted += usize::from(query.counts(&entry));
                    found.push(entry);
                }
            }
            if count < PAGE || counted >= query.limit() {
                return Ok(found);
            }
        }
    }
}

fn read_entry(reader: Reader<'_>, namespace: &Name, value: Value) -> Result<HistoryEntry, StoreError> {
    let mut fields = HashMap::new();
    let mut pairs = reader.list(value)?.into_iter();
    while let (Some(field), Some(value)) = (pairs.next(), pairs.next()) {
        fields.insert(reader.text(field)?, reader.some_bytes(value)?);
    }
    read_fields(namespace, &fields).ok_or_else(|| reader.odd("an entry of the history cannot be read"))
}

fn read_fields(namespace: &Name, fields: &HashMap<String, Vec<u8>>) -> Option<HistoryEntry> {
    let text = |field: &str| std::str::from_utf8(fields.get(field)?).ok();
    let number = |field| whole(text(field)?);
    let at_ms = number("at")?;
    if let Some(lead) = number("passed") {
        let after_ms = number("after").filter(|_| text("after") != Some("-inf"));
        let count = u64::try_from(number("count")?).ok()?;
        let lead = LeadTime::from_millis(lead).ok()?;
        return Some(HistoryEntry::PassedOver { at_ms, lead, after_ms, upto_ms: number("upto")?, count });
    }
    let route = match text("route")? {
        "" => None,
        name => Some(Name::new("route", name).ok()?),
    };
    let notice = read_notice(namespace, fields.get("notice")?)?;
    Some(HistoryEntry::Ended { at_ms, route, notice, ending: Ending::from_word(text("ending")?)? })
}
