//! Reads what a resume with a rate still holds back.

use std::collections::BTreeMap;

use crate::model::CatchingUp;
use crate::store::StoreError;

use super::codec::Reader;

/// The JSON of `catch-up` in `meta` of one shard: for each limited class the texts of its rate, and of two instants.
pub(super) struct Limits<'a> {
    reader: Reader<'a>,
    by_class: BTreeMap<String, [String; 3]>,
}

impl<'a> Limits<'a> {
    /// Nothing stored is no limit.
    pub(super) fn read(reader: Reader<'a>, json: &str) -> Result<Self, StoreError> {
        let unreadable = |error| reader.odd(format!("what is catching up cannot be read: {error}"));
        let by_class =
            if json.is_empty() { BTreeMap::new() } else { serde_json::from_str(json).map_err(unreadable)? };
        Ok(Self { reader, by_class })
    }

    /// Those of the namespace, or of a route: then `scope` is its name and a colon.
    pub(super) fn of(&self, scope: &str) -> Result<CatchingUp, StoreError> {
        let rate = |class: &str| {
            let rate = self.by_class.get(&format!("{scope}{class}")).map(|[rate, ..]| rate.parse());
            rate.transpose().map_err(|_| self.reader.odd("a rate that is no number"))
        };
        Ok(CatchingUp { reminders: rate("reminders")?, cleanups: rate("cleanups")? })
    }
}
