//! What a copy carries from store to store: rows that every store understands, and where a copy stands.
//!
//! Instants are whole milliseconds: the fraction of a raw score is cut. Claims are not carried: what is leased travels as
//! waiting until its lease ends, and its token means nothing in the other store.

use serde::{Deserialize, Serialize};

use crate::model::{FailureRecord, Id, LeadTime, Name, Notice, Paused};
use crate::store::Shelf;

/// One piece of a namespace. Writing a row again, or one of the same identity, overwrites it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Row {
    /// How far the sweep of a lead has come.
    Cursor {
        /// The lead.
        lead: LeadTime,
        /// Everything up to here is swept; `None` if nothing is.
        swept: Option<Swept>,
    },
    /// An armed deadline.
    Armed(ArmedRow),
    /// Until when no further crossing of an id and lead speaks.
    Crossed {
        /// The lead.
        lead: LeadTime,
        /// The id.
        id: Id,
        /// The end of the silence.
        until_ms: i64,
    },
    /// The latest unsettled cleanup of its id.
    Open {
        /// The cleanup.
        notice: Notice,
        /// Whether its own recurrence armed the id again.
        recurs: bool,
    },
    /// A delivery in flight or waiting.
    Delivery(DeliveryRow),
    /// A dead letter or a review.
    Parked(ParkedRow),
    /// Something whose score cannot be an expiry.
    Quarantined {
        /// The bytes that stand for the id; no limit holds for them.
        id: Vec<u8>,
        /// The score, as text.
        score: String,
        /// The payload that waits for a proper expiry.
        payload: Option<Vec<u8>>,
    },
}

/// A place in the order of expiries: everything before it, and itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Swept {
    /// The expiry.
    pub expires_at_ms: i64,
    /// The last id with this expiry; `None` means all of them.
    pub id: Option<Vec<u8>>,
}

impl Swept {
    /// Whether a sweep that has come this far is still to meet an entry.
    pub(crate) fn is_before(&self, expires_at_ms: i64, id: &[u8]) -> bool {
        expires_at_ms > self.expires_at_ms
            || expires_at_ms == self.expires_at_ms && self.id.as_deref().is_some_and(|last| id > last)
    }
}

/// An armed deadline.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ArmedRow {
    /// The id.
    pub id: Id,
    /// When it expires.
    pub expires_at_ms: i64,
    /// Its payload.
    pub payload: Option<Vec<u8>>,
    /// Its period, if it recurs: milliseconds, or `cron:` and an expression.
    pub every: Option<String>,
    /// The leads, smallest first, whose sweep is still to meet it and which stay silent then.
    pub silent: Vec<LeadTime>,
}

/// A delivery that is ready, or waits until its retry is due or its lease ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeliveryRow {
    /// The route.
    pub route: Name,
    /// The notice.
    pub notice: Notice,
    /// When it may be handed out. For one never handed out: when it became due.
    pub at_ms: i64,
    /// Hand-outs so far; it stays at 15 once there.
    pub hand_outs: u8,
    /// When the notice was due.
    pub due_at_ms: i64,
    /// Whether a set inside its lead caused it.
    pub on_set: bool,
    /// What was recorded of its failures.
    pub failed: Failed,
    /// The payload of a cleanup; that of a reminder is its deadline's.
    pub payload: Option<Vec<u8>>,
}

/// A dead letter or a review.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ParkedRow {
    /// Which of the two.
    pub shelf: Shelf,
    /// The route it was for.
    pub route: Name,
    /// The notice.
    pub notice: Notice,
    /// When it was parked.
    pub parked_at_ms: i64,
    /// The payload.
    pub payload: Option<Vec<u8>>,
    /// What was recorded of its failures.
    pub failed: Failed,
}

/// What was recorded of a delivery's failures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Failed {
    /// Failures its handlers reported.
    pub failures: u32,
    /// Hand-outs whose worker vanished.
    pub lapses: u32,
    /// The last of both, newest last.
    pub last: Vec<FailureRecord>,
}

/// Where an export goes on. Only the store that made it can read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bookmark(pub(crate) String);

/// One page of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The rows; there may be none although more are to come.
    pub rows: Vec<Row>,
    /// Where the next page begins; `None` if this was the last.
    pub next: Option<Bookmark>,
}

/// Where a copy into a namespace stands, or that it has ended. The target keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyMark {
    /// The store it comes from, without secrets.
    pub source: String,
    /// How far it has come.
    pub stage: CopyStage,
    /// Rows copied so far, without those that only the sweeps need.
    pub rows: u64,
    /// Rows the target cannot hold.
    pub refused: u64,
    /// What was paused in the source before the copy began; it will be in the target once the copy has ended.
    pub paused: Paused,
}

/// How far a copy has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyStage {
    /// Pages are being copied.
    Copying {
        /// The next one; `None` means the first.
        next: Option<Bookmark>,
    },
    /// All pages are copied and not yet compared.
    Copied,
    /// Both stores hold the same; the target is still paused.
    Verified,
    /// The target was let go.
    Ended,
}

/// The most bytes of payloads in one page; a single larger one comes alone.
pub(crate) const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// How many of a page's rows fit into it, given the bytes of each; at least one, if there is any.
pub(crate) fn fitting(sizes: impl IntoIterator<Item = usize>) -> usize {
    let (mut total, mut count) = (0_usize, 0);
    for size in sizes {
        total = total.saturating_add(size);
        if count > 0 && total > PAGE_BYTES {
            break;
        }
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_without_an_id_stands_after_all_of_its_instant() {
        let all = Swept { expires_at_ms: 10, id: None };
        assert!(all.is_before(11, b"a") && !all.is_before(10, b"z") && !all.is_before(9, b"z"));
        let some = Swept { expires_at_ms: 10, id: Some(b"m".to_vec()) };
        assert!(some.is_before(10, b"n") && !some.is_before(10, b"m") && !some.is_before(9, b"n"));
    }

    #[test]
    fn a_page_holds_what_fits_and_at_least_one() {
        assert_eq!(fitting([1, 1, 1]), 3);
        assert_eq!(fitting([PAGE_BYTES, 1]), 1);
        assert_eq!(fitting([PAGE_BYTES + 1, 1]), 1);
        assert_eq!(fitting([]), 0);
    }

    #[test]
    fn a_mark_survives_being_stored() {
        for stage in [
            CopyStage::Copying { next: None },
            CopyStage::Copying { next: Some(Bookmark("[1]".to_owned())) },
            CopyStage::Copied,
            CopyStage::Verified,
            CopyStage::Ended,
        ] {
            let paused = Paused { reminders: true, cleanups: false };
            let mark = CopyMark { source: "sqlite:/a".to_owned(), stage, rows: 7, refused: 1, paused };
            let stored = serde_json::to_string(&mark).unwrap();
            assert_eq!(serde_json::from_str::<CopyMark>(&stored).unwrap(), mark);
        }
    }
}
