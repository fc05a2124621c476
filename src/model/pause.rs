//! Pausing: what an operator has stopped, for a namespace or for one of its routes.

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
