//! What a worker tells of its work: each happening as it happens, totals, and a report at the end.
//!
//! Totals are made from happenings and from nothing else, so that the two cannot disagree.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::Serialize;

use crate::engine::Outcome;
use crate::engine::log::Log;
use crate::model::{IdMask, Name, Notice};
use crate::store::{DropReason, Dropped, Settled};

/// Something a worker did or met. Observers hear of it at once, on the worker's own task.
#[derive(Debug)]
#[non_exhaustive]
pub enum Happening<'a> {
    /// The worker is about to make its first claim.
    Started {
        /// The namespace.
        namespace: &'a Name,
        /// The route.
        route: &'a Name,
        /// Whether the route was missing and has been registered.
        registered: bool,
    },
    /// A claim was answered with something.
    Claimed {
        /// Notices taken.
        notices: u64,
        /// Deliveries dropped on the way.
        dropped: Dropped,
        /// Ids moved to quarantine on the way.
        quarantined: u64,
        /// Dead letters of class `lapsed` made on the way.
        lapsed: u64,
    },
    /// The store heard how a notice ended.
    Settled {
        /// The notice.
        notice: &'a Notice,
        /// The number of the attempt.
        attempt: u32,
        /// What the handler answered.
        outcome: &'a Outcome,
        /// What the store made of it: when the retry is, for instance. Never stale or dropped: that is told as lost or
        /// voided.
        settled: Settled,
    },
    /// A renewal, a removal or a change of settings made a notice void while it was held. Its handler, if it runs, has
    /// been cancelled; what it answers counts for nothing. That is no loss: nobody is to handle the notice any more.
    Voided {
        /// The notice.
        notice: &'a Notice,
        /// The number of the attempt.
        attempt: u32,
        /// What the handler had answered, if it had ended.
        outcome: Option<&'a Outcome>,
        /// Why the store dropped it when it was asked; `None` if the notice was settled before.
        reason: Option<DropReason>,
    },
    /// A notice was given back unhandled: by the stop, or by its handler.
    Released {
        /// The notice.
        notice: &'a Notice,
        /// The number of the attempt; the next hand-out has the same.
        attempt: u32,
    },
    /// A claim was lost. Its handler, if it ran, has been cancelled.
    Lost {
        /// The notice.
        notice: &'a Notice,
        /// The number of the attempt.
        attempt: u32,
        /// How.
        loss: Loss,
    },
    /// The store began to fail.
    OutageStarted {
        /// The first error, with its causes.
        error: &'a str,
    },
    /// The store answers again.
    OutageEnded {
        /// How long it did not.
        lasted: Duration,
    },
    /// Settings or route had vanished from the store; those last loaded were applied again.
    Reapplied,
    /// The worker was told to stop: it claims nothing more.
    Stopping {
        /// Claims it holds.
        held: u64,
    },
}

/// How a claim was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// The store says that it is somebody else's, or settled, after its lease had ended.
    Stale,
    /// The lease could not be extended in time, so it cannot be trusted any more.
    Expired,
    /// The store could not be told how it ended before its lease ended.
    Unsent,
}

/// How much a worker did since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// Notices claimed.
    pub claimed: u64,
    /// Settled as done, with or without a note.
    pub done: u64,
    /// Settled as superseded by the handler's word.
    pub superseded: u64,
    /// Failed, to be retried.
    pub retried: u64,
    /// Failed for good: dead letters.
    pub dead: u64,
    /// Parked for a person.
    pub review: u64,
    /// Made void while they were held: before the handler ran, while it ran, or when it had ended.
    pub voided: u64,
    /// Given back unhandled.
    pub released: u64,
    /// Lost: their leases ended, somebody else has them, or the store could not be told.
    pub lost: u64,
}

impl Totals {
    fn settled(&self) -> u64 {
        self.done + self.superseded + self.retried + self.dead + self.review
    }

