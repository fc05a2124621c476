//! Failures: what went wrong, at which stage, and what has been recorded of it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::model::Invalid;

/// The class of a failure; it decides what happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Class {
    /// What was to be cleaned is not there: done, with a note.
    Missing,
    /// Timed out, unreachable, or anything that may pass: retried.
    Timeout,
    /// Permission denied: not retried, a dead letter.
    Denied,
    /// The business state changed: superseded, or parked for a person.
    Conflict,
    /// The handler refused the notice for good: a dead letter.
    Rejected,
    /// The handler panicked, or its command failed without saying how: retried.
    Failed,
    /// Its workers vanished again and again without a word: a dead letter.
    Lapsed,
}

impl Class {
    const ALL: [Self; 7] =
        [Self::Missing, Self::Timeout, Self::Denied, Self::Conflict, Self::Rejected, Self::Failed, Self::Lapsed];

    /// The word for the class in JSON and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Timeout => "timeout",
            Self::Denied => "denied",
            Self::Conflict => "conflict",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Lapsed => "lapsed",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Class {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::ALL.into_iter().find(|class| class.as_str() == text).ok_or_else(|| {
            Invalid::new(
                "class",
                format!("\"{}\": use missing, timeout, denied, conflict, rejected or failed", text.escape_debug()),
            )
        })
    }
}

/// What a handler or a sink tells of one failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Where it failed: `verify`, `deliver`, or a name the handler gives.
    pub stage: String,
    /// The class.
    pub class: Class,
    /// What happened, in a sentence; at most 1 KiB is kept.
    pub summary: String,
}

impl Failure {
    /// The longest summary that is kept, in bytes.
    pub const MAX_SUMMARY: usize = 1024;

    /// A failure of stage `deliver`. A summary longer than 1 KiB is cut.
    pub fn new(class: Class, summary: impl Into<String>) -> Self {
        let mut summary = summary.into();
        if summary.len() > Self::MAX_SUMMARY {
            summary.truncate(summary.floor_char_boundary(Self::MAX_SUMMARY));
        }
        Self { stage: "deliver".to_owned(), class, summary }
    }

    /// Names the stage at which it failed.
    #[must_use]
    pub fn at_stage(mut self, stage: impl Into<String>) -> Self {
        self.stage = stage.into();
        self
    }
}

/// One failure as the store recorded it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FailureRecord {
    /// When it was recorded, by the store's clock, in milliseconds.
    pub at_ms: i64,
    /// Which attempt failed; the first is 1.
    pub attempt: u32,
    /// Where it failed.
    pub stage: String,
    /// Its class.
    pub class: Class,
    /// What happened.
    pub summary: String,
    /// When the next attempt is allowed, in milliseconds; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at_ms: Option<i64>,
}
