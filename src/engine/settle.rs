//! The settler: tells the store how claims ended, in batches, and keeps what it could not tell until the lease ends.
//!
//! One that ends alone is told at once; those that end together, or while a call is under way, share the next call.

use std::{sync::Arc, time::Duration};

use futures::future::join3;
use tokio::{
    select,
    sync::mpsc,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use crate::engine::Outcome;
use crate::engine::outage::Call;
use crate::engine::report::{Happening, Loss, Witness};
use crate::engine::route_store::RouteStore;
use crate::engine::tick::{Alarm, Patience, after};
use crate::model::Backoff;
use crate::store::{Claim, Failing, Settled, StoreError, Token, Verdict};

/// A claim that has ended and is to be settled.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) claim: Arc<Claim>,
    pub(crate) ending: Ending,
    /// Until when settling it makes sense.
    pub(crate) until: Instant,
    /// Until when nobody else can have it.
    trusted_until: Instant,
    /// Whether the store was told before, and may have heard, though its answer never came.
    pub(crate) told_before: bool,
}

impl Ended {
    pub(crate) fn new(claim: Arc<Claim>, ending: Ending, until: Instant) -> Self {
        Self { claim, ending, until, trusted_until: until, told_before: false }
    }

    /// A claim that came when its lease could not be trusted any more. The store may still be asked to take it back: its
    /// token is good for nothing if somebody else has it.
    pub(crate) fn too_late(claim: Claim, lease: Duration) -> Self {
        let now = Instant::now();
        Self { trusted_until: now, ..Self::new(Arc::new(claim), Ending::Released, after(now, lease)) }
    }

    /// What an answer means. A claim that is ours until its lease ends is stale, if we told the store before, because it
    /// heard us then.
    fn reading(&self, settled: Settled) -> Settled {
        match (&self.ending, settled) {
            (_, settled) if !self.told_before || settled != Settled::Stale => settled,
            (Ending::Handled(Outcome::Reject(_)), _) => Settled::Dead,
            (Ending::Handled(Outcome::Review(_)), _) => Settled::Review,
            // Of a retry, too: when it is was in the answer that never came.
            (Ending::Released | Ending::Handled(_), _) => Settled::Settled,
        }
    }
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The handler answered.
    Handled(Outcome),
    /// It is given back unhandled.
    Released,
}

/// The verbs of the port that settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Ack,
    Fail,
    Release,
}

impl Ending {
    fn verb(&self) -> Verb {
        match self {
            Self::Handled(Outcome::Done | Outcome::Noted(_) | Outcome::Superseded) => Verb::Ack,
            Self::Handled(Outcome::Retry { .. } | Outcome::Reject(_) | Outcome::Review(_)) => Verb::Fail,
            Self::Handled(Outcome::Release) | Self::Released => Verb::Release,
        }
    }
}

/// Settles what has ended.
#[derive(Debug)]
pub(crate) struct Settler {
    store: Arc<RouteStore>,
    alarm: Arc<Alarm>,
    witness: Witness,
    backoff: Backoff,
    inbox: mpsc::Receiver<Ended>,
    pending: Vec<Ended>,
}

impl Settler {
    /// The most that goes in one call, and that waits here; behind it handlers wait, and behind them claims.
    pub(crate) const BATCH: usize = 500;
    /// How long a stopping worker tries to tell the store.
    pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(5);

    pub(crate) fn new(
        store: Arc<RouteStore>,
        alarm: Arc<Alarm>,
        witness: Witness,
        backoff: Backoff,
        inbox: mpsc::Receiver<Ended>,
    ) -> Self {
        Self { store, alarm, witness, backoff, inbox, pending: Vec::new() }
    }

    /// Settles until `closing` fires and all is told, or the time for that is over.
    pub(crate) async fn run(&mut self, closing: &CancellationToken) {
        let give_up = async {
            closing.cancelled().await;
            sleep(Self::STOP_TIMEOUT).await;
        };
        select! {
            () = self.settle_until_closed(closing) => {}
            () = give_up => {}
        }
        self.inbox.close();
        while let Ok(ended) = self.inbox.try_recv() {
            self.pending.push(ended);
        }
        self.drop_pending(|_| true);
    }

    async fn settle_until_closed(&mut self, closing: &CancellationToken) {
        let mut patience = Patience::new();
        while self.gather(closing).await {
            match self.run_once().await {
                Ok(()) => patience.reset(),
                Err(_) => sleep(patience.next_delay_within(self.store.lease())).await,
            }
        }
    }

