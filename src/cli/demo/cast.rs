//! Who plays in the demo, and what is heard of them.

use forewarn::{engine::Delivery, model::Kind};

/// The ids of the three sessions.
#[derive(Debug)]
pub(super) struct Cast {
    /// Is reminded, renews, is reminded again.
    pub(super) anna: &'static str,
    /// Logs out.
    pub(super) ben: &'static str,
    /// Expires.
    pub(super) cleo: &'static str,
}

impl Cast {
    pub(super) fn new() -> Self {
        Self { anna: "session:anna", ben: "session:ben", cleo: "session:cleo" }
    }

    pub(super) fn ids(&self) -> [&'static str; 3] {
        [self.anna, self.ben, self.cleo]
    }
}

/// One notice as the worker's handler got it.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    pub(super) id: String,
    pub(super) kind: Kind,
    pub(super) attempt: u32,
    pub(super) expires_at_ms: i64,
    /// When the handler had it, by the store's clock.
    pub(super) at_ms: i64,
}

impl Heard {
    pub(super) fn of(delivery: &Delivery, at_ms: i64) -> Self {
        Self {
            id: delivery.id().to_string(),
            kind: delivery.kind(),
            attempt: delivery.attempt(),
            expires_at_ms: delivery.notice().expires_at_ms,
            at_ms,
        }
    }

    /// What it is, in the words of the table.
    pub(super) fn what(&self) -> String {
        match self.kind {
            Kind::Reminder(lead) => format!("reminder {lead} before expiry"),
            Kind::Cleanup(_) => format!("cleanup, attempt {}", self.attempt),
        }
    }

    /// When it was due, in ms; `None` for a later attempt, whose time depends on the first.
    pub(super) fn due_at_ms(&self) -> Option<i64> {
        match self.kind {
            _ if self.attempt > 1 => None,
            Kind::Reminder(lead) => Some(self.expires_at_ms - lead.as_millis()),
            Kind::Cleanup(_) => Some(self.expires_at_ms),
        }
    }
}
