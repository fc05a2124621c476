//! What a store remembers of notices that have ended, if the namespace wants it.

use serde::Serialize;

use crate::model::{Id, LeadTime, Name, Notice};

/// How a notice ended on a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// A worker had it and said that it is done.
    Delivered,
    /// Given up: it is, or was, a dead letter.
    Dead,
    /// Parked for a person.
    Review,
    /// Void by a renewal, a removal or a new life of its id, handed out or not.
    Superseded,
    /// A reminder whose deadline came before it was handed out (again).
    Expired,
    /// A reminder in whose place that of a tighter lead speaks.
    Coalesced,
    /// Its lead time is no longer among the settings.
    Lead,
    /// Silent from the beginning: its deadline was set inside its lead, and the settings say so.
    Skipped,
}

impl Ending {
    const ALL: [Self; 8] = [
        Self::Delivered,
        Self::Dead,
        Self::Review,
        Self::Superseded,
        Self::Expired,
        Self::Coalesced,
        Self::Lead,
        Self::Skipped,
    ];

    /// The word in stores, JSON and texts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Dead => "dead",
            Self::Review => "review",
            Self::Superseded => "superseded",
            Self::Expired => "expired",
            Self::Coalesced => "coalesced",
            Self::Lead => "lead",
            Self::Skipped => "skipped",
        }
    }

    /// Reads the word.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ending| ending.as_str() == word)
    }
}

/// One thing that is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryEntry {
    /// A notice ended.
    Ended {
        /// When, in ms.
        at_ms: i64,
        /// Where it was delivered or would have been; `None`: on no route, it was skipped.
        route: Option<Name>,
        /// The notice.
        notice: Notice,
        /// How.
        ending: Ending,
    },
    /// Nobody claimed while this lead passed; only tighter ones still spoke.
    PassedOver {
        /// When that was noticed, in ms.
        at_ms: i64,
        /// The lead.
        lead: LeadTime,
        /// It was passed for deadlines that expire after this (ms; `None`: all) …
        after_ms: Option<i64>,
        /// … and up to this.
        upto_ms: i64,
        /// For how many of them.
        count: u64,
    },
}

impl HistoryEntry {
    /// When, in ms.
    pub fn at_ms(&self) -> i64 {
        match self {
            Self::Ended { at_ms, .. } | Self::PassedOver { at_ms, .. } => *at_ms,
        }
    }

    /// Whether it is about this id: of leads passed over nobody knows which ids they were of.
    pub(crate) fn may_concern(&self, id: &Id) -> bool {
        match self {
            Self::Ended { notice, .. } => notice.id == *id,
            Self::PassedOver { .. } => true,
        }
    }
}

/// What to look up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Only what may concern this id.
    pub id: Option<Id>,
    /// At most this many, the newest first; 0 means 100. Leads passed over do not count where an id is asked for: they
    /// may be those of others.
    pub limit: u32,
}

impl HistoryQuery {
    /// Whether an entry counts towards the limit.
    pub(crate) fn counts(&self, entry: &HistoryEntry) -> bool {
        self.id.is_none() || matches!(entry, HistoryEntry::Ended { .. })
    }

    /// The newest entries, as many as the limit allows.
    pub(crate) fn limited(&self, entries: Vec<HistoryEntry>) -> Vec<HistoryEntry> {
        let mut counted = 0;
        let within = |entry: &HistoryEntry| {
            counted += usize::from(self.counts(entry));
            counted <= self.limit()
        };
        entries.into_iter().take_while(within).collect()
    }

    /// The limit in force.
    pub(crate) fn limit(&self) -> usize {
        if self.limit == 0 { 100 } else { usize::try_from(self.limit.min(10_000)).unwrap_or(usize::MAX) }
    }
}
