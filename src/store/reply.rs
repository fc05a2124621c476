//! What the port answers.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::model::{
    EventId, FailureRecord, Id, IdKey, IdMask, Invalid, LeadTime, Name, Notice, Paused, Route, Settings,
};
use crate::store::StoreError;

/// A namespace as the registry knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(utoipa::ToSchema))]
pub struct Registered {
    /// The name.
    pub name: Name,
    /// Its number of shards.
    pub shards: u16,
}

/// The settings and routes in force, under one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Configured {
    /// Changes with every configure; random, so that two changes never look alike.
    pub version: String,
    /// The settings.
    pub settings: Settings,
    /// The routes, in order.
    pub routes: Vec<Route>,
    /// What is paused for the whole namespace.
    pub paused: Paused,
    /// The key of its handles; `None` if no version that makes one has configured it yet. Never written out.
    #[serde(skip)]
    pub id_key: Option<IdKey>,
}

impl Configured {
    /// How its ids are shown to people and logs.
    pub fn id_mask(&self) -> IdMask {
        match self.settings.sensitive_ids {
            // Every store makes a key before it takes such settings. Were it lost, a known key shows no more of an id.
            true => IdMask::new(self.id_key.clone().unwrap_or_default()),
            false => IdMask::none(),
        }
    }
}

/// What a configure did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Whether the namespace is new.
    pub created: bool,
    /// Whether anything changed.
    pub changed: bool,
    /// The settings in force now.
    pub configured: Arc<Configured>,
}

/// What applying some settings would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// Whether the namespace would be new.
    pub created: bool,
    /// Whether anything would change.
    pub changed: bool,
    /// For each lead time, smallest first, how many reminders would speak at once.
    pub reminders: Vec<(LeadTime, u64)>,
    /// How many cleanups would open at once.
    pub cleanups: u64,
}

/// The answer to `track`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tracked {
    /// A new life began. `already_expired`: its expiry is not after the store's now.
    Created {
        /// Whether its expiry had passed already.
        already_expired: bool,
    },
    /// A living deadline was moved.
    Moved {
        /// Whether its expiry had passed already.
        already_expired: bool,
    },
    /// It had this very expiry.
    Unchanged,
    /// Mode `create` met an armed id.
    Exists,
    /// Mode `extend_only` met a later expiry.
    Kept,
    /// Key-backed: there is no key of this name, so there is nothing that could expire.
    NoKey,
    /// The entry is not acceptable.
    Rejected(Invalid),
}

/// The answer to `replace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// What became of the new id.
    pub tracked: Tracked,
    /// Whether the old id was armed and is removed now.
    pub replaced: bool,
}

/// The answer to `renew`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Renewed {
    /// It was moved.
    Renewed,
    /// It had this very expiry.
    Unchanged,
    /// Too late: its expiry and grace have passed.
    Expired,
    /// It is not tracked.
    Unknown,
    /// The entry is not acceptable.
    Rejected(Invalid),
}

/// The answer to `remove`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Removed {
    /// It was armed and is no more.
    Removed,
    /// It had only an open cleanup, which is void now.
    Voided,
    /// It was not tracked.
    Unknown,
}

/// The answer to `expire`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expired {
    /// It was armed; its cleanup is open now, if any route wants it.
    Ended,
    /// It was not armed, and its cleanup is open.
    Open,
    /// It was not tracked.
    Unknown,
}

/// The answer to a search for the id behind a handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is this one.
    Id(Id),
    /// No id has this handle.
    Nowhere,
    /// The ids have to be gone through.
    NoShortWay,
}

/// The fencing token of a claim: settles only that claim.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Token(Vec<u8>);

impl Token {
    /// Takes the bytes a store gave out.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes, as a store gave them out.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.0.escape_ascii())
    }
}

