//! The dispatcher: claims what is due as far as handlers are free, starts them, and knows when to look again.
//!
//! It never claims what could not be started now, never asks in a busy loop, and at a stop claims nothing more.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::{
    select,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::{Instant, sleep_until, timeout, timeout_at},
};
use tracing::warn;

use crate::engine::lease::{Holding, Leases, Term};
use crate::engine::outage::{FaultLog, with_causes};
use crate::engine::report::{Happening, Loss, Witness};
use crate::engine::route_store::RouteStore;
use crate::engine::runner::Runner;
use crate::engine::settle::{Ended, Ending, Settler, tell};
use crate::engine::suspect::{Sifted, Suspects};
use crate::engine::tick::{Alarm, Patience, Stop, StoreClock, after};
use crate::store::{Claim, Claims, Dropped, Next, StoreError, Token};

/// How much a dispatcher takes and how often it looks.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    pub(crate) concurrency: usize,
    pub(crate) batch: u32,
    pub(crate) max_poll: Duration,
    pub(crate) stop_timeout: Duration,
}

/// Claims for one route and starts handlers.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    store: Arc<RouteStore>,
    leases: Arc<Leases>,
    runner: Arc<Runner>,
    alarm: Arc<Alarm>,
    witness: Witness,
    pace: Pace,
    suspects: Suspects,
    slots: Arc<Semaphore>,
    running: JoinSet<()>,
    plan: Plan,
    /// Whether the last claim brought more suspects than can be handled.
    is_wary: bool,
    clock: Option<StoreClock>,
    patience: Patience,
    faults: FaultLog,
    refresh_at: Instant,
}

/// When to claim next.
#[derive(Debug, Clone, Copy)]
enum Plan {
    /// Then, or when the alarm says earlier.
    At(Instant),
    /// Not before then: the store fails.
    AfterFailure(Instant),
}

impl Dispatcher {
    /// How often the settings are loaded anew.
    const REFRESH_INTERVAL: Duration = Duration::from_secs(10);
    /// How long cancelled handlers have to end by themselves at a stop: long enough to close what they have open.
    const CANCEL_GRACE: Duration = Duration::from_secs(2);

    pub(crate) fn new(runner: Arc<Runner>, alarm: Arc<Alarm>, witness: Witness, pace: Pace) -> Self {
        Self {
            store: Arc::clone(&runner.store),
            leases: Arc::clone(&runner.leases),
            runner,
            alarm,
            witness,
            suspects: Suspects::new(),
            slots: Arc::new(Semaphore::new(pace.concurrency)),
            pace,
            running: JoinSet::new(),
            plan: Plan::At(Instant::now()),
            is_wary: false,
            clock: None,
            patience: Patience::new(),
            faults: FaultLog::default(),
            refresh_at: Instant::now() + Self::REFRESH_INTERVAL,
        }
    }

    /// Works until the stop begins.
    pub(crate) async fn run(&mut self, stop: &Stop) {
        loop {
            let slots = select! {
                biased;
                () = stop.begun() => return,
                slots = self.ready() => slots,
            };
            if let Err(delay) = self.run_once(slots, stop).await.map_err(|_| self.patience.next_delay()) {
                self.plan = Plan::AfterFailure(Instant::now() + delay);
            }
        }
    }

    /// Waits until a slot is free and it is time to claim; answers with the slots to fill.
    async fn ready(&self) -> OwnedSemaphorePermit {
        let Ok(mut slots) = Arc::clone(&self.slots).acquire_owned().await else { return std::future::pending().await };
        self.due().await;
        self.runner.brake.passed().await;
        self.suspects.passed().await;
        let more = self.slots.available_permits().min(self.pace.batch as usize - 1);
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        if let Ok(more) = Arc::clone(&self.slots).try_acquire_many_owned(more) {
            slots.merge(more);
        }
        slots
    }