    /// Waits until something is pending and takes what else has ended meanwhile; `false` when closed and empty.
    async fn gather(&mut self, closing: &CancellationToken) -> bool {
        if self.pending.is_empty() {
            let first = select! {
                biased;
                first = self.inbox.recv() => first,
                () = closing.cancelled() => {
                    self.inbox.close();
                    self.inbox.recv().await
                }
            };
            let Some(first) = first else { return false };
            self.pending.push(first);
        }
        while self.pending.len() < Self::BATCH {
            let Ok(ended) = self.inbox.try_recv() else { break };
            self.pending.push(ended);
        }
        true
    }

    /// Tells the store of all that is pending.
    ///
    /// # Errors
    /// The first error, if anything had to be kept for another time.
    async fn run_once(&mut self) -> Result<(), StoreError> {
        let now = Instant::now();
        self.drop_pending(|ended| ended.until <= now);
        // What is under way stays pending: should this call be cut off, it is counted as not told.
        let (acks, fails, releases) =
            join3(self.send(Verb::Ack), self.send(Verb::Fail), self.send(Verb::Release)).await;
        let (mut kept, mut error) = (Vec::new(), None);
        let mut sent = [acks, fails, releases].map(|(answers, failed)| {
            let told_before = failed.is_some();
            error = error.take().or(failed);
            (answers.into_iter(), told_before)
        });
        for mut ended in self.pending.drain(..) {
            let (answers, told_before) = match ended.ending.verb() {
                Verb::Ack => &mut sent[0],
                Verb::Fail => &mut sent[1],
                Verb::Release => &mut sent[2],
            };
            ended.told_before |= *told_before;
            match answers.next().flatten() {
                Some(settled) => tell(&self.witness, &self.alarm, &ended, settled),
                None => kept.push(ended),
            }
        }
        self.pending = kept;
        self.witness.log_losses();
        match error {
            Some(error) => {
                self.store.failed(Call::Settle, &error);
                Err(error)
            }
            None => {
                self.store.answered(Call::Settle);
                Ok(())
            }
        }
    }

    /// Sends all pending of one verb. An answer that is `None` has to be asked for again.
    async fn send(&self, verb: Verb) -> (Vec<Option<Settled>>, Option<StoreError>) {
        let entries: Vec<&Ended> = self.pending.iter().filter(|ended| ended.ending.verb() == verb).collect();
        if entries.is_empty() {
            return (Vec::new(), None);
        }
        let error = match self.ask(verb, &entries).await {
            Ok(answers) => return (answers.into_iter().map(Some).collect(), None),
            Err(error) => error,
        };
        let mut answers: Vec<Option<Settled>> = Vec::new();
        // An odd error may be the fault of one entry (a key of another type in one shard): the others go on alone.
        if entries.len() > 1 && !matches!(error, StoreError::Unavailable { .. }) {
            for entry in &entries {
                match self.ask(verb, &[entry]).await {
                    Ok(mut answer) => answers.push(answer.pop()),
                    Err(StoreError::Unavailable { .. }) => break,
                    Err(_) => answers.push(None),
                }
            }
        }
        answers.resize(entries.len(), None);
        (answers, Some(error))
    }

    async fn ask(&self, verb: Verb, entries: &[&Ended]) -> Result<Vec<Settled>, StoreError> {
        let tokens = || entries.iter().map(|ended| ended.claim.token.clone()).collect::<Vec<Token>>();
        match verb {
            Verb::Ack => self.store.ack(&tokens()).await,
            Verb::Release => self.store.release(&tokens()).await,
            Verb::Fail => {
                let failing: Vec<Failing> = entries.iter().filter_map(|ended| failing(&self.backoff, ended)).collect();
                self.store.fail(&failing).await
            }
        }
    }

    fn drop_pending(&mut self, is_over: impl Fn(&Ended) -> bool) {
        for ended in self.pending.extract_if(.., |ended| is_over(ended)) {
            let Claim { notice, attempt, .. } = &*ended.claim;
            self.witness.tell(&Happening::Lost { notice, attempt: *attempt, loss: Loss::Unsent });
        }
        self.witness.log_losses();
    }
}

