//! Plays operations on a store and on the model, and compares them after each.

mod change;
mod claim;
mod keyed;
mod set;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use forewarn::model::{ExpiresAt, Id, LeadTime, Name, OnRearm, Route, Settings};
use forewarn::store::{Change, Store, Token};

use crate::ground::{Ground, Peer};
use crate::harness::{self, Rights};
use crate::ledger::{Hand, Ledger};
use crate::model::Model;
use crate::operation::{Case, IDS, LEADS, Op, ROUTES, START, TOLERANCE, Verb};
use crate::snapshot::Snapshot;
use crate::words::{Bytes, Lane, Rules, Stopped};

/// A store under virtual time, and a connection of its own to its server.
pub(crate) struct Bench {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) peer: Box<dyn Peer>,
    pub(crate) clock: Arc<AtomicI64>,
}

impl Bench {
    pub(crate) async fn open(ground: impl Into<Ground<'_>>) -> Self {
        Self::with_rights(ground, None).await
    }

    pub(crate) async fn with_rights(ground: impl Into<Ground<'_>>, rights: Option<&Rights>) -> Self {
        let clock = Arc::new(AtomicI64::new(START));
        let peer = ground.into().peer_with(rights).await;
        let store = peer.open(&clock).await;
        Self { store, peer, clock }
    }
}

/// A claim in the hands of a worker.
#[derive(Clone, Debug)]
struct Held {
    route: String,
    token: Token,
    due_at_ms: i64,
    on_set: bool,
}

/// One history as it is played.
pub(crate) struct World<'a> {
    bench: &'a mut Bench,
    name: Name,
    model: Model,
    ledger: Ledger,
    held: Vec<Held>,
    spent: Vec<Held>,
    /// At which claim of its shard each token was given out.
    given: BTreeMap<(String, Bytes), i64>,
    /// Routes whose worker sleeps.
    sleeping: BTreeMap<String, bool>,
    /// Ids ever written by a raw client: nobody is woken for that.
    raw: BTreeSet<Bytes>,
    latest: i64,
    small_steps: bool,
    pub(crate) log: String,
}

fn ms(value: i64) -> Duration {
    Duration::from_millis(value.unsigned_abs())
}

fn id(index: u8) -> Id {
    Id::new(IDS[usize::from(index) % IDS.len()]).expect("a good id")
}

fn expiry(at: i64) -> ExpiresAt {
    ExpiresAt::from_millis(at).expect("a good expiry")
}

fn bytes(payload: Option<u8>) -> Option<Bytes> {
    payload.map(|byte| vec![byte, 0, 0xFF])
}

fn settings(rules: &Rules) -> Settings {
    let mut settings =
        Settings::default().grace(ms(rules.grace)).late(rules.late).shards(rules.shards).cleanup(rules.cleanup);
    settings.remind = rules.leads.iter().map(|lead| LeadTime::from_millis(*lead).expect("a good lead")).collect();
    settings.on_rearm = if rules.delivers { OnRearm::Deliver } else { OnRearm::Supersede };
    settings.min_repeat = rules.min_repeat.map(ms);
    settings.clock_tolerance = ms(rules.tolerance);
    settings.max_deliveries = rules.max_deliveries;
    match rules.keyed {
        Some(keyed) => keyed::settings(settings, keyed),
        None => settings,
    }
}

fn route(lane: &Lane) -> Route {
    let mut route = Route::all(Name::new("route", lane.name.clone()).expect("a good name"));
    (route.reminders, route.cleanups) = (lane.reminders, lane.cleanups);
    route.leads = lane.leads.iter().map(|lead| LeadTime::from_millis(*lead).expect("a good lead")).collect();
    route
}

fn lane(name: &str, reminders: bool, cleanups: bool, only: Option<i64>) -> Lane {
    let leads = only.into_iter().collect();
    Lane { name: name.to_owned(), reminders, cleanups, leads, paused: Stopped::default() }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, store: &T, model: &T) -> Result<(), String> {
    if store == model { Ok(()) } else { Err(format!("{what} answered {store:?}, the model {model:?}")) }
}

/// Plays one history from beginning to end, with everything drained and settled at the end.
pub(crate) async fn play(bench: &mut Bench, case: &Case, ops: &[Op], small_steps: bool) -> Result<(), String> {
    let mut world = World::begin(bench, case, small_steps).await?;
    let mut outcome = Ok(());
    for (index, op) in ops.iter().enumerate() {
        let now = world.model.now - case.begins_at();
        writeln!(world.log, "{index:3}. at {now:5}  {op:?}").ok();
        outcome = world.step(op).await;
        if outcome.is_err() {
            break;
        }
    }
    if outcome.is_ok() {
        world.log.push_str("     the end\n");
        outcome = world.finish().await;
    }
    outcome.map_err(|problem| format!("{problem}\n{case:?}\n{}", world.log))
}

