//! How a command ends: its exit status, and its error as one readable line.
//!
//! Exit 0 done, 1 failed, 2 usage or configuration. Nothing here knows a command.

use std::{fmt, io, process::ExitCode};

use forewarn::{Invalid, StoreError, engine::WorkerError};

/// The end of a command that could be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// What was asked for is so.
    Done,
    /// What was asked for is not so; the reason has been said.
    Failed,
    /// The command or the configuration is wrong.
    Usage,
}

impl Exit {
    /// `Done` if `done`, else `Failed`.
    pub(super) fn done_if(done: bool) -> Self {
        if done { Self::Done } else { Self::Failed }
    }

    /// What an error means for the exit status.
    pub(super) fn of(error: &anyhow::Error) -> Self {
        let wrong = error.chain().any(|cause| {
            // An error that is transparent stands in the chain in place of the one inside it.
            let store = match cause.downcast_ref() {
                Some(WorkerError::Store(error)) => Some(error),
                _ => cause.downcast_ref(),
            };
            cause.is::<Usage>()
                || cause.is::<Invalid>()
                || matches!(cause.downcast_ref(), Some(WorkerError::Invalid(_) | WorkerError::NoHandler { .. }))
                || matches!(
                    store,
                    Some(StoreError::Invalid(_) | StoreError::Unconfigured { .. } | StoreError::NoRoute { .. })
                )
        });
        match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            // The reader of our output has seen enough, as in `forewarn list … | head`.
            Some(io::ErrorKind::BrokenPipe) => Self::Done,
            _ if wrong => Self::Usage,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => Self::SUCCESS,
            Exit::Failed => Self::FAILURE,
            Exit::Usage => Self::from(2),
        }
    }
}

/// A mistake in the command or its environment that the argument parser cannot see.
#[derive(Debug)]
pub(super) struct Usage(pub(super) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The error and its causes in one line. A cause that its parent has quoted already is not said twice.
pub(super) fn describe(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        let text = without_kind(&text);
        if line.is_empty() {
            text.clone_into(&mut line);
        } else if !text.is_empty() && !line.contains(text) {
            line.push_str(": ");
            line.push_str(text);
        }
    }
    line
}

/// Without the name that the Redis client gives to a kind of error and puts behind its text: `… - AuthenticationFailed`.
fn without_kind(text: &str) -> &str {
    match text.rsplit_once(" - ") {
        Some((rest, kind)) if kind.starts_with(char::is_uppercase) && kind.chars().all(char::is_alphabetic) => rest,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn an_error_and_its_causes_are_one_line_without_repeats() {
        let io = io::Error::other("connection\nrefused");
        let error = anyhow::Error::new(io).context("the store is unavailable").context("demo");
        assert_eq!(describe(&error), "demo: the store is unavailable: connection refused");
        let error = anyhow::anyhow!("refused").context("connection refused");
        assert_eq!(describe(&error), "connection refused");
        let error = anyhow::anyhow!("password refused - AuthenticationFailed").context("no access");
        assert_eq!(describe(&error), "no access: password refused");
    }

    #[test]
    fn bad_input_is_a_usage_error_and_a_lost_store_a_failure() {
        let invalid = StoreError::Invalid(Invalid::new("id", "is empty"));
        assert_eq!(Exit::of(&anyhow::Error::new(invalid)), Exit::Usage);
        let invalid: anyhow::Result<()> = Err(Invalid::new("id", "is empty")).context("track");
        assert_eq!(Exit::of(&invalid.unwrap_err()), Exit::Usage);
        let worker = WorkerError::from(Invalid::new("concurrency", "is out of range"));
        assert_eq!(Exit::of(&anyhow::Error::new(worker)), Exit::Usage);
        let lost = StoreError::Unavailable { address: "host".to_owned(), source: "gone".into() };
        assert_eq!(Exit::of(&anyhow::Error::new(lost)), Exit::Failed);
        let path = "forewarn.db".to_owned();
        assert_eq!(Exit::of(&anyhow::Error::new(StoreError::DiskFull { path: path.clone() })), Exit::Failed);
        let unusable = StoreError::Unusable { path, problem: "it is no database".to_owned() };
        assert_eq!(Exit::of(&anyhow::Error::new(unusable)), Exit::Failed);
    }
}