/// Tells what the store answered.
pub(crate) fn tell(witness: &Witness, alarm: &Alarm, ended: &Ended, answer: Settled) {
    let Claim { notice, attempt, .. } = &*ended.claim;
    let attempt = *attempt;
    let outcome = match &ended.ending {
        Ending::Handled(outcome) => Some(outcome),
        Ending::Released => None,
    };
    let settled = ended.reading(answer);
    match (settled, outcome) {
        (Settled::Retry { next_attempt_at_ms }, _) => alarm.ring(next_attempt_at_ms),
        (Settled::Settled, Some(Outcome::Retry { .. })) => alarm.ring_now(),
        _ => {}
    }
    witness.tell(&match (settled, outcome) {
        (Settled::Dropped(reason), outcome) => Happening::Voided { notice, attempt, outcome, reason: Some(reason) },
        // While its lease is trusted nobody else can have got the notice, so it was settled by what made it void.
        (Settled::Stale, outcome) if Instant::now() < ended.trusted_until => {
            Happening::Voided { notice, attempt, outcome, reason: None }
        }
        (Settled::Stale, _) => Happening::Lost { notice, attempt, loss: Loss::Stale },
        (_, None | Some(Outcome::Release)) => Happening::Released { notice, attempt },
        (settled, Some(outcome)) => Happening::Settled { notice, attempt, outcome, settled },
    });
}

/// What the store is told of a failed claim.
fn failing(backoff: &Backoff, ended: &Ended) -> Option<Failing> {
    let Ending::Handled(outcome) = &ended.ending else { return None };
    let (failure, verdict) = match outcome {
        Outcome::Retry { failure, after: Some(delay) } => (failure, Verdict::RetryAfter(*delay)),
        Outcome::Retry { failure, after: None } => {
            let failures = ended.claim.failures.saturating_add(1);
            let delay = backoff.delay(ended.claim.notice.kind, failures, fastrand::f64());
            (failure, Verdict::Backoff(delay))
        }
        Outcome::Reject(failure) => (failure, Verdict::Dead),
        Outcome::Review(failure) => (failure, Verdict::Review),
        Outcome::Done | Outcome::Noted(_) | Outcome::Superseded | Outcome::Release => return None,
    };
    let Claim { token, due_at_ms, on_set, .. } = &*ended.claim;
    Some(Failing {
        token: token.clone(),
        verdict,
        failure: failure.clone(),
        max_failures: backoff.max_failures(),
        due_at_ms: *due_at_ms,
        on_set: *on_set,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::delivery::tests::claim;
    use crate::model::{Class, Failure};

    fn ended(outcome: Outcome) -> Ended {
        Ended::new(Arc::new(claim("a", None)), Ending::Handled(outcome), Instant::now())
    }

    #[test]
    fn each_outcome_becomes_the_verdict_it_asks_for() {
        let backoff = Backoff::new(vec![Duration::from_secs(100), Duration::from_secs(200)], 3).unwrap();
        let failure = || Failure::new(Class::Timeout, "x").at_stage("verify");
        let verdict = |outcome| failing(&backoff, &ended(outcome)).map(|failing| failing.verdict);
        assert_eq!(verdict(Outcome::Reject(failure())), Some(Verdict::Dead));
        assert_eq!(verdict(Outcome::Review(failure())), Some(Verdict::Review));
        let delay = Duration::from_millis(7);
        assert_eq!(verdict(Outcome::retry_after(delay, failure())), Some(Verdict::RetryAfter(delay)));
        // One failure is recorded already, so this is the second.
        let Some(Verdict::Backoff(delay)) = verdict(Outcome::retry(failure())) else { panic!("no back-off") };
        assert!((180..=220).contains(&delay.as_secs()), "{delay:?}");
        assert_eq!(verdict(Outcome::Done), None);
    }

    #[test]
    fn a_claim_is_stale_because_of_us_only_if_the_store_was_told_before() {
        let mut done = ended(Outcome::Done);
        assert_eq!(done.reading(Settled::Stale), Settled::Stale);
        done.told_before = true;
        assert_eq!(done.reading(Settled::Stale), Settled::Settled);
        let mut rejected = ended(Outcome::Reject(Failure::new(Class::Rejected, "x")));
        rejected.told_before = true;
        assert_eq!(rejected.reading(Settled::Stale), Settled::Dead);
        let mut failed = ended(Outcome::retry(Failure::new(Class::Timeout, "x")));
        failed.told_before = true;
        assert_eq!(failed.reading(Settled::Stale), Settled::Settled);
    }

    #[test]
    fn a_failure_keeps_its_stage_and_the_limit_of_failures() {
        let failure = Failure::new(Class::Timeout, "x").at_stage("verify");
        let failing = failing(&Backoff::default(), &ended(Outcome::retry(failure.clone()))).unwrap();
        assert_eq!((failing.failure, failing.max_failures), (failure, 8));
    }
}
