//! Why a test cannot go on.

use std::{fmt::Write as _, time::Duration};

use chrono::{DateTime, SecondsFormat, Utc};

use crate::engine::WorkerError;
use crate::model::{Invalid, Name, format_span};
use crate::store::StoreError;
use crate::testing::Handled;

/// Why a test cannot go on. The clock stands where it happened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// What was given cannot work.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A worker could not start.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// Handlers have not ended.
    #[error("{}", hanging(.held, .patience))]
    Hanging {
        /// What they have at hand.
        held: Vec<Handled>,
        /// How long it was waited without anything ending.
        patience: Duration,
    },
    /// Something is due, and nobody is there for it.
    #[error(
        "something is due at {} on route \"{route}\" of namespace \"{namespace}\", and no worker works there; attach one, \
         as in test.attach(Worker::builder(&namespace).route(\"{route}\")…), or drop the route", instant(.at)
    )]
    NoWorker {
        /// The namespace.
        namespace: Name,
        /// The route.
        route: Name,
        /// The instant of the clock.
        at: DateTime<Utc>,
    },
    /// Something is due, and its worker does not take it, or takes it and gives it back.
    #[error(
        "something is due at {} on route \"{route}\" of namespace \"{namespace}\", and its worker has settled nothing for \
         {}; does it release what it gets, or has it stopped?", instant(.at), format_span(*.patience)
    )]
    Unhandled {
        /// The namespace.
        namespace: Name,
        /// The route.
        route: Name,
        /// The instant of the clock.
        at: DateTime<Utc>,
        /// How long it was waited without anything ending.
        patience: Duration,
    },
}

fn hanging(held: &[Handled], patience: &Duration) -> String {
    let mut text = format!("no handler has ended for {}, and at hand is still", format_span(*patience));
    for (place, handled) in held.iter().enumerate() {
        let separator = if place == 0 { " " } else { "; " };
        let (route, namespace) = (&handled.route, &handled.notice.namespace);
        // To a string it cannot fail.
        write!(text, "{separator}{handled} (route \"{route}\" of namespace \"{namespace}\")").ok();
    }
    text.push_str("; give it longer with TestStore::patience, if it needs longer");
    text
}

fn instant(at: &DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
