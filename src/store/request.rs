//! What the port is asked.

use std::time::Duration;

use crate::model::{EventId, Failure, FirstStart, Id, IdKey, Name, Route, Settings};
use crate::store::Token;

/// A change of a namespace's settings and routes. Nothing given changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The new settings, whole; `None` keeps the present ones (or takes the defaults, if there are none).
    pub settings: Option<Settings>,
    /// What a namespace that is new says of ids already inside a lead.
    pub first_start: FirstStart,
    /// Routes to add, or to change where the name is taken. A new namespace without any gets `main`.
    pub routes: Vec<Route>,
    /// Routes to remove; their open cleanups are settled as dropped.
    pub drop_routes: Vec<Name>,
    /// The key of handles of a namespace that has none yet, as when it comes from another store. Default: the store makes
    /// one. One that is there is never replaced.
    pub id_key: Option<IdKey>,
}

impl Change {
    /// A change of the settings alone.
    pub fn settings(settings: Settings) -> Self {
        Self { settings: Some(settings), ..Self::default() }
    }

    /// A change that adds one route.
    pub fn add_route(route: Route) -> Self {
        Self { routes: vec![route], ..Self::default() }
    }
}

/// Which armed deadlines to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Only what expires within this time from now; `None` means all.
    pub within: Option<Duration>,
    /// Only what comes after this place: the expiry (in ms) and id of the last entry seen.
    pub after: Option<(i64, Id)>,
    /// At most this many; 0 means 100.
    pub limit: u32,
}

/// The two places where notices are parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shelf {
    /// Dead letters: given up.
    Dead,
    /// Reviews: waiting for a person.
    Review,
}

impl Shelf {
    /// The word in commands and keys.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Review => "review",
        }
    }
}

/// Which parked notices to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParkedQuery {
    /// Only this notice.
    pub event_id: Option<EventId>,
    /// Only those of this route.
    pub route: Option<Name>,
    /// Only those of this deadline.
    pub id: Option<Id>,
    /// Skip this many that match.
    pub offset: u32,
    /// At most this many; 0 means 100.
    pub limit: u32,
}

/// One failed claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    /// The claim.
    pub token: Token,
    /// What is to become of it.
    pub verdict: Verdict,
    /// What went wrong.
    pub failure: Failure,
    /// The recorded failures at which it becomes a dead letter, this one included.
    pub max_failures: u32,
    /// When the notice was due, as its claim said.
    pub due_at_ms: i64,
    /// Whether a set caused it, as its claim said.
    pub on_set: bool,
}

/// What is to become of a failed claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Retry after the policy's delay; that of a reminder is cut to a quarter of the window that is left.
    Backoff(Duration),
    /// Retry after exactly this delay.
    RetryAfter(Duration),
    /// Park as a dead letter.
    Dead,
    /// Park for a person.
    Review,
}
