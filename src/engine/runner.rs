//! The runner: takes one claimed notice through its handler, from the last look before it to the word that it ended.

use std::{sync::Arc, time::Duration};

use tokio::{
    select,
    sync::{OwnedSemaphorePermit, mpsc},
    time::{Instant, sleep},
};

use crate::engine::handler::Handlers;
use crate::engine::lease::{Holding, Leases};
use crate::engine::route_store::RouteStore;
use crate::engine::settle::{Ended, Ending};
use crate::engine::tick::{Brake, Patience, StoreClock};
use crate::engine::{Delivery, Outcome};
use crate::store::{Checked, StoreError, Token};

/// Runs handlers and hands their outcomes to the settler.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) store: Arc<RouteStore>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) handlers: Handlers,
    pub(crate) ended: mpsc::Sender<Ended>,
    /// Pulled by handlers that cannot work.
    pub(crate) brake: Brake,
}

impl Runner {
    /// A notice that waited longer than this for its handler is checked once more before it runs.
    pub(crate) const RECHECK_AFTER: Duration = Duration::from_millis(50);

    /// Checks claims once more; those that do not hold any more are void or lost.
    pub(crate) async fn recheck(&self, holdings: &[&Holding]) -> Result<(), StoreError> {
        let tokens: Vec<Token> = holdings.iter().map(|holding| holding.claim.token.clone()).collect();
        let answers = self.store.recheck(&tokens).await?;
        for (holding, checked) in holdings.iter().zip(answers) {
            match checked {
                Checked::Current => {}
                Checked::Stale => self.leases.stale(holding.key),
                Checked::Dropped(reason) => self.leases.void(holding.key, Some(reason)),
            }
        }
        Ok(())
    }

    /// Runs the handler of one claim that was known to hold at `fresh_at`. The slot is free when this ends.
    pub(crate) async fn run(
        &self,
        holding: Holding,
        clock: StoreClock,
        fresh_at: Instant,
        _slot: OwnedSemaphorePermit,
    ) {
        // A busy runtime may start this late.
        if fresh_at.elapsed() > Self::RECHECK_AFTER {
            select! {
                biased;
                () = holding.cancelled.cancelled() => {}
                () = self.recheck_patiently(&holding) => {}
            }
        }
        if holding.cancelled.is_cancelled() {
            return;
        }
        // What has been handed out was due, even if the estimate is a few milliseconds behind.
        let sent_at_ms = clock.estimate_ms(Instant::now()).max(holding.claim.due_at_ms);
        let delivery = Delivery::new(Arc::clone(&holding.claim), sent_at_ms, holding.cancelled.clone());
        let outcome = self.handlers.run(delivery).await;
        match outcome {
            Outcome::Release => self.brake.pull(),
            _ => self.brake.release(),
        }
        // The place first: whatever ends this task while it waits finds the claim still in the table.
        let Ok(place) = self.ended.reserve().await else { return };
        if let Some(finished) = self.leases.finish(holding.key) {
            let ending = match outcome {
                // Given up because the worker stops: no failure of the notice.
                Outcome::Retry { .. } if finished.stopped => Ending::Released,
                outcome => Ending::Handled(outcome),
            };
            place.send(Ended::new(holding.claim, ending, finished.until));
        }
    }

    /// Tries until the store answers; whoever calls stops it when the lease is lost.
    async fn recheck_patiently(&self, holding: &Holding) {
        let mut patience = Patience::new();
        while self.recheck(&[holding]).await.is_err() {
            sleep(patience.next_delay_within(self.store.lease())).await;
        }
    }
}
