//! The book of a drill: who handled which notice at which attempt, and what must never be seen in it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use forewarn::{Delivery, Outcome};
use tokio::sync::watch;

use crate::harness::{Server, eventually, within};
use crate::stage::Stage;

/// What is known of one notice.
#[derive(Debug, Clone, Default)]
struct Entry {
    attempts: Vec<u32>,
    running: usize,
}

/// Every hand-out of a drill, over all its workers.
#[derive(Debug)]
pub(crate) struct Book {
    entries: Mutex<BTreeMap<String, Entry>>,
    /// Notices that two handlers had at once, or whose attempts did not go up.
    problems: Mutex<Vec<String>>,
    handled: watch::Sender<usize>,
}

impl Book {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { entries: Mutex::default(), problems: Mutex::default(), handled: watch::Sender::new(0) })
    }

    /// A handler gets this notice.
    pub(crate) fn begin(&self, notice: &str, attempt: u32) {
        let mut entries = self.entries.lock().unwrap();
        let entry = entries.entry(notice.to_owned()).or_default();
        entry.attempts.push(attempt);
        entry.running += 1;
        // Said at the end: a handler that panics is a failed attempt and no more.
        if entry.running > 1 || !entry.attempts.is_sorted_by(|a, b| a < b) {
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
    ) -> impl Fn(Delivery) -> futures::future::BoxFuture<'static, Outcome> + Send + Sync + Clone + 'static {
        let book = Arc::clone(self);
        move |delivery| {
            let book = Arc::clone(&book);
            Box::pin(async move {
                let notice = format!("{} {}", delivery.kind().to_stored(), delivery.id());
                book.begin(&notice, delivery.attempt());
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
                book.end(&notice);
                Outcome::Done
            })
        }
    }

    /// All of these have been handled, the store has nothing left, and lapses explain what came again.
    pub(crate) async fn closes(&self, stage: &Stage, notices: usize) {
        self.reached(notices).await;
        let counters = eventually("everything to be settled", async || {
            let stats = stage.namespace.stats().await.ok()?;
            let is_over = stats.armed + stats.open == 0 && stats.routes.iter().all(|route| route.pending == 0);
            is_over.then_some(stats.counters)
        })
        .await;
        assert_eq!(self.entries.lock().unwrap().len(), notices);
        assert_eq!(*self.problems.lock().unwrap(), [""; 0]);
        let repeats = self.repeats() as u64;
        assert!(repeats <= counters.lapsed, "{repeats} repeats, and {} lapses: {counters:?}", counters.lapsed);
        assert_eq!((counters.dead, counters.review, counters.quarantined), (0, 0, 0));
    }
}

/// Arms so many deadlines as a raw client does, the first to expire in a moment and the last `spread_ms` later.
pub(crate) async fn arm(server: &Server, stage: &Stage, deadlines: usize, spread_ms: i64) {
    arm_more(server, stage, 0, deadlines, spread_ms).await;
}

/// The same for ids that are numbered from `first` on.
pub(crate) async fn arm_more(server: &Server, stage: &Stage, first: usize, deadlines: usize, spread_ms: i64) {
    let begin_ms = stage.now().await + 200;
    let mut zadd = redis::cmd("ZADD");
    zadd.arg(format!("{{fw:{}:0}}:exp", stage.namespace.name().unwrap()));
    for i in 0..deadlines {
        let (at, count) = (i64::try_from(i).unwrap(), i64::try_from(deadlines).unwrap());
        zadd.arg(begin_ms + spread_ms * at / count).arg(format!("id {}", first + i));
    }
    let added: usize = zadd.query_async(&mut server.connection().await).await.unwrap();
    assert_eq!(added, deadlines);
}
