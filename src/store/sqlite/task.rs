//! What a thread of the store is asked, and how it answers.

use std::panic::{self, AssertUnwindSafe};

use tokio::sync::{mpsc, oneshot};

use crate::store::StoreError;

use super::{desk::Desk, error::Fault};

/// A piece of work for the thread that owns a connection.
///
/// Work and answer are two steps: what was written is told only once it is committed.
pub(super) trait Task: Send {
    /// How many entries it is about; bounds what goes into one transaction.
    fn weight(&self) -> usize;
    /// Does the work within the present transaction. Answers whether it succeeded.
    fn run(&mut self, desk: &Desk) -> bool;
    /// The failure of the database that stopped it, if that was it.
    fn failure(&self) -> Option<&rusqlite::Error>;
    /// Tells the caller how it went; `lost` says why its transaction came to nothing.
    fn answer(self: Box<Self>, desk: &Desk, lost: Option<StoreError>);
}

/// Where tasks are handed in. The thread behind it ends when the last clone is gone.
#[derive(Clone)]
pub(super) struct Intake(mpsc::Sender<Box<dyn Task>>);

impl Intake {
    /// The intake, and where its tasks come out.
    pub(super) fn new() -> (Self, mpsc::Receiver<Box<dyn Task>>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        (Self(sender), receiver)
    }

    /// Has `work` done and answers with its result; `None` if the thread has ended.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        weight: usize,
        work: impl FnOnce(&Desk) -> Result<T, Fault> + Send + 'static,
    ) -> Option<Result<T, StoreError>> {
        let (tell, told) = oneshot::channel();
        let job = Job { weight: weight.max(1), work: Some(work), result: None, tell };
        self.0.send(Box::new(job)).await.ok()?;
        told.await.ok()
    }

    /// The same without waiting for a place or an answer; not done at all if there is no place.
    pub(super) fn hand_in(&self, work: impl FnOnce(&Desk) -> Result<(), Fault> + Send + 'static) {
        let (tell, _) = oneshot::channel();
        self.0.try_send(Box::new(Job { weight: 1, work: Some(work), result: None, tell })).ok();
    }

    /// One that does not keep the thread.
    pub(super) fn downgrade(&self) -> WeakIntake {
        WeakIntake(self.0.downgrade())
    }
}

/// An intake for those who may outlive the store.
pub(super) struct WeakIntake(mpsc::WeakSender<Box<dyn Task>>);

impl WeakIntake {
    /// The intake, unless the store is gone.
    pub(super) fn upgrade(&self) -> Option<Intake> {
        self.0.upgrade().map(Intake)
    }
}

/// Further callers wait until a place is free.
const MAX_WAITING: usize = 1024;

struct Job<T, W> {
    weight: usize,
    work: Option<W>,
    result: Option<Result<T, Fault>>,
    tell: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, W: FnOnce(&Desk) -> Result<T, Fault> + Send> Task for Job<T, W> {
    fn weight(&self) -> usize {
        self.weight
    }

    fn run(&mut self, desk: &Desk) -> bool {
        let work = self.work.take();
        // A defect in one operation must not end the thread that serves all: its writes are taken back.
        self.result = work.map(|work| {
            let outcome = panic::catch_unwind(AssertUnwindSafe(|| work(desk)));
            outcome.unwrap_or_else(|_| Err(desk.odd("the operation panicked, which is a defect").into()))
        });
        matches!(self.result, Some(Ok(_)))
    }

    fn failure(&self) -> Option<&rusqlite::Error> {
        match &self.result {
            Some(Err(Fault::Database(error))) => Some(error),
            _ => None,
        }
    }

    fn answer(self: Box<Self>, desk: &Desk, lost: Option<StoreError>) {
        let answer = match (self.result, lost) {
            (Some(Err(fault)), _) => Err(fault.into_store_error(&desk.path)),
            (_, Some(lost)) => Err(lost),
            (Some(Ok(value)), None) => Ok(value),
            // A task is answered without having run only with a reason, which is `lost`.
            (None, None) => return,
        };
        // It fails if the caller has gone: then nobody wants to know.
        self.tell.send(answer).ok();
    }
}
