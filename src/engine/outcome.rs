//! What a handler answers. The worker turns it into a settlement; nothing here knows how.

use std::{fmt::Display, time::Duration};

use crate::model::{Class, Failure};

/// How the handling of one notice ended.
///
/// A handler may also return `()`, which means done, or a `Result`, whose error means retry with class `failed`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It is done.
    Done,
    /// It is done, and something about it is worth a note: what was to be cleaned was gone already.
    Noted(String),
    /// It failed and may succeed later.
    Retry {
        /// What went wrong.
        failure: Failure,
        /// How long to wait; `None` leaves that to the worker's back-off.
        after: Option<Duration>,
    },
    /// It can never succeed: it becomes a dead letter.
    Reject(Failure),
    /// A person has to look at it: it is parked as a review.
    Review(Failure),
    /// It is void: the business has moved on. Settled like done, counted apart.
    Superseded,
    /// It was not handled, and that is not its fault: this worker cannot work just now. It is given back, ready at once
    /// for any worker, and no attempt is burnt.
    ///
    /// While its handlers answer like this the worker claims more and more slowly, at last every few seconds, so that a
    /// notice does not go round and round. To give the notice itself a rest, use [`Outcome::retry_after`].
    Release,
}

impl Outcome {
    /// Done, with a note.
    pub fn noted(note: impl Into<String>) -> Self {
        Self::Noted(note.into())
    }

    /// Failed; retried after the delay of the worker's back-off.
    pub fn retry(failure: Failure) -> Self {
        Self::Retry { failure, after: None }
    }

    /// Failed; retried after exactly this delay.
    pub fn retry_after(delay: Duration, failure: Failure) -> Self {
        Self::Retry { failure, after: Some(delay) }
    }

    /// What went wrong, if anything did.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Retry { failure, .. } | Self::Reject(failure) | Self::Review(failure) => Some(failure),
            Self::Done | Self::Noted(_) | Self::Superseded | Self::Release => None,
        }
    }

    /// The word for the outcome in logs and tables.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Noted(_) => "noted",
            Self::Retry { .. } => "retry",
            Self::Reject(_) => "reject",
            Self::Review(_) => "review",
            Self::Superseded => "superseded",
            Self::Release => "release",
        }
    }
}

impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self::Done
    }
}

/// The default answer to each class of failure: what is missing is done with a note, what is denied, refused or lapsed
/// is a dead letter, a conflict waits for a person, and everything else is retried.
impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        match failure.class {
            Class::Missing => Self::Noted(failure.summary),
            Class::Denied | Class::Rejected | Class::Lapsed => Self::Reject(failure),
            Class::Conflict => Self::Review(failure),
            Class::Timeout | Class::Failed => Self::retry(failure),
        }
    }
}

/// An error is retried; its text, with causes where its alternate form (`{:#}`) gives them, becomes the summary.
impl<O: Into<Outcome>, E: Display> From<Result<O, E>> for Outcome {
    fn from(result: Result<O, E>) -> Self {
        match result {
            Ok(outcome) => outcome.into(),
            Err(error) => Self::retry(Failure::new(Class::Failed, format!("{error:#}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_may_return_nothing_an_outcome_or_a_result() {
        assert_eq!(Outcome::from(()), Outcome::Done);
        assert_eq!(Outcome::from(Ok::<_, String>(())), Outcome::Done);
        assert_eq!(Outcome::from(Ok::<_, String>(Outcome::Superseded)), Outcome::Superseded);
        let failed = Outcome::from(Err::<(), _>("no route to host"));
        assert_eq!(failed, Outcome::retry(Failure::new(Class::Failed, "no route to host")));
    }

    #[test]
    fn an_error_with_causes_is_told_with_them() {
        let error = anyhow::anyhow!("connection refused").context("the mail server cannot be reached");
        let Outcome::Retry { failure, .. } = Outcome::from(Err::<(), _>(error)) else { panic!("not a retry") };
        assert_eq!(failure.summary, "the mail server cannot be reached: connection refused");
    }

    #[test]
    fn each_class_of_failure_has_its_own_outcome() {
        let word = |class| Outcome::from(Failure::new(class, "x")).as_str();
        assert_eq!(word(Class::Missing), "noted");
        assert_eq!(word(Class::Timeout), "retry");
        assert_eq!(word(Class::Failed), "retry");
        assert_eq!(word(Class::Denied), "reject");
        assert_eq!(word(Class::Rejected), "reject");
        assert_eq!(word(Class::Conflict), "review");
    }
}