    async fn due(&self) {
        loop {
            match self.plan {
                Plan::AfterFailure(at) => return sleep_until(at).await,
                Plan::At(at) => {
                    let at = match (self.alarm.earliest(), self.clock) {
                        (Some(at_ms), Some(clock)) => at.min(clock.ask_at(at_ms)),
                        _ => at,
                    };
                    select! {
                        () = sleep_until(at) => return,
                        () = self.alarm.rung() => {}
                    }
                }
            }
        }
    }

    /// Claims once and starts what it got.
    ///
    /// # Errors
    /// Those of the store; nothing was started then.
    async fn run_once(&mut self, mut slots: OwnedSemaphorePermit, stop: &Stop) -> Result<(), StoreError> {
        while self.running.try_join_next().is_some() {}
        if Instant::now() >= self.refresh_at {
            select! {
                biased;
                () = stop.begun() => return Ok(()),
                refreshed = self.store.refresh() => refreshed?,
            }
            self.refresh_at = Instant::now() + Self::REFRESH_INTERVAL;
        }
        let lease = self.store.lease();
        let most = if self.is_wary { Suspects::SMALL_BATCH } else { u32::MAX };
        let limit = u32::try_from(slots.num_permits()).unwrap_or(u32::MAX).min(most);
        self.alarm.reset();
        let asked_at = Instant::now();
        let Some(claims) = self.claim(limit, lease, stop).await else { return Ok(()) };
        let mut claims = claims?;
        let answered_at = Instant::now();
        self.patience.reset();
        let clock = StoreClock::new(claims.now_ms, asked_at, answered_at);
        self.clock = Some(clock);
        self.plan = Plan::At(self.next_claim_at(&claims, clock, answered_at));
        self.tell(&claims);

        let term = Term::new(asked_at, lease);
        if !term.is_trusted_at(answered_at) {
            // Letting these leases run out would count against the notices, and it was not their fault.
            for claim in claims.claims.drain(..) {
                self.leave_to_settler(Ended::too_late(claim, lease), stop).await;
            }
        }
        let Sifted { next: suspect, surplus } = self.suspects.sift(&mut claims.claims);
        self.is_wary = !surplus.is_empty();
        let mut holdings: Vec<Holding> = claims.claims.drain(..).map(|claim| self.leases.hold(claim, term)).collect();
        let mut turn = suspect.map(|(claim, turn)| {
            let holding = self.leases.hold(claim, term);
            holdings.push(holding.clone());
            (holding.key, turn)
        });
        if self.is_wary {
            self.give_back(surplus, after(asked_at, lease), stop).await;
        }
        if stop.has_begun() {
            // Not to be started any more: the drain gives them back.
            return Ok(());
        }
        let mut fresh_at = asked_at;
        if !holdings.is_empty() && asked_at.elapsed() > Runner::RECHECK_AFTER {
            // If this fails, each one asks for itself before it starts.
            if self.runner.recheck(&holdings.iter().collect::<Vec<_>>()).await.is_ok() {
                fresh_at = Instant::now();
            }
        }
        // The answer, or the second look, may have taken longer than the lease.
        self.leases.expire(Instant::now());
        for holding in holdings.into_iter().filter(|holding| !holding.cancelled.is_cancelled()) {
            // The store never gives more than was asked for; if it did, the lease would run out unused.
            let Some(slot) = slots.split(1) else { break };
            let runner = Arc::clone(&self.runner);
            let turn = turn.take_if(|(key, _)| *key == holding.key);
            self.running.spawn(async move {
                runner.run(holding, clock, fresh_at, slot).await;
                drop(turn);
            });
        }
        Ok(())
    }

    /// Claims; `None` if a stop began and the answer did not come in its time. A claim is never just dropped: what it
    /// took would be out of reach until the lease ends.
    async fn claim(&self, limit: u32, lease: Duration, stop: &Stop) -> Option<Result<Claims, StoreError>> {
        let mut claiming = pin!(self.store.claim(limit, lease));
        select! {
            biased;
            claims = &mut claiming => Some(claims),
            () = stop.begun() => timeout_at(stop.deadline(), claiming).await.ok(),
        }
    }

