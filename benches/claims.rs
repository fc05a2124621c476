//! Trials of claim + ack: everything is due at once and is drained in batches, beside a bare ZSET with the same entries.

use anyhow::{Result, ensure};
use forewarn::model::{Name, Track};
use forewarn::store::Store;

use crate::pair::{Pair, Round};
use crate::rig::{self, LEAD_MS, Rig};

/// What is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reminders of the larger lead: the deadlines stay armed.
    Reminder,
    /// Cleanups: the deadlines go.
    Cleanup,
}

/// One way to drain, over the rounds.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) pair: Pair,
    kind: Kind,
    batch: u32,
    count: usize,
}

impl Trial {
    /// Drains `count` notices of `kind`, `batch` in a call.
    pub(crate) fn new(what: &'static str, bare_is: &'static str, kind: Kind, batch: u32, count: usize) -> Self {
        Self { pair: Pair::new(what, bare_is), kind, batch, count }
    }
}

/// Where a trial takes place: a namespace, the bare ZSET beside it, and the first number that is not taken in both.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) namespace: Name,
    pub(crate) key: String,
    pub(crate) first: usize,
}

/// How long arming may take: nothing is to be due before all of it is armed.
const MARGIN_MS: i64 = 3_000;
/// Over so many milliseconds the instants are spread.
const SPREAD_MS: i64 = 1_000;

/// Measures one round of all trials: arms for all of them, waits once, drains one after the other. Answers with what it
/// armed for each.
pub(crate) async fn measure(
    round: Round,
    rig: &mut Rig,
    trials: &mut [(&mut Trial, &Place)],
) -> Result<Vec<Vec<Track>>> {
    let due_at = rig.store.now().await? + MARGIN_MS;
    let mut armed = Vec::new();
    for (trial, place) in trials.iter() {
        let lead = if trial.kind == Kind::Reminder { LEAD_MS } else { 0 };
        let span = due_at + lead..due_at + lead + SPREAD_MS;
        let load = rig::load(place.first..place.first + trial.count, span)?;
        rig::arm(&*rig.store, &place.namespace, &load).await?;
        rig.bare.add(&place.key, &load, 500).await?;
        armed.push(load);
    }
    let late = rig.store.now().await? - due_at;
    ensure!(late < 0, "the machine is too slow: arming took {late} ms too long");
    rig::wait_until(&*rig.store, due_at + SPREAD_MS).await?;
    // What comes first after the wait meets cold caches, so they take turns at it.
    let count = trials.len();
    for number in 0..count {
        let (trial, Place { namespace, key, .. }) = &mut trials[(number + round.0) % count];
        let lead = if trial.kind == Kind::Reminder { LEAD_MS } else { 0 };
        let mut bare = rig.bare.clone();
        let plain = bare.drain(key, due_at + lead + SPREAD_MS, trial.batch as usize, trial.count);
        let ours = rig::drain(&*rig.store, namespace, trial.batch, trial.count);
        trial.pair.measure(round, &mut rig.meter, trial.count, plain, ours).await?;
    }
    Ok(armed)
}
