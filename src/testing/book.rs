//! The book of a test store: what workers have claimed and not yet settled, and what became of the rest.
//!
//! It knows of claims that are still under way, too: they may have taken what can no longer be seen in the store.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::watch, task};

use crate::engine::WorkerError;
use crate::model::{Name, to_datetime};
use crate::store::{Claims, Token};
use crate::testing::{Ending, Handled};

/// A route of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    pub(super) namespace: Name,
    pub(super) route: Name,
}

impl Lane {
    pub(super) fn new(namespace: &Name, route: &Name) -> Self {
        Self { namespace: namespace.clone(), route: route.clone() }
    }
}

/// How often something has happened; whoever waits sees that it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pulse {
    /// A notice was handed out or ended, or a worker ended.
    pub(super) changes: u64,
    /// A claim ended, whether it took something or not.
    pub(super) claims: u64,
}

/// What workers do, as their store sees it.
#[derive(Debug)]
pub(super) struct Book {
    pages: Mutex<Pages>,
    pulse: watch::Sender<Pulse>,
}

#[derive(Debug, Default)]
struct Pages {
    handled: Vec<Handled>,
    /// How many of those the test has been told.
    told: usize,
    held: HashMap<(Lane, Token), Held>,
    /// The claims under way, by number.
    claiming: BTreeSet<u64>,
    last_claim: u64,
    /// How many claims of each route were answered.
    answered: HashMap<Lane, u64>,
    /// How many workers listen.
    listeners: HashMap<Post, usize>,
    /// Notices that ended otherwise than by being given back.
    settled: u64,
    failed: Option<WorkerError>,
}

#[derive(Debug)]
struct Held {
    place: usize,
    task: Option<task::Id>,
}

/// Where a worker listens and in which task, the same in which it claims. A test without a task is one, too.
type Post = (Name, Option<task::Id>);

impl Book {
    pub(super) fn new() -> Self {
        Self { pages: Mutex::default(), pulse: watch::Sender::new(Pulse::default()) }
    }

    pub(super) fn listen(&self) -> watch::Receiver<Pulse> {
        self.pulse.subscribe()
    }

    /// A claim begins; it is over when the answer is dropped.
    pub(super) fn claiming(&self) -> Claiming<'_> {
        let mut pages = self.pages();
        pages.last_claim += 1;
        let number = pages.last_claim;
        pages.claiming.insert(number);
        Claiming { book: self, number }
    }

    /// A claim of a route was answered.
    pub(super) fn claimed(&self, lane: &Lane, claims: &Claims) {
        let mut pages = self.pages();
        *pages.answered.entry(lane.clone()).or_default() += 1;
        for claim in &claims.claims {
            let place = pages.handled.len();
            pages.handled.push(Handled {
                route: lane.route.clone(),
                notice: claim.notice.clone(),
                attempt: claim.attempt,
                at: to_datetime(claims.now_ms),
                ending: Ending::Open,
            });
            let held = Held { place, task: task::try_id() };
            pages.held.insert((lane.clone(), claim.token.clone()), held);
        }
        drop(pages);
        if !claims.claims.is_empty() {
            self.changed();
        }
    }

    /// A claim has ended.
    pub(super) fn ended(&self, lane: &Lane, token: &Token, ending: Ending) {
        let mut pages = self.pages();
        let Some(Held { place, .. }) = pages.held.remove(&(lane.clone(), token.clone())) else { return };
        if ending != Ending::Released {
            pages.settled += 1;
        }
        if let Some(handled) = pages.handled.get_mut(place) {
            handled.ending = ending;
        }
        drop(pages);
        self.changed();
    }

    /// A worker listens; it has gone when the answer is dropped.
    pub(super) fn listening(self: &Arc<Self>, namespace: &Name) -> Listening {
        let post = (namespace.clone(), task::try_id());
        *self.pages().listeners.entry(post.clone()).or_default() += 1;
        Listening { book: Arc::clone(self), post }
    }

    /// A worker has ended, and was not to.
    pub(super) fn failed(&self, error: WorkerError) {
        self.pages().failed = Some(error);
        self.changed();
    }

    pub(super) fn take_failed(&self) -> Option<WorkerError> {
        self.pages().failed.take()
    }

    /// What is held by workers that are there to settle it.
    pub(super) fn held(&self) -> Vec<Handled> {
        let pages = self.pages();
        let mut places: Vec<usize> = pages.held.values().map(|held| held.place).collect();
        places.sort_unstable();
        places.into_iter().filter_map(|place| pages.handled.get(place).cloned()).collect()
    }

    /// Whether a worker works on a route: one listens in its namespace, and one has claimed there.
    pub(super) fn has_worker(&self, lane: &Lane) -> bool {
        let pages = self.pages();
        let is_listening = pages.listeners.keys().any(|(namespace, _)| *namespace == lane.namespace);
        is_listening && pages.answered.contains_key(lane)
    }

    pub(super) fn answered(&self, lane: &Lane) -> u64 {
        self.pages().answered.get(lane).copied().unwrap_or_default()
    }

    pub(super) fn settled(&self) -> u64 {
        self.pages().settled
    }

    /// The number of the last claim that has begun.
    pub(super) fn last_claim(&self) -> u64 {
        self.pages().last_claim
    }

    /// Whether a claim of this number or an earlier one is under way.
    pub(super) fn is_claiming(&self, number: u64) -> bool {
        self.pages().claiming.first().is_some_and(|first| *first <= number)
    }

    pub(super) fn history(&self) -> Vec<Handled> {
        self.pages().handled.clone()
    }

    /// What was handed out since this was last asked.
    pub(super) fn news(&self) -> Vec<Handled> {
        let mut pages = self.pages();
        let news = pages.handled[pages.told..].to_vec();
        pages.told = pages.handled.len();
        news
    }

    fn changed(&self) {
        self.pulse.send_modify(|pulse| pulse.changes += 1);
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A claim under way.
#[derive(Debug)]
pub(super) struct Claiming<'a> {
    book: &'a Book,
    number: u64,
}

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        self.book.pages().claiming.remove(&self.number);
        self.book.pulse.send_modify(|pulse| pulse.claims += 1);
    }
}

/// A worker that listens.
#[derive(Debug)]
pub(super) struct Listening {
    book: Arc<Book>,
    post: Post,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut pages = self.book.pages();
        let Pages { listeners, held, .. } = &mut *pages;
        let left = listeners.get_mut(&self.post).map_or(0, |listeners| {
            *listeners -= 1;
            *listeners
        });
        if left == 0 {
            listeners.remove(&self.post);
            let (namespace, task) = &self.post;
            // Nobody is left to settle it: it is handed out again when its lease ends.
            held.retain(|(lane, _), held| lane.namespace != *namespace || held.task != *task);
        }
        drop(pages);
        self.book.changed();
    }
}
