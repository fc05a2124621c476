//! Problems: what errors look like on the wire (RFC 9457), and which error of a store is which.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::Invalid;
use crate::store::StoreError;

/// An error: `application/problem+json` as of RFC 9457.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Names the kind of problem: `urn:forewarn:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem in a few words.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// The kind of problem in one word.
    pub code: Code,
    /// What is wrong, and what to do about it.
    pub detail: String,
    /// The field that is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The route that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// When the same request may be made again: also in `Retry-After`, there in whole seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// Makes the list of problems: word, status, title.
macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $status:literal, $title:literal;)+) => {
        /// The kinds of problems.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Code {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Code {
            /// The status it is answered with.
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }
        }
    };
}

codes! {
    /// The request cannot be understood: no JSON, a broken path.
    Malformed = 400, "The request cannot be understood";
    /// No token, or one that is not known.
    Unauthenticated = 401, "A token is needed";
    /// The token does not allow this.
    Forbidden = 403, "Not allowed";
    /// There is nothing at this path.
    NotFound = 404, "Nothing here";
    /// The namespace has no settings.
    UnknownNamespace = 404, "The namespace is not configured";
    /// The namespace has no such route.
    UnknownRoute = 404, "The namespace has no such route";
    /// The id is not tracked.
    UnknownDeadline = 404, "The id is not tracked";
    /// No notice of this name is parked.
    UnknownParked = 404, "No such notice is parked";
    /// The path has no such method.
    MethodNotAllowed = 405, "The method is not allowed here";
    /// The request did not arrive in time.
    TooSlow = 408, "The request took too long";
    /// Mode `create` met an armed id.
    Exists = 409, "The id is armed already";
    /// Newer settings are in force, or a notice is void by now.
    Conflict = 409, "It conflicts with what is in force";
    /// The ids of the namespace are keys of somebody else's.
    KeyBacked = 409, "The ids are keys";
    /// Too late to renew.
    Expired = 410, "The deadline has expired";
    /// The body or a batch is larger than allowed.
    TooLarge = 413, "The request is too large";
    /// The body is no JSON by its content type.
    UnsupportedMediaType = 415, "The body is not JSON";
    /// A value is not acceptable: see `field`.
    Invalid = 422, "A value is not acceptable";
    /// More is asked for at the same time than allowed.
    TooMany = 429, "Too many requests at once";
    /// The header is larger than allowed.
    HeaderTooLarge = 431, "The header is too large";
    /// The store cannot be reached or does not answer. The call may have been carried out; it may be made again.
    StoreUnavailable = 503, "The store is unavailable";
    /// The store has no room left; nothing was written.
    StoreFull = 503, "The store has no room left";
    /// The store answers, but not as it should.
    StoreTrouble = 503, "The store has trouble";
    /// The daemon is about to end.
    Stopping = 503, "The daemon is stopping";
}

impl Problem {
    /// A problem of this kind.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let word = serde_json::to_value(code).ok();
        let word = word.as_ref().and_then(|word| word.as_str()).unwrap_or("unknown");
        Self {
            kind: format!("urn:forewarn:problem:{word}"),
            title: code.title().to_owned(),
            status: code.status(),
            code,
            detail: detail.into(),
            field: None,
            route: None,
            retry_after_ms: None,
        }
    }

    /// Says when the same request may be made again.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after_ms: u64::try_from(wait.as_millis()).ok(), ..self }
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Self { field: Some(invalid.field().to_owned()), ..Self::new(Code::Invalid, invalid.to_string()) }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let soon = Duration::from_secs(1);
        let later = Duration::from_secs(5);
        let code = match error {
            StoreError::Invalid(invalid) => return invalid.into(),
            StoreError::Unconfigured { namespace } => {
                let detail = format!(
                    "namespace \"{namespace}\" is not configured; GET /v1/namespaces tells which are, \
                     PUT /v1/namespaces/{namespace} creates it"
                );
                return Self::new(Code::UnknownNamespace, detail);
            }
            StoreError::NoRoute { namespace, route } => {
                let detail = format!(
                    "namespace \"{namespace}\" has no route \"{route}\"; GET /v1/namespaces/{namespace} tells which it has"
                );
                return Self { route: Some(route.to_string()), ..Self::new(Code::UnknownRoute, detail) };
            }
            // Where the store is stands in the log: it is no business of whoever calls.
            StoreError::Unavailable { .. } => {
                let detail = "the store does not answer; the call may have been carried out, make it again in a moment";
                return Self::new(Code::StoreUnavailable, detail).retry_after(soon);
            }
            StoreError::Full { .. } | StoreError::DiskFull { .. } => Code::StoreFull,
            StoreError::KeyBacked { .. } => return Self::new(Code::KeyBacked, error.to_string()),
            StoreError::Conflict { .. } => return Self::new(Code::Conflict, error.to_string()),
            StoreError::Unusable { .. }
            | StoreError::WrongType { .. }
            | StoreError::Denied { .. }
            | StoreError::Unexpected { .. } => Code::StoreTrouble,
        };
        Self::new(code, error.to_string()).retry_after(later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_itself_its_status_and_the_field() {
        let problem = Problem::from(Invalid::new("ttl", "is 0; give more"));
        let json = serde_json::to_value(&problem).unwrap();
        assert_eq!(json["type"], "urn:forewarn:problem:invalid");
        assert_eq!((json["status"].as_u64(), json["field"].as_str()), (Some(422), Some("ttl")));
        assert_eq!(json["detail"], "ttl is 0; give more");
        assert_eq!(serde_json::from_value::<Problem>(json).unwrap(), problem);
    }
}