impl<'a> World<'a> {
    pub(crate) async fn begin(bench: &'a mut Bench, case: &Case, small_steps: bool) -> Result<Self, String> {
        let start = case.begins_at();
        bench.clock.store(start, Ordering::SeqCst);
        let name = Name::new("namespace", harness::namespace()).expect("a good name");
        let rules = Rules {
            leads: LEADS[usize::from(case.leads)].to_vec(),
            cleanup: case.cleanup,
            grace: case.grace,
            late: case.late,
            delivers: case.delivers,
            min_repeat: case.min_repeat,
            tolerance: TOLERANCE,
            max_deliveries: case.max_deliveries,
            shards: case.shards.min(bench.peer.max_shards()),
            keyed: case.keyed,
        };
        let lanes: Vec<Lane> = (case.routes.iter().zip(ROUTES))
            .map(|((reminders, cleanups, only), name)| lane(name, *reminders, *cleanups, *only))
            .collect();
        let mut change = Change::settings(settings(&rules));
        change.routes = lanes.iter().map(route).collect();
        bench.store.configure(&name, &change).await.map_err(|error| format!("configure: {error}"))?;
        if case.keyed.is_some() {
            bench.forget_keys().await;
        }
        Ok(Self {
            bench,
            name,
            model: Model::new(start, rules, lanes),
            ledger: Ledger::default(),
            held: Vec::new(),
            spent: Vec::new(),
            given: BTreeMap::new(),
            sleeping: BTreeMap::new(),
            raw: BTreeSet::new(),
            latest: start,
            small_steps,
            log: String::new(),
        })
    }

    fn note(&mut self, what: &dyn std::fmt::Debug) {
        writeln!(self.log, "                    -> {what:?}").ok();
    }

    pub(crate) async fn step(&mut self, op: &Op) -> Result<(), String> {
        let mut before = self.model.armed.clone();
        let (unheard, looked) = (self.unheard(), self.model.looked);
        let mut hand = Hand::Script;
        let mut store = None;
        match op {
            Op::RawSet { .. } | Op::RawScore { .. } | Op::RawRemove { .. } | Op::Every { .. } => {
                hand = Hand::Raw;
                self.write_raw(op).await;
            }
            Op::Claim { route, limit, lease } => {
                store = Some(self.claim(usize::from(*route), *limit, *lease).await?);
            }
            Op::KeySet { .. } | Op::KeyDelete { .. } | Op::KeyArm { .. } | Op::KeyFew { .. } | Op::RawTrue { .. } => {
                hand = Hand::Raw;
                self.write_key(op).await;
            }
            Op::Resync => self.resync().await?,
            Op::Crash => self.spent.append(&mut self.held),
            Op::Settle { .. } | Op::SettleAll { .. } if self.held.is_empty() && self.spent.is_empty() => return Ok(()),
            Op::Settle { .. } | Op::SettleAll { .. } => self.settle(op).await?,
            Op::Requeue { place, pick } | Op::Discard { place, pick } => {
                self.unpark(matches!(op, Op::Requeue { .. }), *place, usize::from(*pick)).await?;
            }
            Op::Forward { ms } => self.move_clock(*ms),
            Op::Back { ms } => self.move_clock(-*ms),
            _ if self.is_out_of_reach(op) => return Ok(()),
            Op::Leads { .. } | Op::Route { .. } | Op::DropRoute { .. } | Op::Pause { .. } => self.change(op).await?,
            Op::TrackMany { entries, .. } | Op::RenewMany { entries } => {
                self.set(op).await?;
                let comes_twice = |at: usize| entries[..at].iter().any(|(other, _)| *other == entries[at].0);
                if (0..entries.len()).any(comes_twice) {
                    // Between the two sets of an id the ledger sees nothing.
                    hand = Hand::Raw;
                    for (index, _) in entries {
                        before.remove(id(*index).as_bytes());
                        self.ledger.note_unseen(id(*index).as_bytes(), &self.model);
                    }
                }
            }
            _ => self.set(op).await?,
        }
        if self.model.rules.keyed.is_some() {
            if hand == Hand::Script && store.is_none() {
                self.note_heard(&before, &unheard);
            }
            // What the keys say may have come between.
            hand = Hand::Raw;
            if self.model.looked != looked {
                self.forget_commanded(op, &mut before);
            }
            self.expire_keys().await;
        }
        if store.is_none() {
            self.ledger.note_sets(&before, &self.model, hand);
        }
        if matches!(op, Op::Crash | Op::Forward { .. } | Op::Back { .. }) {
            return Ok(());
        }
        let store = match store {
            Some(store) => store,
            None => self.snapshot().await,
        };
        self.model.compare(&store)?;
        self.check_wake(&store)
    }

