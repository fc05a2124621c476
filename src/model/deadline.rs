//! What a caller asks of a deadline: to be tracked, or moved.

use std::{fmt, str::FromStr};

use crate::model::{ExpiresAt, Id, Invalid};

/// One deadline to track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    /// The id within the namespace.
    pub id: Id,
    /// When it expires.
    pub expires_at: ExpiresAt,
    /// Bytes handed to the handlers of its notices. `None` keeps what a living deadline has; a new life starts without.
    pub payload: Option<Vec<u8>>,
}

/// One armed deadline to move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renew {
    /// The id within the namespace.
    pub id: Id,
    /// When it expires from now on.
    pub expires_at: ExpiresAt,
    /// New payload; `None` keeps the present one.
    pub payload: Option<Vec<u8>>,
}

/// What `track` does with an id that is armed already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Moves it to the new expiry.
    #[default]
    Upsert,
    /// Leaves it and answers `exists`.
    Create,
    /// Moves it only to a later expiry, else answers `kept`.
    ExtendOnly,
}

impl Mode {
    /// The word for this mode in flags, JSON and scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upsert => "upsert",
            Self::Create => "create",
            Self::ExtendOnly => "extend_only",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        [Self::Upsert, Self::Create, Self::ExtendOnly].into_iter().find(|mode| mode.as_str() == text).ok_or_else(|| {
            Invalid::new("mode", format!("\"{}\": use upsert, create or extend_only", text.escape_debug()))
        })
    }
}
