//! What a namespace holds, in the words of the model. Each kind of store has its own way to be read: see `ground`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::model::{Looked, Open, Place, Record, Stored};
use crate::words::{Bytes, Frontier, Notice, Score};

/// Time, n and c of a delivery, as its score holds them.
pub(crate) type Square = (i64, u8, u8);

/// What a namespace holds.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) armed: BTreeMap<Bytes, Score>,
    pub(crate) frontiers: BTreeMap<(u16, i64), Frontier>,
    pub(crate) queues: BTreeMap<String, BTreeMap<Notice, Square>>,
    pub(crate) open: BTreeMap<Bytes, Open>,
    pub(crate) silent: BTreeMap<(i64, Bytes), Score>,
    pub(crate) crossed: BTreeMap<(i64, Bytes), i64>,
    pub(crate) payloads: BTreeMap<Bytes, Bytes>,
    pub(crate) records: BTreeMap<(String, Notice), Record>,
    pub(crate) parked: BTreeMap<(Place, String, Notice), Stored>,
    pub(crate) every: BTreeMap<Bytes, i64>,
    pub(crate) bad: BTreeMap<Bytes, Score>,
    /// The keys behind key-backed ids, and what was found at them.
    pub(crate) keys: BTreeMap<Bytes, Option<i64>>,
    pub(crate) looked: Looked,
    /// The claim counter of each shard.
    pub(crate) claims: BTreeMap<u16, i64>,
    /// Until when each route of each shard is known to sleep.
    pub(crate) wake_at: BTreeMap<(u16, String), i64>,
}

/// A failure record, or a parked notice, as every store writes it.
#[derive(Deserialize)]
pub(crate) struct Json {
    failures: f64,
    lapses: f64,
    #[serde(default)]
    pub(crate) payload: Option<serde_bytes::ByteBuf>,
}

impl Json {
    pub(crate) fn record(&self) -> Record {
        Record { failures: self.failures as u32, lapses: self.lapses as u32 }
    }
}
