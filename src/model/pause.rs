//! Pausing: what an operator has stopped, for a namespace or for one of its routes, and how fast it flows again.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::model::Name;

/// What to pause or to resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// The one route meant; `None` means the whole namespace.
    pub route: Option<Name>,
    /// Whether reminders are meant.
    pub reminders: bool,
    /// Whether cleanups are meant.
    pub cleanups: bool,
    /// `true` pauses, `false` resumes.
    pub paused: bool,
    /// For a resume, how many notices a second flow at most until what gathered during the pause is worked off, for each class
    /// that is meant; `None` does not limit them. Each shard gets its part, at least 1. Of no meaning for a pause.
    pub rate: Option<NonZeroU32>,
}

/// What is paused at present.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(utoipa::ToSchema))]
pub struct Paused {
    /// No reminder is swept or handed out.
    pub reminders: bool,
    /// No cleanup is swept or handed out, and overdue ids may be renewed.
    pub cleanups: bool,
}

/// What flows no faster than its resume allows, because what gathered during a pause is not worked off yet: notices a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(utoipa::ToSchema))]
pub struct CatchingUp {
    /// Of reminders; `None` if they are not limited.
    pub reminders: Option<u32>,
    /// Of cleanups; `None` if they are not limited.
    pub cleanups: Option<u32>,
}

impl CatchingUp {
    /// Adds what another shard allows.
    pub(crate) fn add(&mut self, other: Self) {
        for (sum, more) in [(&mut self.reminders, other.reminders), (&mut self.cleanups, other.cleanups)] {
            *sum = sum.map_or(more, |sum| Some(sum.saturating_add(more.unwrap_or_default())));
        }
    }
}
