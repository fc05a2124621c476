//! What is answered for a deadline that was tracked, renewed, removed or expired.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::{ExpiresAt, Invalid, format_instant};
use crate::store::{Expired, Removed, Renewed, Replaced, StoreError, Tracked};

/// What became of one deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Tracked: a new life began.
    Created,
    /// Tracked: a living deadline was moved.
    Moved,
    /// Tracked or renewed: it had this very expiry.
    Unchanged,
    /// Mode `create`: it was armed already.
    Exists,
    /// Mode `extend_only`: its expiry is later already.
    Kept,
    /// Key-backed: there is no key of this name, so there is nothing that could expire.
    NoKey,
    /// Renewed: it was moved.
    Renewed,
    /// Renewed: too late, its expiry and grace have passed.
    Expired,
    /// Removed: it was armed and is no more.
    Removed,
    /// Removed: it had only an open cleanup, which is void now.
    Voided,
    /// Expired: it was armed, and its cleanup is open now, if any route wants it.
    Ended,
    /// Expired: it was not armed, and its cleanup is open.
    Open,
    /// It is not tracked.
    Unknown,
    /// The entry is not acceptable: see `error`.
    Rejected,
}

/// The answer for one deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Answer {
    /// What became of it.
    pub result: Word,
    /// For `created` and `moved`: whether its expiry is not after the store's now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub already_expired: Option<bool>,
    /// For `track` with `replaces`: whether the old id was armed and is removed now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<bool>,
    /// When it expires, if it was given a new expiry (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// For `rejected`: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FieldError>,
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// The field.
    pub field: String,
    /// What is wrong with it, and the fix.
    pub problem: String,
}

impl From<&Invalid> for FieldError {
    fn from(invalid: &Invalid) -> Self {
        Self { field: invalid.field().to_owned(), problem: invalid.problem().to_owned() }
    }
}

impl From<FieldError> for Invalid {
    fn from(error: FieldError) -> Self {
        Self::new(error.field, error.problem)
    }
}

impl Answer {
    fn new(result: Word) -> Self {
        Self { result, already_expired: None, replaced: None, expires_at: None, error: None }
    }

    /// The answer for what is not acceptable.
    pub fn rejected(invalid: &Invalid) -> Self {
        Self { error: Some(invalid.into()), ..Self::new(Word::Rejected) }
    }

    fn expiring(self, at: ExpiresAt) -> Self {
        Self { expires_at: Some(format_instant(at.as_millis())), ..self }
    }

    /// The answer to track.
    pub fn tracked(tracked: &Tracked, at: ExpiresAt) -> Self {
        match tracked {
            Tracked::Created { already_expired } => {
                Self { already_expired: Some(*already_expired), ..Self::new(Word::Created) }.expiring(at)
            }
            Tracked::Moved { already_expired } => {
                Self { already_expired: Some(*already_expired), ..Self::new(Word::Moved) }.expiring(at)
            }
            Tracked::Unchanged => Self::new(Word::Unchanged).expiring(at),
            Tracked::Exists => Self::new(Word::Exists),
            Tracked::Kept => Self::new(Word::Kept),
            Tracked::NoKey => Self::new(Word::NoKey),
            Tracked::Rejected(invalid) => Self::rejected(invalid),
        }
    }

    /// The answer to track in place of another id.
    pub fn replaced(replaced: &Replaced, at: ExpiresAt) -> Self {
        Self { replaced: Some(replaced.replaced), ..Self::tracked(&replaced.tracked, at) }
    }

    /// The answer to renew.
    pub fn renewed(renewed: &Renewed, at: ExpiresAt) -> Self {
        match renewed {
            Renewed::Renewed => Self::new(Word::Renewed).expiring(at),
            Renewed::Unchanged => Self::new(Word::Unchanged).expiring(at),
            Renewed::Expired => Self::new(Word::Expired),
            Renewed::Unknown => Self::new(Word::Unknown),
            Renewed::Rejected(invalid) => Self::rejected(invalid),
        }
    }

    /// What a track was answered.
    ///
    /// # Errors
    /// If this is no answer to a track.
    pub fn into_tracked(self) -> Result<Tracked, StoreError> {
        let already_expired = self.already_expired.unwrap_or_default();
        match self.result {
            Word::Created => Ok(Tracked::Created { already_expired }),
            Word::Moved => Ok(Tracked::Moved { already_expired }),
            Word::Unchanged => Ok(Tracked::Unchanged),
            Word::Exists => Ok(Tracked::Exists),
            Word::Kept => Ok(Tracked::Kept),
            Word::NoKey => Ok(Tracked::NoKey),
            Word::Rejected => Ok(Tracked::Rejected(self.into_invalid())),
            other => Err(odd(other)),
        }
    }

    /// What a renew was answered.
    ///
    /// # Errors
    /// If this is no answer to a renew.
    pub fn into_renewed(self) -> Result<Renewed, StoreError> {
        match self.result {
            Word::Renewed => Ok(Renewed::Renewed),
            Word::Unchanged => Ok(Renewed::Unchanged),
            Word::Expired => Ok(Renewed::Expired),
            Word::Unknown => Ok(Renewed::Unknown),
            Word::Rejected => Ok(Renewed::Rejected(self.into_invalid())),
            other => Err(odd(other)),
        }
    }

    /// What a remove was answered.
    ///
    /// # Errors
    /// If this is no answer to a remove.
    pub fn into_removed(self) -> Result<Removed, StoreError> {
        match self.result {
            Word::Removed => Ok(Removed::Removed),
            Word::Voided => Ok(Removed::Voided),
            Word::Unknown => Ok(Removed::Unknown),
            Word::Rejected => Err(self.into_invalid().into()),
            other => Err(odd(other)),
        }
    }

    /// What an expire was answered.
    ///
    /// # Errors
    /// If this is no answer to an expire.
    pub fn into_expired(self) -> Result<Expired, StoreError> {
        match self.result {
            Word::Ended => Ok(Expired::Ended),
            Word::Open => Ok(Expired::Open),
            Word::Unknown => Ok(Expired::Unknown),
            Word::Rejected => Err(self.into_invalid().into()),
            other => Err(odd(other)),
        }
    }

    fn into_invalid(self) -> Invalid {
        self.error.map_or_else(|| Invalid::new("entry", "is not acceptable"), Invalid::from)
    }
}

fn odd(word: Word) -> StoreError {
    StoreError::Unexpected { address: "the daemon".to_owned(), problem: format!("{word:?} answers something else") }
}

impl From<Removed> for Answer {
    fn from(removed: Removed) -> Self {
        Self::new(match removed {
            Removed::Removed => Word::Removed,
            Removed::Voided => Word::Voided,
            Removed::Unknown => Word::Unknown,
        })
    }
}

impl From<Expired> for Answer {
    fn from(expired: Expired) -> Self {
        Self::new(match expired {
            Expired::Ended => Word::Ended,
            Expired::Open => Word::Open,
            Expired::Unknown => Word::Unknown,
        })
    }
}

/// The answers to a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Answers {
    /// One for each entry, in their order.
    pub results: Vec<Answer>,
}
