//! The reference model: what a namespace must hold and answer, by the contract alone.
//!
//! It keeps every life, delivery and mark as plain data and decides by the clauses W1 to W9. It has no queue order, no
//! shares and no codec: where the contract leaves a store the choice (which due notices a claim takes, how far a sweep
//! comes) it follows the store's choice and checks that it was allowed.

mod claim;
mod compare;
mod configure;
mod keyed;
mod lead;
mod next;
mod set;
mod settle;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use keyed::{Looked, RECHECK};

use crate::words::{Bytes, Frontier, Kind, Lane, Notice, Rules, Score, Stopped, shard_of};

/// One delivery of a notice on one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// The lease's end, or when it may be handed out.
    pub(crate) at: i64,
    /// Hand-outs so far; stays at 15.
    pub(crate) n: u8,
    /// 1 to 63 while leased, else 0.
    pub(crate) c: u8,
    /// When it was due, as events tell it.
    pub(crate) due_at: i64,
    /// Whether a set put it there.
    pub(crate) on_set: bool,
    /// It was put off by a pause and may tell that instant instead.
    pub(crate) put_off: bool,
}

impl Delivery {
    fn ready(at: i64, on_set: bool) -> Self {
        Self { at, n: 0, c: 0, due_at: at, on_set, put_off: false }
    }
}

/// What is recorded of a delivery's failures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) failures: u32,
    pub(crate) lapses: u32,
}

/// The latest unsettled cleanup of an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) kind: Kind,
    pub(crate) e: Score,
    /// Its own recurrence armed the id again.
    pub(crate) recurs: bool,
}

impl Open {
    fn names(&self, notice: &Notice) -> bool {
        self.kind == notice.kind && self.e == notice.e
    }

    fn notice(&self, id: &[u8]) -> Notice {
        Notice::new(self.kind, self.e, id)
    }
}

/// Where notices are parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Dead,
    Review,
}

/// A parked notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) at: i64,
    pub(crate) payload: Option<Bytes>,
    pub(crate) failures: u32,
    pub(crate) lapses: u32,
}

/// One namespace under virtual time.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) now: i64,
    pub(crate) rules: Rules,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) stopped: Stopped,
    pub(crate) armed: BTreeMap<Bytes, Score>,
    /// Leads that stay silent for this very expiry.
    pub(crate) silent: BTreeMap<(i64, Bytes), Score>,
    /// Until when no further crossing speaks.
    pub(crate) crossed: BTreeMap<(i64, Bytes), i64>,
    /// How far each lead's sweep has come in each shard.
    pub(crate) frontiers: BTreeMap<(u16, i64), Frontier>,
    pub(crate) queues: BTreeMap<String, BTreeMap<Notice, Delivery>>,
    pub(crate) open: BTreeMap<Bytes, Open>,
    pub(crate) payloads: BTreeMap<Bytes, Bytes>,
    /// Payloads of cleanups.
    pub(crate) moved: BTreeMap<Notice, Bytes>,
    pub(crate) records: BTreeMap<(String, Notice), Record>,
    pub(crate) parked: BTreeMap<(Place, String, Notice), Stored>,
    pub(crate) every: BTreeMap<Bytes, i64>,
    pub(crate) bad: BTreeMap<Bytes, Score>,
    /// The keys behind key-backed ids: when each expires, if it does.
    pub(crate) keys: BTreeMap<Bytes, Option<i64>>,
    pub(crate) looked: Looked,
    /// When the keys inside the largest lead are to be looked at again.
    next_pass: Option<i64>,
}

impl Model {
    pub(crate) fn new(now: i64, rules: Rules, lanes: Vec<Lane>) -> Self {
        let queues = lanes.iter().map(|lane| (lane.name.clone(), BTreeMap::new())).collect();
        Self {
            now,
            rules,
            lanes,
            stopped: Stopped::default(),
            armed: BTreeMap::new(),
            silent: BTreeMap::new(),
            crossed: BTreeMap::new(),
            frontiers: BTreeMap::new(),
            queues,
            open: BTreeMap::new(),
            payloads: BTreeMap::new(),
            moved: BTreeMap::new(),
            records: BTreeMap::new(),
            parked: BTreeMap::new(),
            every: BTreeMap::new(),
            bad: BTreeMap::new(),
            keys: BTreeMap::new(),
            looked: Looked::default(),
            next_pass: None,
        }
    }

    /// A raw `ZADD`: the score changes and nothing else happens.
    pub(crate) fn raw_set(&mut self, id: &[u8], e: Score) {
        self.armed.insert(id.to_vec(), e);
    }

    /// A raw `ZREM`.
    pub(crate) fn raw_remove(&mut self, id: &[u8]) {
        self.armed.remove(id);
    }

