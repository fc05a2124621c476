//! The book of a drill: who handled which notice at which attempt, and what must never be seen in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{Arc, Mutex},
};

use forewarn::model::EventId;
use forewarn::{Delivery, Outcome};
use futures::future::BoxFuture;
use tokio::sync::watch;

use crate::harness::{Server, within};
use crate::stage::Stage;

/// What is known of one notice.
#[derive(Debug, Clone, Default)]
struct Entry {
    event_ids: BTreeSet<EventId>,
    attempts: Vec<u32>,
    running: usize,
}

/// Every hand-out of a drill, over all its workers.
#[derive(Debug)]
pub(crate) struct Book {
    entries: Mutex<BTreeMap<String, Entry>>,
    /// Notices that two handlers had at once, whose attempts did not go up, or whose event id changed.
    problems: Mutex<Vec<String>>,
    handled: watch::Sender<usize>,
}

impl Book {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { entries: Mutex::default(), problems: Mutex::default(), handled: watch::Sender::new(0) })
    }

    /// A handler gets this delivery.
    pub(crate) fn begin(&self, notice: &str, delivery: &Delivery) {
        let mut entries = self.entries.lock().unwrap();
        let entry = entries.entry(notice.to_owned()).or_default();
        entry.attempts.push(delivery.attempt());
        entry.event_ids.insert(delivery.event_id());
        entry.running += 1;
        // Said at the end: a handler that panics is a failed attempt and no more.
        let goes_up = entry.attempts.is_sorted_by(|a, b| a < b);
        if entry.running > 1 || entry.event_ids.len() > 1 || !goes_up {
            self.problems.lock().unwrap().push(format!("{notice}: {entry:?}"));
        }
        self.handled.send_replace(entries.len());
    }

    /// That handler has ended.
    pub(crate) fn end(&self, notice: &str) {
        self.entries.lock().unwrap().get_mut(notice).unwrap().running -= 1;
    }

    /// Waits until so many different notices have come to a handler.
    pub(crate) async fn reached(&self, notices: usize) {
        let mut handled = self.handled.subscribe();
        let what = format!("{notices} notices to be handled");
        within(&what, handled.wait_for(|handled| *handled >= notices)).await.unwrap();
    }

    /// How many hand-outs came after the first of their notice.
    pub(crate) fn repeats(&self) -> usize {
        self.entries.lock().unwrap().values().map(|entry| entry.attempts.len() - 1).sum()
    }

    /// A handler that writes into the book and takes a moment.
    pub(crate) fn handler(
        self: &Arc<Self>,
    ) -> impl Fn(Delivery) -> BoxFuture<'static, Outcome> + Send + Sync + Clone + 'static {
        self.handler_with("main", |_| Outcome::Done)
    }

    /// The same on this route, with an outcome of its own.
    pub(crate) fn handler_with(
        self: &Arc<Self>,
        route: &'static str,
        outcome: fn(&Delivery) -> Outcome,
    ) -> impl Fn(Delivery) -> BoxFuture<'static, Outcome> + Send + Sync + Clone + 'static {
        let book = Arc::clone(self);
        move |delivery| {
            let book = Arc::clone(&book);
            Box::pin(async move {
                let notice = format!("{route} {} {}", delivery.kind().to_stored(), delivery.id());
                book.begin(&notice, &delivery);
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
                book.end(&notice);
                outcome(&delivery)
            })
        }
    }

    /// All of these have been handled, and the store has nothing left.
    pub(crate) async fn closes(&self, stage: &Stage, notices: usize) {
        self.reached(notices).await;
        let counters = stage.settled().await;
        assert_eq!(self.entries.lock().unwrap().len(), notices);
        let repeats = self.repeats() as u64;
        assert!(repeats <= counters.lapsed + counters.failed, "{repeats} repeats: {counters:?}");
        assert_eq!((counters.dead, counters.review, counters.quarantined), (0, 0, 0));
    }

    /// No notice was ever with two handlers, and what was repeated had been lost or was to be tried again, so often by the
    /// workers' own word.
    pub(crate) fn is_sound(&self, again: u64) {
        assert_eq!(*self.problems.lock().unwrap(), [""; 0]);
        let repeats = self.repeats();
        assert!(repeats as u64 <= again, "{repeats} repeats, and {again} lost or failed");
    }
}

/// Arms so many deadlines as a raw client does, the first to expire in a moment and the last `spread_ms` later.
pub(crate) async fn arm(server: &Server, stage: &Stage, deadlines: usize, spread_ms: i64) {
    arm_some(server, stage, 0..deadlines, 200, spread_ms).await;
}

/// The same for ids of these numbers, the first to expire in `in_ms`.
pub(crate) async fn arm_some(server: &Server, stage: &Stage, numbers: Range<usize>, in_ms: i64, spread_ms: i64) {
    let begin_ms = stage.now().await + in_ms;
    let deadlines = numbers.len();
    let mut zadd = redis::cmd("ZADD");
    zadd.arg(format!("{{fw:{}:0}}:exp", stage.namespace.name().unwrap()));
    for (at, number) in numbers.enumerate() {
        let (at, count) = (i64::try_from(at).unwrap(), i64::try_from(deadlines).unwrap());
        zadd.arg(begin_ms + spread_ms * at / count).arg(format!("id {number}"));
    }
    let added: usize = zadd.query_async(&mut server.connection().await).await.unwrap();
    assert_eq!(added, deadlines);
}