    fn count(&mut self, happening: &Happening<'_>) {
        match happening {
            Happening::Claimed { notices, .. } => self.claimed += notices,
            Happening::Settled { outcome, settled, .. } => match (settled, outcome) {
                (Settled::Settled, Outcome::Superseded) => self.superseded += 1,
                (Settled::Settled, Outcome::Retry { .. }) | (Settled::Retry { .. }, _) => self.retried += 1,
                (Settled::Settled, _) => self.done += 1,
                (Settled::Dead, _) => self.dead += 1,
                (Settled::Review, _) => self.review += 1,
                (Settled::Dropped(_), _) => self.voided += 1,
                (Settled::Stale, _) => self.lost += 1,
            },
            Happening::Voided { .. } => self.voided += 1,
            Happening::Lost { .. } => self.lost += 1,
            Happening::Released { .. } => self.released += 1,
            Happening::Started { .. }
            | Happening::OutageStarted { .. }
            | Happening::OutageEnded { .. }
            | Happening::Reapplied
            | Happening::Stopping { .. } => {}
        }
    }
}

/// What a worker did when it was told to stop, and what was left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StopReport {
    /// Notices that were held when the stop began and were settled in time.
    pub finished: u64,
    /// Notices given back: ready at once for another worker, no attempt burnt.
    pub released: u64,
    /// Notices that were made void during the stop: nobody is to handle them any more.
    pub voided: u64,
    /// Notices the store could not be told about, or whose leases were lost during the stop. They are handed out again
    /// when their leases end.
    pub lost: u64,
    /// Everything since the start.
    pub totals: Totals,
}

impl StopReport {
    /// The report of a stop that began when the totals stood at `before` and has ended with them at `after`.
    pub(crate) fn between(before: Totals, after: Totals) -> Self {
        Self {
            finished: after.settled() - before.settled(),
            released: after.released - before.released,
            voided: after.voided - before.voided,
            lost: after.lost - before.lost,
            totals: after,
        }
    }
}

pub(crate) type Observer = Arc<dyn Fn(&Happening<'_>) + Send + Sync>;

/// The one place that hears of every happening: counts it, logs it and passes it on.
#[derive(Clone)]
pub(crate) struct Witness {
    totals: Arc<Mutex<Totals>>,
    log: Arc<Log>,
    observer: Option<Observer>,
}

impl Witness {
    pub(crate) fn new(namespace: Name, route: Name, observer: Option<Observer>) -> Self {
        Self { totals: Arc::default(), log: Arc::new(Log::new(namespace, route)), observer }
    }

    pub(crate) fn tell(&self, happening: &Happening<'_>) {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).count(happening);
        self.log.write(happening);
        if let Some(observer) = &self.observer {
            observer(happening);
        }
    }

    /// How the log shows ids from now on.
    pub(crate) fn mask_ids(&self, mask: IdMask) {
        self.log.mask_ids(mask);
    }

    /// Writes one line about the claims lost since the last one: called after what may lose several at once.
    pub(crate) fn log_losses(&self) {
        self.log.warn_of_losses();
    }

    pub(crate) fn totals(&self) -> Totals {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness").field("totals", &self.totals()).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A witness for the worker of a route `main`.
    pub(crate) fn witness(observer: Option<Observer>) -> Witness {
        Witness::new("session".parse().unwrap(), "main".parse().unwrap(), observer)
    }

    #[test]
    fn a_stop_report_counts_only_what_happened_during_the_stop() {
        let before = Totals { claimed: 9, done: 4, retried: 1, lost: 1, ..Totals::default() };
        let after = Totals { done: 5, dead: 1, released: 2, voided: 3, lost: 2, ..before };
        let report = StopReport::between(before, after);
        assert_eq!((report.finished, report.released, report.voided, report.lost), (2, 2, 3, 1));
        assert_eq!(report.totals, after);
    }

    #[test]
    fn every_happening_is_counted_once_and_passed_on() {
        let heard = Arc::new(Mutex::new(0));
        let witness = witness(Some(Arc::new({
            let heard = Arc::clone(&heard);
            move |_: &Happening<'_>| *heard.lock().unwrap() += 1
        })));
        witness.tell(&Happening::Claimed { notices: 3, dropped: Dropped::default(), quarantined: 0, lapsed: 0 });
        witness.tell(&Happening::Reapplied);
        assert_eq!((witness.totals().claimed, *heard.lock().unwrap()), (3, 2));
    }
}