    /// Gives back what is not to be handled now, and returns when the store has heard of it: what is handled next may be
    /// the end of this worker.
    async fn give_back(&self, claims: Vec<Claim>, until: Instant, stop: &Stop) {
        let tokens: Vec<Token> = claims.iter().map(|claim| claim.token.clone()).collect();
        let ended = claims.into_iter().map(|claim| Ended::new(Arc::new(claim), Ending::Released, until));
        match self.store.release(&tokens).await {
            Ok(answers) => {
                ended.zip(answers).for_each(|(ended, answer)| tell(&self.witness, &self.alarm, &ended, answer));
            }
            Err(_) => {
                for mut ended in ended {
                    ended.told_before = true;
                    self.leave_to_settler(ended, stop).await;
                }
            }
        }
    }

    async fn leave_to_settler(&self, ended: Ended, stop: &Stop) {
        let claim = Arc::clone(&ended.claim);
        let is_sent = select! {
            biased;
            sent = self.runner.ended.send(ended) => sent.is_ok(),
            () = stop.begun() => false,
        };
        if !is_sent {
            let Claim { notice, attempt, .. } = &*claim;
            self.witness.tell(&Happening::Lost { notice, attempt: *attempt, loss: Loss::Unsent });
        }
    }

    fn next_claim_at(&self, claims: &Claims, clock: StoreClock, answered_at: Instant) -> Instant {
        // An answer without a claim that still wants the next one at once must not become a busy loop.
        let pause = Duration::from_millis(if claims.claims.is_empty() { 1 } else { 0 });
        match claims.next {
            Next::Backlog => answered_at + pause,
            Next::At { poll_at_ms, .. } | Next::Paused { poll_at_ms } => {
                clock.ask_at(poll_at_ms).clamp(answered_at + pause, after(answered_at + pause, self.pace.max_poll))
            }
        }
    }

    fn tell(&mut self, claims: &Claims) {
        let (namespace, route) = (self.store.namespace(), self.store.route());
        for fault in &claims.faults {
            let error = with_causes(fault);
            if self.faults.is_news(&error) {
                warn!(%namespace, %route, error, "a part of the store fails; the others go on");
            }
        }
        let Claims { claims, dropped, quarantined, lapsed, .. } = claims;
        if !claims.is_empty() || *dropped != Dropped::default() || *quarantined + *lapsed > 0 {
            self.witness.tell(&Happening::Claimed {
                notices: claims.len() as u64,
                dropped: *dropped,
                quarantined: *quarantined,
                lapsed: *lapsed,
            });
        }
    }

    /// Ends what runs: lets it finish until the stop's deadline, then cancels it and gives back what is held.
    pub(crate) async fn drain(&mut self, stop: &Stop) {
        self.witness.tell(&Happening::Stopping { held: self.leases.len() as u64 });
        // Each of these waits ends by itself or is cut off; what is left is dealt with by the next step.
        if timeout_at(stop.deadline(), ended(&mut self.running)).await.is_err() {
            self.leases.cancel_all();
            if timeout(Self::CANCEL_GRACE, ended(&mut self.running)).await.is_err() {
                // One that blocks its thread cannot be ended. Its claim is not waited for: it is given back, and what
                // its handler answers counts for nothing.
                self.running.abort_all();
            }
        }
        let until_sent = Instant::now() + Settler::STOP_TIMEOUT;
        for (claim, until) in self.leases.take_all() {
            let ended = Ended::new(Arc::clone(&claim), Ending::Released, until);
            if !matches!(timeout_at(until_sent, self.runner.ended.send(ended)).await, Ok(Ok(()))) {
                let Claim { notice, attempt, .. } = &*claim;
                self.witness.tell(&Happening::Lost { notice, attempt: *attempt, loss: Loss::Unsent });
            }
        }
    }
}

async fn ended(running: &mut JoinSet<()>) {
    while running.join_next().await.is_some() {}
}
