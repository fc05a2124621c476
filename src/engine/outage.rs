//! Outages and faults of the store: one line in the log when one begins and one when it is over, not one per attempt.

use std::{
    collections::{BTreeSet, HashMap},
    error::Error,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tracing::{info, warn};

use crate::engine::report::{Happening, Witness};
use crate::model::Name;
use crate::store::StoreError;

/// The calls that fail and recover on their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Call {
    Configured,
    Claim,
    Recheck,
    Extend,
    Settle,
    Wakeups,
    Resync,
}

/// Which calls fail at present. An outage lasts from the first that fails until none does.
#[derive(Debug)]
pub(crate) struct Outage {
    namespace: Name,
    route: Name,
    witness: Witness,
    failing: Mutex<Failing>,
}

#[derive(Debug, Default)]
struct Failing {
    calls: BTreeSet<Call>,
    since: Option<Instant>,
}

impl Outage {
    pub(crate) fn new(namespace: Name, route: Name, witness: Witness) -> Self {
        Self { namespace, route, witness, failing: Mutex::default() }
    }

    /// This call failed.
    pub(crate) fn failed(&self, call: Call, error: &StoreError) {
        {
            let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
            failing.calls.insert(call);
            if failing.since.is_some() {
                return;
            }
            failing.since = Some(Instant::now());
        }
        let error = with_causes(error);
        let (namespace, route) = (&self.namespace, &self.route);
        warn!(%namespace, %route, ?call, error, "the store fails; the worker keeps trying");
        self.witness.tell(&Happening::OutageStarted { error: &error });
    }

    /// This call was answered, or there is nothing left to call for.
    pub(crate) fn answered(&self, call: Call) {
        let lasted = {
            let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
            failing.calls.remove(&call);
            // Listening has a connection of its own: that it works again does not say that anything else does.
            if !failing.calls.is_empty() || call == Call::Wakeups {
                return;
            }
            let Some(since) = failing.since.take() else { return };
            since.elapsed()
        };
        let (namespace, route) = (&self.namespace, &self.route);
        info!(%namespace, %route, lasted_ms = lasted.as_millis(), "the store answers again");
        self.witness.tell(&Happening::OutageEnded { lasted });
    }
}

/// Faults of parts of the store, each logged when it is new or has not been logged for a while.
#[derive(Debug, Default)]
pub(crate) struct FaultLog {
    logged: HashMap<String, Instant>,
}

impl FaultLog {
    const REPEAT_INTERVAL: Duration = Duration::from_secs(600);
    const CAPACITY: usize = 100;

    /// Whether this fault is to be logged now.
    pub(crate) fn is_news(&mut self, fault: &str) -> bool {
        let now = Instant::now();
        self.logged.retain(|_, at| now.duration_since(*at) < Self::REPEAT_INTERVAL);
        if self.logged.contains_key(fault) || self.logged.len() >= Self::CAPACITY {
            return false;
        }
        self.logged.insert(fault.to_owned(), now);
        true
    }
}

/// An error and its causes on one line. A cause that its parent has quoted already is not said twice.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::report::tests::witness;

    fn error() -> StoreError {
        StoreError::Unavailable { address: "store://h".to_owned(), source: "connection refused".into() }
    }

    #[test]
    fn an_outage_is_told_once_and_ends_when_no_call_fails() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let witness = witness(Some(Arc::new({
            let told = Arc::clone(&told);
            move |happening: &Happening<'_>| {
                told.lock().unwrap().push(match happening {
                    Happening::OutageStarted { error } => (*error).to_owned(),
                    _ => "ended".to_owned(),
                });
            }
        })));
        let name = |field, text| Name::new(field, text).unwrap();
        let outage = Outage::new(name("namespace", "session"), name("route", "main"), witness);
        outage.answered(Call::Claim);
        outage.failed(Call::Claim, &error());
        outage.failed(Call::Settle, &error());
        outage.failed(Call::Claim, &error());
        outage.answered(Call::Claim);
        assert_eq!(*told.lock().unwrap(), ["the store at store://h is unavailable: connection refused"]);
        outage.failed(Call::Wakeups, &error());
        outage.answered(Call::Settle);
        outage.answered(Call::Wakeups);
        assert_eq!(told.lock().unwrap().len(), 1);
        outage.answered(Call::Claim);
        assert_eq!(told.lock().unwrap().len(), 2);
    }

    #[test]
    fn a_fault_is_logged_once_for_each_kind() {
        let mut log = FaultLog::default();
        let news: Vec<_> = ["a", "b", "a", "a"].into_iter().filter(|fault| log.is_news(fault)).collect();
        assert_eq!(news, ["a", "b"]);
    }
}
