//! What a test sees of one hand-out: which notice it was, when, and how it ended.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::model::{Failure, Id, Kind, LeadTime, Name, Notice, Reason};

/// One hand-out of a notice to a worker, and how it ended.
///
/// It is written in a line, such as `reminder 10m of cart:7: done` or `cleanup of cart:7, attempt 2: retry (no route to
/// host)`, so that a test may compare lines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handled {
    /// The route it was handed out on.
    pub route: Name,
    /// The notice.
    pub notice: Notice,
    /// The number of the attempt; the first is 1.
    pub attempt: u32,
    /// When it was handed out, by the test's clock.
    pub at: DateTime<Utc>,
    /// How it ended.
    pub ending: Ending,
}

/// How a hand-out ended: what the store was told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// Done: with or without a note, or superseded by the handler's word.
    Done,
    /// It failed and is tried again.
    Retry {
        /// When.
        at: DateTime<Utc>,
        /// What went wrong.
        failure: Failure,
    },
    /// It failed for good: it is a dead letter.
    Dead(Failure),
    /// It waits for a person.
    Review(Failure),
    /// It was given back unhandled.
    Released,
    /// It was void when the store was told: a renewal or a removal had settled it, most often by its own handler.
    Void,
    /// It has not ended: its handler runs, or the worker vanished with it.
    Open,
}

impl Handled {
    /// The id of the deadline.
    pub fn id(&self) -> &Id {
        &self.notice.id
    }

    /// Which reminder it is, or why the cleanup.
    pub fn kind(&self) -> Kind {
        self.notice.kind
    }

    /// The lead time of a reminder; `None` for a cleanup.
    pub fn lead(&self) -> Option<LeadTime> {
        match self.notice.kind {
            Kind::Reminder(lead) => Some(lead),
            Kind::Cleanup(_) => None,
        }
    }
}

impl fmt::Display for Handled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { notice, attempt, ending, .. } = self;
        match notice.kind {
            Kind::Reminder(lead) => write!(f, "reminder {lead} of {}", notice.id)?,
            Kind::Cleanup(Reason::Expired) => write!(f, "cleanup of {}", notice.id)?,
            Kind::Cleanup(reason) => write!(f, "cleanup ({}) of {}", reason.as_str(), notice.id)?,
        }
        if *attempt > 1 {
            write!(f, ", attempt {attempt}")?;
        }
        write!(f, ": {ending}")
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Retry { failure, .. } => write!(f, "retry ({})", failure.summary),
            Self::Dead(failure) => write!(f, "dead ({})", failure.summary),
            Self::Review(failure) => write!(f, "review ({})", failure.summary),
            Self::Released => f.write_str("released"),
            Self::Void => f.write_str("void"),
            Self::Open => f.write_str("open"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Class;

    fn handled(kind: Kind, attempt: u32, ending: Ending) -> String {
        let notice = Notice {
            namespace: "cart".parse().unwrap(),
            kind,
            expires_at_ms: 1_796_083_200_000,
            id: Id::new("cart:7").unwrap(),
        };
        Handled { route: "main".parse().unwrap(), notice, attempt, at: DateTime::UNIX_EPOCH, ending }.to_string()
    }

    #[test]
    fn a_hand_out_is_one_line() {
        let failure = Failure::new(Class::Timeout, "no route to host");
        let lead = Kind::Reminder("10m".parse().unwrap());
        let (expired, ended) = (Kind::Cleanup(Reason::Expired), Kind::Cleanup(Reason::Ended));
        let retry = Ending::Retry { at: DateTime::UNIX_EPOCH, failure: failure.clone() };
        assert_eq!(handled(lead, 1, Ending::Done), "reminder 10m of cart:7: done");
        assert_eq!(handled(expired, 2, retry), "cleanup of cart:7, attempt 2: retry (no route to host)");
        assert_eq!(
            handled(expired, 3, Ending::Dead(failure.clone())),
            "cleanup of cart:7, attempt 3: dead (no route to host)"
        );
        assert_eq!(handled(ended, 1, Ending::Review(failure)), "cleanup (ended) of cart:7: review (no route to host)");
        assert_eq!(handled(lead, 1, Ending::Void), "reminder 10m of cart:7: void");
    }
}