    pub(crate) fn lane(&self, route: &str) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.name == route)
    }

    /// Whether a route may be handed out notices of this kind.
    pub(crate) fn hands_out(&self, lane: &Lane, kind: Kind) -> bool {
        match kind {
            Kind::Reminder(_) => !self.stopped.reminders && !lane.paused.reminders,
            Kind::Expired | Kind::Ended | Kind::Gone => !self.stopped.cleanups && !lane.paused.cleanups,
        }
    }

    /// Time left, which may be fractional or infinite.
    fn rest(&self, e: Score) -> f64 {
        e.value() - self.now as f64
    }

    fn is_inside(&self, e: Score, lead: i64) -> bool {
        self.rest(e) <= lead as f64
    }

    /// W4: expiry and grace have passed.
    pub(crate) fn is_over(&self, e: Score) -> bool {
        self.ends_at(e) <= self.now
    }

    /// When the cleanup of (id, e) comes. A key is still there at its very expiry (K1).
    fn ends_at(&self, e: Score) -> i64 {
        let end = e.value() + self.rules.grace as f64;
        if self.rules.keyed.is_some() { end.floor() as i64 + 1 } else { end.ceil() as i64 }
    }

    pub(crate) fn frontier(&self, lead: i64, id: &[u8]) -> Frontier {
        let shard = shard_of(id, self.rules.shards);
        self.frontiers.get(&(shard, lead)).cloned().unwrap_or_else(Frontier::nothing)
    }

    /// Whether the sweep of this lead has passed the place of (e, id).
    fn is_swept(&self, lead: i64, e: Score, id: &[u8]) -> bool {
        self.frontier(lead, id).has_passed(e, id)
    }

    fn is_silent(&self, lead: i64, e: Score, id: &[u8]) -> bool {
        self.silent.get(&(lead, id.to_vec())).is_some_and(|marked| *marked == e)
    }

    /// W1 and W5: may this notice be handed out now? Else why not.
    pub(crate) fn state(&self, notice: &Notice) -> Result<(), &'static str> {
        let armed = self.armed.get(&notice.id);
        match notice.kind {
            Kind::Reminder(lead) => {
                if !self.rules.leads.contains(&lead) {
                    return Err("lead");
                }
                if armed.is_none_or(|e| e.canonical() != notice.e) {
                    return Err("superseded");
                }
                let rest = self.rest(notice.e);
                if rest <= 0.0 {
                    Err("expired")
                } else if rest <= self.rules.next_smaller(lead) as f64 {
                    Err("coalesced")
                } else if rest > lead as f64 {
                    Err("superseded")
                } else {
                    Ok(())
                }
            }
            Kind::Expired | Kind::Ended | Kind::Gone => {
                let named = self.open.get(&notice.id).filter(|open| open.names(notice));
                let holds = self.rules.delivers || named.is_some_and(|open| armed.is_none() || open.recurs);
                if holds { Ok(()) } else { Err("superseded") }
            }
        }
    }

    /// Takes a delivery away with what was recorded of it. Answers whether it had never been handed out.
    fn void(&mut self, route: &str, notice: &Notice) -> bool {
        let Some(delivery) = self.queues.get_mut(route).and_then(|queue| queue.remove(notice)) else {
            return false;
        };
        self.records.remove(&(route.to_owned(), notice.clone()));
        delivery.n == 0
    }

    /// Voids a notice on every route; answers the routes on which it had never been handed out.
    fn void_everywhere(&mut self, notice: &Notice) -> BTreeSet<String> {
        let routes: Vec<String> = self.queues.keys().cloned().collect();
        routes.into_iter().filter(|route| self.void(route, notice)).collect()
    }

    /// Voids the open cleanup of an id.
    fn void_cleanup(&mut self, id: &[u8]) {
        if let Some(open) = self.open.remove(id) {
            let notice = open.notice(id);
            self.void_everywhere(&notice);
            self.moved.remove(&notice);
        }
    }

    /// Opens the cleanup of a life that ends (W4, W6): ready on every route that wants it.
    fn open_cleanup(&mut self, kind: Kind, e: Score, id: &[u8], at: i64) {
        let notice = Notice::new(kind, e, id);
        let payload = self.payloads.remove(id);
        let wanting: Vec<String> =
            self.lanes.iter().filter(|lane| lane.wants(kind, &self.rules)).map(|lane| lane.name.clone()).collect();
        if wanting.is_empty() {
            return;
        }
        for route in wanting {
            // In flight already: two lives with the same expiry are one notice.
            self.queues.entry(route).or_default().entry(notice.clone()).or_insert_with(|| Delivery::ready(at, false));
        }
        self.open.insert(id.to_vec(), Open { kind, e: e.canonical(), recurs: false });
        if let Some(payload) = payload {
            self.moved.insert(notice, payload);
        }
    }

    /// A route's delivery of a cleanup is gone: the last one of all routes clears what belongs to it.
    fn close_if_last(&mut self, notice: &Notice) {
        if self.queues.values().any(|queue| queue.contains_key(notice)) {
            return;
        }
        if self.open.get(&notice.id).is_some_and(|open| open.names(notice)) {
            self.open.remove(&notice.id);
        }
        self.moved.remove(notice);
    }

    /// Takes a delivery away because its notice is void.
    fn drop_void(&mut self, route: &str, notice: &Notice) {
        self.void(route, notice);
        if notice.kind.is_cleanup() {
            self.close_if_last(notice);
        }
    }

    /// Parks a delivery: it is settled here and waits on a shelf.
    fn park(&mut self, place: Place, route: &str, notice: &Notice, record: &Record) {
        let payload = if notice.kind.is_cleanup() { self.moved.get(notice) } else { self.payloads.get(&notice.id) };
        let stored =
            Stored { at: self.now, payload: payload.cloned(), failures: record.failures, lapses: record.lapses };
        self.parked.insert((place, route.to_owned(), notice.clone()), stored);
        self.drop_void(route, notice);
    }
}
