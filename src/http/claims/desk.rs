//! Desks: callers that wait for the same route stand in line, and only the first asks the store, so that a thousand that
//! wait cost no more than one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use futures::StreamExt as _;
use tokio::{
    select,
    sync::oneshot,
    time::{Instant, sleep, sleep_until, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::engine::{Alarm, Patience, StoreClock};
use crate::http::claims::hold::Hold;
use crate::model::Name;
use crate::store::{Claims, Next, Store, StoreError};

/// What a caller wants.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) namespace: Name,
    pub(super) route: Name,
    pub(super) limit: u32,
    pub(super) lease: Duration,
}

/// A line of callers for each route.
#[derive(Debug)]
pub(crate) struct Desks {
    store: Arc<dyn Store>,
    stopping: CancellationToken,
    desks: Mutex<HashMap<(Name, Name), Weak<Desk>>>,
    /// Claims under way, and those being given back.
    under_way: TaskTracker,
}

/// The line of one route.
#[derive(Debug)]
struct Desk {
    /// Whoever has it asks the store; the others come in their order.
    turn: tokio::sync::Mutex<()>,
    alarm: Arc<Alarm>,
    /// Ends the listening when the last caller has gone.
    closed: CancellationToken,
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl Desks {
    pub(crate) fn new(store: Arc<dyn Store>, stopping: CancellationToken) -> Self {
        Self { store, stopping, desks: Mutex::default(), under_way: TaskTracker::new() }
    }

    /// Waits until no claim is under way or being given back.
    pub(crate) async fn settled(&self) {
        self.under_way.close();
        self.under_way.wait().await;
    }

    /// Claims, and waits until then if nothing is due.
    pub(super) async fn claim(&self, wanted: Wanted, until: Instant) -> Result<(Claims, Hold), StoreError> {
        if until <= Instant::now() || self.stopping.is_cancelled() {
            return self.ask(&wanted).await;
        }
        let desk = self.desk(&wanted);
        let turn = select! {
            turn = timeout_at(until, desk.turn.lock()) => turn.ok(),
            () = self.stopping.cancelled() => None,
        };
        match turn {
            Some(_turn) => self.ask_until(&desk, &wanted, until).await,
            None => self.ask(&wanted).await,
        }
    }

    async fn ask_until(&self, desk: &Desk, wanted: &Wanted, until: Instant) -> Result<(Claims, Hold), StoreError> {
        loop {
            desk.alarm.reset();
            let asked_at = Instant::now();
            let (claims, hold) = self.ask(wanted).await?;
            let now = Instant::now();
            if !claims.claims.is_empty() || now >= until || self.stopping.is_cancelled() {
                return Ok((claims, hold));
            }
            let clock = StoreClock::new(claims.now_ms, asked_at, now);
            let mut ask_at = match claims.next {
                Next::At { due_at_ms, poll_at_ms } => {
                    clock.ask_at(due_at_ms.map_or(poll_at_ms, |due| due.min(poll_at_ms)))
                }
                Next::Paused { poll_at_ms } => clock.ask_at(poll_at_ms),
                // There is more, and it could not be had: something is in its way for a moment.
                Next::Backlog => now + Duration::from_millis(10),
            };
            loop {
                select! {
                    () = sleep_until(ask_at.min(until)) => break,
                    () = self.stopping.cancelled() => break,
                    () = desk.alarm.rung() => {
                        if let Some(at_ms) = desk.alarm.earliest() {
                            ask_at = ask_at.min(clock.ask_at(at_ms));
                        }
                    }
                }
            }
        }
    }

    /// Asks the store once. A caller that goes away meanwhile leaves nothing behind: what was claimed is given back.
    async fn ask(&self, wanted: &Wanted) -> Result<(Claims, Hold), StoreError> {
        let (tell, told) = oneshot::channel();
        let (store, wanted, tasks) = (Arc::clone(&self.store), wanted.clone(), self.under_way.clone());
        self.under_way.spawn(async move {
            let Wanted { namespace, route, limit, lease } = wanted;
            let answer = store.claim(&namespace, &route, limit, lease).await;
            let held = answer.map(|claims| {
                let hold = Hold::new(store, namespace, route, &claims, tasks);
                (claims, hold)
            });
            // Nobody there any more: the hold is dropped, which gives back.
            drop(tell.send(held));
        });
        told.await.unwrap_or_else(|_| {
            let problem = "the claim was broken off".to_owned();
            Err(StoreError::Unexpected { address: "the daemon".to_owned(), problem })
        })
    }

    fn desk(&self, wanted: &Wanted) -> Arc<Desk> {
        let key = (wanted.namespace.clone(), wanted.route.clone());
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(desk) = desks.get(&key).and_then(Weak::upgrade) {
            return desk;
        }
        desks.retain(|_, desk| desk.strong_count() > 0);
        let (alarm, closed) = (Arc::new(Alarm::default()), CancellationToken::new());
        let listening = listen(Arc::clone(&self.store), wanted.namespace.clone(), Arc::clone(&alarm));
        tokio::spawn(closed.clone().run_until_cancelled_owned(listening));
        let desk = Arc::new(Desk { turn: tokio::sync::Mutex::default(), alarm, closed });
        desks.insert(key, Arc::downgrade(&desk));
        desk
    }
}

/// Hears of what becomes due earlier than was known, and subscribes again when cut off.
async fn listen(store: Arc<dyn Store>, namespace: Name, alarm: Arc<Alarm>) {
    let mut patience = Patience::new();
    loop {
        if let Ok(mut wakeups) = store.wakeups(&namespace).await {
            patience.reset();
            // What was said before is not said again.
            alarm.ring_now();
            while let Some(at_ms) = wakeups.next().await {
                alarm.ring(at_ms);
            }
        }
        sleep(patience.next_delay()).await;
    }
}
