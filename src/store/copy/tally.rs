//! What a namespace holds, counted and hashed by what it is: two stores hold the same when their tallies are equal.
//!
//! The hash of many rows does not depend on their order. It serves one comparison within one process and is never stored.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use crate::model::Name;
use crate::store::Shelf;

use super::Row;

/// Rows by what they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally(BTreeMap<What, Sum>);

/// What a row is, in the order in which people are told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Armed,
    Open,
    Pending(Name),
    Dead,
    Review,
    Quarantined,
    Crossed,
    Cursor,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    hash: u64,
}

impl Tally {
    pub(super) fn add(&mut self, row: &Row) {
        let mut hasher = DefaultHasher::new();
        row.hash(&mut hasher);
        let sum = self.0.entry(What::of(row)).or_default();
        sum.count += 1;
        sum.hash = sum.hash.wrapping_add(hasher.finish());
    }

    /// How many there are of what people know: cursors and the like are not among it.
    pub(super) fn counts(&self) -> Vec<(String, u64)> {
        let known = self.0.iter().filter(|(what, _)| !matches!(what, What::Crossed | What::Cursor));
        known.map(|(what, sum)| (what.to_string(), sum.count)).collect()
    }

    /// What differs between a source and its target, in words.
    pub(super) fn differences(&self, target: &Self) -> Vec<String> {
        let mut all: Vec<&What> = self.0.keys().chain(target.0.keys()).collect();
        all.sort();
        all.dedup();
        let of = |tally: &Self, what| tally.0.get(what).copied().unwrap_or_default();
        all.into_iter()
            .filter_map(|what| match (of(self, what), of(target, what)) {
                (source, target) if source == target => None,
                (source, target) if source.count == target.count => {
                    Some(format!("{what}: {} in both, but not the same", source.count))
                }
                (source, target) => {
                    Some(format!("{what}: {} in the source, {} in the target", source.count, target.count))
                }
            })
            .collect()
    }
}

impl What {
    fn of(row: &Row) -> Self {
        match row {
            Row::Cursor { .. } => Self::Cursor,
            Row::Armed(_) => Self::Armed,
            Row::Crossed { .. } => Self::Crossed,
            Row::Open { .. } => Self::Open,
            Row::Delivery(delivery) => Self::Pending(delivery.route.clone()),
            Row::Parked(parked) => match parked.shelf {
                Shelf::Dead => Self::Dead,
                Shelf::Review => Self::Review,
            },
            Row::Quarantined { .. } => Self::Quarantined,
        }
    }
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Armed => f.write_str("armed"),
            Self::Open => f.write_str("open cleanups"),
            Self::Pending(route) => write!(f, "pending on {route}"),
            Self::Dead => f.write_str("dead letters"),
            Self::Review => f.write_str("reviews"),
            Self::Quarantined => f.write_str("quarantined"),
            Self::Crossed => f.write_str("crossings held back"),
            Self::Cursor => f.write_str("sweeps"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Id;
    use crate::store::copy::ArmedRow;

    fn armed(id: &str, expires_at_ms: i64) -> Row {
        let id = Id::new(id).unwrap();
        Row::Armed(ArmedRow { id, expires_at_ms, payload: None, every: None, silent: Vec::new() })
    }

    fn tally(rows: &[Row]) -> Tally {
        let mut tally = Tally::default();
        rows.iter().for_each(|row| tally.add(row));
        tally
    }

    #[test]
    fn the_order_of_rows_makes_no_difference() {
        let (one, two) = (armed("a", 1), armed("b", 2));
        assert_eq!(tally(&[one.clone(), two.clone()]), tally(&[two, one]));
    }

    #[test]
    fn differences_are_told_in_words() {
        let source = tally(&[armed("a", 1), armed("b", 2)]);
        assert_eq!(source.differences(&source), Vec::<String>::new());
        assert_eq!(source.differences(&tally(&[armed("a", 1)])), ["armed: 2 in the source, 1 in the target"]);
        let other = tally(&[armed("a", 1), armed("b", 3)]);
        assert_eq!(source.differences(&other), ["armed: 2 in both, but not the same"]);
        assert_eq!(Tally::default().differences(&source), ["armed: 0 in the source, 2 in the target"]);
    }
}