/// One claimed notice. Not `Clone`: whoever holds it settles it, once.
#[derive(Debug, PartialEq, Eq)]
pub struct Claim {
    /// The right to settle it.
    pub token: Token,
    /// The notice.
    pub notice: Notice,
    /// The number of this attempt: 1 + recorded failures + lapses.
    pub attempt: u32,
    /// The failures recorded so far; the back-off counts on from here.
    pub failures: u32,
    /// When it was due, in ms.
    pub due_at_ms: i64,
    /// Whether a set inside its lead caused it.
    pub on_set: bool,
    /// The payload of the deadline.
    pub payload: Option<Vec<u8>>,
}

/// The answer to `claim`.
#[derive(Debug)]
pub struct Claims {
    /// The store's clock during the claim, in ms.
    pub now_ms: i64,
    /// What was claimed.
    pub claims: Vec<Claim>,
    /// When the next thing is due.
    pub next: Next,
    /// What was dropped on the way, by reason.
    pub dropped: Dropped,
    /// Ids moved to quarantine because their score cannot be an expiry.
    pub quarantined: u64,
    /// Notices that became dead letters because their workers vanished too often.
    pub lapsed: u64,
    /// Parts of the store that failed while others answered.
    pub faults: Vec<StoreError>,
}

/// When the next thing is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A backlog is left: claim again at once.
    Backlog,
    /// Nothing is due before this instant (ms). `poll_at_ms` is when the worker must look again in any case: it is not
    /// woken for anything that comes due later than that.
    At {
        /// The exact instant of the next event; `None` if nothing is known to come.
        due_at_ms: Option<i64>,
        /// When to claim again at the latest.
        poll_at_ms: i64,
    },
    /// Everything this route could get is paused; look again at this instant.
    Paused {
        /// When to claim again at the latest.
        poll_at_ms: i64,
    },
}

/// Why a delivery was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// A renewal, a removal or a new life made it void.
    Superseded,
    /// The reminder's deadline has expired.
    Expired,
    /// A tighter lead speaks instead.
    Coalesced,
    /// Its lead is no longer configured.
    Lead,
}

/// How many deliveries were dropped, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(utoipa::ToSchema))]
pub struct Dropped {
    /// Made void by a renewal, a removal or a new life.
    pub superseded: u64,
    /// Reminders whose deadline has expired.
    pub expired: u64,
    /// Reminders for which a tighter lead speaks.
    pub coalesced: u64,
    /// Reminders of a lead no longer configured.
    pub lead: u64,
}

/// The answer to a recheck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// The claim holds: run the handler.
    Current,
    /// The claim is lost: somebody else has the notice, or it is settled.
    Stale,
    /// The notice is void and was dropped.
    Dropped(DropReason),
}

/// The answer to ack, fail, extend and release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settled {
    /// Done as asked.
    Settled,
    /// It failed and will be handed out again at this instant (ms).
    Retry {
        /// When the next attempt is allowed.
        next_attempt_at_ms: i64,
    },
    /// The claim was lost before; nothing was changed.
    Stale,
    /// The notice was void and was dropped.
    Dropped(DropReason),
    /// It became a dead letter.
    Dead,
    /// It was parked for a person.
    Review,
}

/// One parked notice, with all that is needed to deliver it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// The route it was for.
    pub route: Name,
    /// The notice.
    pub notice: Notice,
    /// When it was parked, in ms.
    pub parked_at_ms: i64,
    /// The payload.
    pub payload: Option<Vec<u8>>,
    /// The last failures (at most 10), newest last.
    pub failures: Vec<FailureRecord>,
    /// The key under which the store keeps it.
    pub(crate) key: Vec<u8>,
}

/// One page of parked notices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedPage {
    /// The notices.
    pub entries: Vec<Parked>,
    /// How many there are in all, whatever the query.
    pub total: u64,
}

/// The answer to a requeue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Requeued {
    /// It is ready again.
    Requeued,
    /// It is void: the id has another life, or the reminder's time has passed. It stays parked.
    Superseded,
    /// It is not parked any more.
    Unknown,
    /// Its route is gone. It stays parked.
    NoRoute,
}

impl Parked {
    /// The stable id of the notice.
    pub fn event_id(&self) -> EventId {
        self.notice.event_id()
    }
}