    async fn snapshot(&mut self) -> Snapshot {
        let routes: Vec<String> = self.model.lanes.iter().map(|lane| lane.name.clone()).collect();
        let mut snapshot = self.bench.peer.snapshot(&self.name, self.model.rules.shards, &routes).await;
        if self.model.rules.keyed.is_some() {
            snapshot.keys = self.bench.keys().await;
        }
        snapshot
    }

    fn move_clock(&mut self, by: i64) {
        let mut to = self.model.now + by;
        if self.small_steps {
            to = to.max(self.latest - TOLERANCE);
        }
        self.latest = self.latest.max(to);
        if to < self.model.now {
            self.ledger.note_step_back(self.latest - to > TOLERANCE);
        }
        self.model.now = to;
        self.bench.clock.store(to, Ordering::SeqCst);
    }

    /// A worker that sleeps is woken for whatever a script makes due earlier than it knew.
    fn check_wake(&mut self, store: &Snapshot) -> Result<(), String> {
        // What a clock that went back makes due again is found by the next look.
        if self.ledger.repeats_allowed || self.model.now < self.latest {
            return Ok(());
        }
        for (route, sleeps) in self.sleeping.iter_mut().filter(|(_, sleeps)| **sleeps) {
            for shard in 0..self.model.rules.shards {
                let event = self.model.first_event(route, shard, &self.raw);
                let known = store.wake_at.get(&(shard, route.clone())).copied();
                // It was told of this instant, and that has come.
                *sleeps &= known.is_none_or(|known| known > self.model.now);
                if let (Some((event, what)), Some(known)) = (event, known)
                    && known > event.max(self.model.now)
                {
                    return Err(format!("{what} is due on {route} at {event}, but its worker sleeps until {known}"));
                }
            }
        }
        Ok(())
    }

    /// Drains and settles everything, and looks that nothing is left.
    async fn finish(&mut self) -> Result<(), String> {
        self.check_views().await?;
        self.drain().await?;
        for lane in self.model.lanes.clone().into_iter().filter(|lane| lane.paused != Stopped::default()) {
            let index = ROUTES.iter().position(|name| *name == lane.name).map(|index| index as u8);
            self.step(&Op::Pause { route: index, reminders: true, cleanups: true, paused: false }).await?;
        }
        if self.model.stopped != Stopped::default() {
            self.step(&Op::Pause { route: None, reminders: true, cleanups: true, paused: false }).await?;
        }
        for index in 0..IDS.len() as u8 {
            if self.model.every.contains_key(IDS[usize::from(index)]) {
                self.step(&Op::Remove { id: index }).await?;
            }
        }
        for ms in [0, 4, 6, 20, 1100, 1100] {
            self.step(&Op::Forward { ms }).await?;
            self.drain().await?;
        }
        let store = self.snapshot().await;
        if let Some((id, e)) = store.armed.first_key_value().filter(|(_, e)| self.model.is_over(**e)) {
            return Err(format!("I4: {} is still armed at {e:?}", id.escape_ascii()));
        }
        if let Some(id) = store.armed.keys().next().filter(|_| self.model.rules.keyed.is_some()) {
            return Err(format!("I11: {} is armed and its key is long gone", id.escape_ascii()));
        }
        self.model.check_empty(&store)
    }

    async fn drain(&mut self) -> Result<(), String> {
        for _ in 0..200 {
            let mut quiet = true;
            for index in 0..self.model.lanes.len() {
                let held = self.held.len();
                self.step(&Op::Claim { route: index as u8, limit: 100, lease: 5 }).await?;
                quiet &= self.held.len() == held && self.sleeping.get(&self.model.lanes[index].name) != Some(&false);
                if !self.held.is_empty() {
                    self.step(&Op::SettleAll { verb: Verb::Ack }).await?;
                }
            }
            if quiet {
                return Ok(());
            }
        }
        Err("the backlog does not end".to_owned())
    }
}
