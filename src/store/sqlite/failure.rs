//! What is recorded of a delivery's failures, and parking.

use serde::{Deserialize, Serialize};

use crate::model::FailureRecord;
use crate::store::{Ending, Shelf};

use super::{cleanup::Open, delivery::Key, error::Fault, operation::Operation};

/// What is recorded of a delivery's failures; kept as JSON once there are any.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Failures {
    /// Failures its handlers reported.
    pub(super) failures: u32,
    /// Hand-outs whose worker vanished.
    pub(super) lapses: u32,
    /// The last of both, newest last.
    pub(super) last: Vec<FailureRecord>,
}

/// How many are kept in full.
const KEPT: usize = 10;

impl Failures {
    /// Nothing stored is an empty record.
    pub(super) fn read(operation: &Operation<'_>, stored: Option<&str>) -> Result<Self, Fault> {
        stored.map_or_else(
            || Ok(Self::default()),
            |json| {
                serde_json::from_str(json)
                    .map_err(|error| operation.odd(format!("a failure record cannot be read: {error}")))
            },
        )
    }

    pub(super) fn write(&self, operation: &Operation<'_>) -> Result<String, Fault> {
        serde_json::to_string(self)
            .map_err(|error| operation.odd(format!("a failure record cannot be written: {error}")))
    }

    pub(super) fn add(&mut self, record: FailureRecord) {
        self.last.push(record);
        if self.last.len() > KEPT {
            self.last.remove(0);
        }
    }
}

impl Operation<'_> {
    /// Parks a delivery, which settles it.
    pub(super) fn park(
        &self,
        shelf: Shelf,
        route: &str,
        key: Key<'_>,
        open: Option<Open>,
        failures: &Failures,
    ) -> Result<(), Fault> {
        let payload = self.payload_of(key)?;
        self.desk.run(
            "INSERT OR REPLACE INTO parked
               (namespace, shelf, route, id, expires_at, kind, parked_at, payload, failures)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            (self.scope.key, shelf.as_str(), route, key.id, key.e, key.kind, self.now, payload, failures.write(self)?),
        )?;
        self.remember(if shelf == Shelf::Dead { Ending::Dead } else { Ending::Review }, Some(route), key)?;
        self.drop_void(route, key, open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Class;

    #[test]
    fn only_the_last_ten_are_kept_in_full() {
        let mut failures = Failures::default();
        for attempt in 1..=12 {
            failures.add(FailureRecord {
                at_ms: 0,
                attempt,
                stage: "deliver".to_owned(),
                class: Class::Timeout,
                summary: String::new(),
                next_attempt_at_ms: None,
            });
        }
        let attempts: Vec<u32> = failures.last.iter().map(|record| record.attempt).collect();
        assert_eq!(attempts, (3..=12).collect::<Vec<_>>());
    }
}
