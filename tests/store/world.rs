//! Plays operations on a store and on the model, and compares them after each.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use forewarn::model::{Class, ExpiresAt, Failure, Id, LeadTime, Name, OnRearm, Pause, Renew, Route, Settings, Track};
use forewarn::store::redis::{RedisOptions, RedisStore};
use forewarn::store::{Change, Failing, Next, ParkedQuery, Shelf, Store, Token, Verdict};
use redis::aio::MultiplexedConnection;

use crate::harness::{self, Server};
use crate::ledger::{Hand, Ledger};
use crate::model::{Model, Place};
use crate::operation::{Case, IDS, LEADS, Op, ROUTES, START, TOLERANCE, Verb};
use crate::snapshot::{Snapshot, key};
use crate::words::{Bytes, Lane, Notice, Rules, Score, Stopped, parse_token, shard_of};

/// A store under virtual time, and a connection of its own to its server.
pub(crate) struct Bench {
    pub(crate) store: RedisStore,
    pub(crate) connection: MultiplexedConnection,
    pub(crate) clock: Arc<AtomicI64>,
}

impl Bench {
    pub(crate) async fn open(server: &Server) -> Self {
        let clock = Arc::new(AtomicI64::new(START));
        let mut options = RedisOptions::default();
        options.manual_clock = Some(Arc::clone(&clock));
        let store = RedisStore::open(&server.url(), options).await.expect("the test's own server answers");
        Self { store, connection: server.connection().await, clock }
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
    raw: std::collections::BTreeSet<Bytes>,
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
    settings
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
        let now = world.model.now - START;
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
        bench.clock.store(START, Ordering::SeqCst);
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
            shards: case.shards,
        };
        let lanes: Vec<Lane> = (case.routes.iter().zip(ROUTES))
            .map(|((reminders, cleanups, only), name)| lane(name, *reminders, *cleanups, *only))
            .collect();
        let mut change = Change::settings(settings(&rules));
        change.routes = lanes.iter().map(route).collect();
        bench.store.configure(&name, &change).await.map_err(|error| format!("configure: {error}"))?;
        Ok(Self {
            bench,
            name,
            model: Model::new(START, rules, lanes),
            ledger: Ledger::default(),
            held: Vec::new(),
            spent: Vec::new(),
            given: BTreeMap::new(),
            sleeping: BTreeMap::new(),
            raw: std::collections::BTreeSet::new(),
            latest: START,
            small_steps,
            log: String::new(),
        })
    }

    fn note(&mut self, what: &dyn std::fmt::Debug) {
        writeln!(self.log, "                    -> {what:?}").ok();
    }

    pub(crate) async fn step(&mut self, op: &Op) -> Result<(), String> {
        let mut before = self.model.armed.clone();
        let mut hand = Hand::Script;
        let mut store = None;
        match op {
            Op::RawSet { .. } | Op::RawScore { .. } | Op::RawRemove { .. } | Op::Every { .. } => {
                hand = Hand::Raw;
                self.write_raw(op).await;
            }
            Op::Claim { route, limit, lease } => {
                hand = Hand::Recurrence;
                store = Some(self.claim(usize::from(*route), *limit, *lease).await?);
            }
            Op::Crash => self.spent.append(&mut self.held),
            Op::Settle { .. } | Op::SettleAll { .. } if self.held.is_empty() && self.spent.is_empty() => return Ok(()),
            Op::Settle { .. } | Op::SettleAll { .. } => self.settle(op).await?,
            Op::Requeue { place, pick } | Op::Discard { place, pick } => {
                self.unpark(matches!(op, Op::Requeue { .. }), *place, usize::from(*pick)).await?;
            }
            Op::Forward { ms } => self.move_clock(*ms),
            Op::Back { ms } => self.move_clock(-*ms),
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
        self.ledger.note_sets(&before, &self.model, hand);
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
        Snapshot::read(&mut self.bench.connection, self.name.as_str(), self.model.rules.shards, &routes).await
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

    async fn set(&mut self, op: &Op) -> Result<(), String> {
        let now = self.model.now;
        let (store, name) = (&self.bench.store, &self.name);
        match op {
            Op::Track { mode, id: index, ttl, payload } => {
                let (id, at, payload) = (id(*index), now + ttl, bytes(*payload));
                let entry = Track { id: id.clone(), expires_at: expiry(at), payload: payload.clone() };
                let answer = store.track(name, *mode, &[entry]).await.map_err(|error| format!("track: {error}"))?;
                let expected = vec![self.model.track(*mode, id.as_bytes(), at, payload.as_deref())];
                self.note(&answer);
                same("track", &answer, &expected)
            }
            Op::TrackMany { mode, entries } => {
                let tracks: Vec<Track> = (entries.iter())
                    .map(|(index, ttl)| Track { id: id(*index), expires_at: expiry(now + ttl), payload: None })
                    .collect();
                let answer = store.track(name, *mode, &tracks).await.map_err(|error| format!("track: {error}"))?;
                let model = &mut self.model;
                let expected = (tracks.iter())
                    .map(|track| model.track(*mode, track.id.as_bytes(), track.expires_at.as_millis(), None))
                    .collect();
                self.note(&answer);
                same("track", &answer, &expected)
            }
            Op::TrackSame { mode, id: index } => {
                let id = id(*index);
                let Some(at) = self.model.armed.get(id.as_bytes()).map(|e| e.floor()) else { return Ok(()) };
                let Ok(expires_at) = ExpiresAt::from_millis(at) else { return Ok(()) };
                let entry = Track { id: id.clone(), expires_at, payload: Some(b"same".to_vec()) };
                let answer = store.track(name, *mode, &[entry]).await.map_err(|error| format!("track: {error}"))?;
                let expected = vec![self.model.track(*mode, id.as_bytes(), at, Some(b"same"))];
                self.note(&answer);
                same("track", &answer, &expected)
            }
            Op::Replace { mode, new, old, ttl, payload } => {
                let (new, old, at, payload) = (id(*new), id(*old), now + ttl, bytes(*payload));
                if new == old {
                    return Ok(());
                }
                let entry = Track { id: new.clone(), expires_at: expiry(at), payload: payload.clone() };
                let answer =
                    store.replace(name, *mode, &entry, &old).await.map_err(|error| format!("replace: {error}"))?;
                let expected = self.model.replace(*mode, new.as_bytes(), at, payload.as_deref(), old.as_bytes());
                self.note(&answer);
                same("replace", &answer, &expected)
            }
            Op::Renew { id: index, ttl, payload } => {
                let (id, at, payload) = (id(*index), now + ttl, bytes(*payload));
                let entry = Renew { id: id.clone(), expires_at: expiry(at), payload: payload.clone() };
                let answer = store.renew(name, &[entry]).await.map_err(|error| format!("renew: {error}"))?;
                let expected = vec![self.model.renew(id.as_bytes(), at, payload.as_deref())];
                self.note(&answer);
                same("renew", &answer, &expected)
            }
            Op::RenewMany { entries } => {
                let renews: Vec<Renew> = (entries.iter())
                    .map(|(index, ttl)| Renew { id: id(*index), expires_at: expiry(now + ttl), payload: None })
                    .collect();
                let answer = store.renew(name, &renews).await.map_err(|error| format!("renew: {error}"))?;
                let model = &mut self.model;
                let expected = (renews.iter())
                    .map(|renew| model.renew(renew.id.as_bytes(), renew.expires_at.as_millis(), None))
                    .collect();
                self.note(&answer);
                same("renew", &answer, &expected)
            }
            Op::Remove { id: index } => {
                let id = id(*index);
                let answer =
                    store.remove(name, std::slice::from_ref(&id)).await.map_err(|error| format!("remove: {error}"))?;
                let expected = vec![self.model.remove(id.as_bytes())];
                self.note(&answer);
                same("remove", &answer, &expected)
            }
            Op::Expire { id: index } => {
                let id = id(*index);
                let answer =
                    store.expire(name, std::slice::from_ref(&id)).await.map_err(|error| format!("expire: {error}"))?;
                let expected = vec![self.model.expire(id.as_bytes())];
                self.note(&answer);
                same("expire", &answer, &expected)
            }
            other => Err(format!("{other:?} sets nothing")),
        }
    }

    async fn write_raw(&mut self, op: &Op) {
        let (command, key_name, index) = match op {
            Op::RawSet { id, .. } | Op::RawScore { id, .. } => ("ZADD", "exp", *id),
            Op::RawRemove { id } => ("ZREM", "exp", *id),
            Op::Every { id, .. } => ("HSET", "every", *id),
            _ => return,
        };
        let id = id(index);
        let shard = shard_of(id.as_bytes(), self.model.rules.shards);
        self.raw.insert(id.as_bytes().to_vec());
        let mut raw = redis::cmd(command);
        raw.arg(key("fw", self.name.as_str(), shard, key_name));
        match op {
            Op::RawSet { ttl, .. } => {
                let e = Score::ms(self.model.now + ttl);
                self.model.raw_set(id.as_bytes(), e);
                raw.arg(e.text()).arg(id.as_bytes());
            }
            Op::RawScore { score, .. } => {
                self.model.raw_set(id.as_bytes(), Score::new(*score));
                raw.arg(format!("{score:e}").replace("inf", "inf")).arg(id.as_bytes());
            }
            Op::Every { period, .. } => {
                self.model.every.insert(id.as_bytes().to_vec(), *period);
                raw.arg(id.as_bytes()).arg(*period);
            }
            _ => {
                self.model.raw_remove(id.as_bytes());
                raw.arg(id.as_bytes());
            }
        }
        let () = raw.query_async(&mut self.bench.connection).await.expect("a raw write");
    }

    async fn claim(&mut self, route: usize, limit: u32, lease: i64) -> Result<Snapshot, String> {
        let routes = self.model.lanes.len();
        let route = self.model.lanes[route % routes].name.clone();
        let name = Name::new("route", route.clone()).expect("a good name");
        let reply = (self.bench.store.claim(&self.name, &name, limit, ms(lease)).await)
            .map_err(|error| format!("claim: {error}"))?;
        let told: Vec<String> = reply.claims.iter().map(|claim| format!("{:?}", claim.token)).collect();
        self.note(&format_args!("{route}: {} {:?}", told.join(" "), reply.next));
        let store = self.snapshot().await;
        let before = self.model.armed.clone();
        self.model.claim(&route, limit, lease, &reply, &store)?;
        self.ledger.note_sets(&before, &self.model, Hand::Recurrence);
        for claim in &reply.claims {
            self.note_token(&route, &claim.token, &store)?;
        }
        let now = self.model.now;
        let is_drained = match reply.next {
            Next::Backlog => false,
            Next::At { due_at_ms, .. } => due_at_ms.is_none_or(|due_at| due_at > now),
            Next::Paused { .. } => true,
        };
        if is_drained {
            self.ledger.check_drained(&self.model, &route, self.latest)?;
        }
        self.sleeping.insert(route.clone(), is_drained);
        self.held.extend(reply.claims.into_iter().map(|claim| Held {
            route: route.clone(),
            token: claim.token,
            due_at_ms: claim.due_at_ms,
            on_set: claim.on_set,
        }));
        Ok(store)
    }

    /// I5: within 63 claims of a shard no token is given out twice.
    fn note_token(&mut self, route: &str, token: &Token, store: &Snapshot) -> Result<(), String> {
        let (n, _, notice) = parse_token(token.as_bytes()).ok_or("odd token")?;
        let shard = shard_of(&notice.id, self.model.rules.shards);
        let claims = store.claims.get(&shard).copied().unwrap_or_default();
        let last = self.given.insert((route.to_owned(), token.as_bytes().to_vec()), claims);
        if last.is_some_and(|last| claims - last < 63) {
            return Err(format!("I5: {token:?} was given out twice within 63 claims"));
        }
        if n == 1 { self.ledger.note_hand_out(&notice, route) } else { Ok(()) }
    }

    async fn settle(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Settle { verb, pick, is_stale } => {
                let pool = if *is_stale { &self.spent } else { &self.held };
                if pool.is_empty() {
                    return Ok(());
                }
                let held = pool[usize::from(*pick) % pool.len()].clone();
                self.apply(*verb, &held.route.clone(), vec![held]).await
            }
            Op::SettleAll { verb } => {
                let mut by_route = BTreeMap::<String, Vec<Held>>::new();
                for held in self.held.clone() {
                    by_route.entry(held.route.clone()).or_default().push(held);
                }
                for (route, held) in by_route {
                    self.apply(*verb, &route, held).await?;
                }
                Ok(())
            }
            other => Err(format!("{other:?} settles nothing")),
        }
    }

    async fn apply(&mut self, verb: Verb, route: &str, held: Vec<Held>) -> Result<(), String> {
        let tokens: Vec<Token> = held.iter().map(|held| held.token.clone()).collect();
        let (store, name) = (&self.bench.store, &self.name);
        let lane = Name::new("route", route).expect("a good name");
        let mut expected = Vec::new();
        let verdict = match verb {
            Verb::Backoff(delay) => Some(Verdict::Backoff(ms(delay))),
            Verb::RetryAfter(delay) => Some(Verdict::RetryAfter(ms(delay))),
            Verb::Dead => Some(Verdict::Dead),
            Verb::Review => Some(Verdict::Review),
            _ => None,
        };
        let failing = |verdict| {
            let failing = |held: &Held| Failing {
                token: held.token.clone(),
                verdict,
                failure: Failure::new(Class::Timeout, "too slow"),
                max_failures: 3,
                due_at_ms: held.due_at_ms,
                on_set: held.on_set,
            };
            held.iter().map(failing).collect::<Vec<_>>()
        };
        let answer = match (verb, verdict) {
            (_, Some(verdict)) => store.fail(name, &lane, &failing(verdict)).await,
            (Verb::Ack, _) => store.ack(name, &lane, &tokens).await,
            (Verb::Extend(lease), _) => store.extend(name, &lane, &tokens, ms(lease)).await,
            (Verb::Release, _) => store.release(name, &lane, &tokens).await,
            _ => {
                let answer = store.recheck(name, &lane, &tokens).await.map_err(|error| format!("recheck: {error}"))?;
                let expected = tokens.iter().map(|token| self.model.recheck(route, token.as_bytes())).collect();
                self.note(&answer);
                return same("recheck", &answer, &expected);
            }
        };
        let answer = answer.map_err(|error| format!("{verb:?}: {error}"))?;
        for token in &tokens {
            let token = token.as_bytes();
            expected.push(match (verb, verdict) {
                (_, Some(verdict)) => self.model.fail(route, token, verdict, 3),
                (Verb::Extend(lease), _) => self.model.extend(route, token, lease),
                (Verb::Release, _) => self.model.release(route, token),
                _ => self.model.ack(route, token),
            });
        }
        self.note(&answer);
        same(&format!("{verb:?}"), &answer, &expected)?;
        if !matches!(verb, Verb::Extend(_)) {
            let gone = |held: &mut Held| held.route == route && tokens.contains(&held.token);
            self.spent.extend(self.held.extract_if(.., gone));
        }
        Ok(())
    }

    async fn unpark(&mut self, is_requeue: bool, place: Place, pick: usize) -> Result<(), String> {
        let shelf = if place == Place::Dead { Shelf::Dead } else { Shelf::Review };
        let page = (self.bench.store.parked(&self.name, shelf, &ParkedQuery::default()).await)
            .map_err(|error| format!("parked: {error}"))?;
        let known = self.model.parked.keys().filter(|(at, _, _)| *at == place).count();
        if page.entries.len() != known || page.total != known as u64 {
            return Err(format!("{} of {} parked are listed, {known} are there", page.entries.len(), page.total));
        }
        if page.entries.is_empty() {
            return Ok(());
        }
        let entry = page.entries[pick % page.entries.len()].clone();
        let mut members = self.model.parked.iter().filter(|((at, route, notice), _)| {
            *at == place && *route == entry.route.as_str() && crate::world::is_same(notice, &entry.notice)
        });
        let Some(((_, route, notice), stored)) = members.next().map(|(key, stored)| (key.clone(), stored.clone()))
        else {
            return Err(format!("{entry:?} is parked and should not be"));
        };
        same("the parked payload", &entry.payload, &stored.payload)?;
        same("the parking", &entry.parked_at_ms, &stored.at)?;
        same("the failures", &entry.failures.len(), &((stored.failures + stored.lapses).min(10) as usize))?;
        let (store, name) = (&self.bench.store, &self.name);
        if is_requeue {
            let answer = store.requeue(name, shelf, &[entry]).await.map_err(|error| format!("requeue: {error}"))?;
            let expected = vec![self.model.requeue(place, &route, &notice)];
            self.ledger.note_requeue(&notice, &route);
            self.note(&answer);
            same("requeue", &answer, &expected)
        } else {
            let answer = store.discard(name, shelf, &[entry]).await.map_err(|error| format!("discard: {error}"))?;
            let expected = vec![self.model.discard(place, &route, &notice)];
            same("discard", &answer, &expected)
        }
    }

    async fn change(&mut self, op: &Op) -> Result<(), String> {
        let mut change = Change::default();
        match op {
            Op::Leads { set } => {
                let rules = Rules { leads: LEADS[usize::from(*set)].to_vec(), ..self.model.rules.clone() };
                change = Change::settings(settings(&rules));
                self.model.configure(rules);
                self.ledger.note_leads();
            }
            Op::Route { route: index, reminders, cleanups, only } => {
                let lane = lane(ROUTES[usize::from(*index)], *reminders, *cleanups, *only);
                change.routes = vec![route(&lane)];
                self.model.set_route(lane);
                self.ledger.note_change();
            }
            Op::DropRoute { route } => {
                let name = ROUTES[usize::from(*route)];
                if self.model.lane(name).is_none() || self.model.lanes.len() == 1 {
                    return Ok(());
                }
                change.drop_routes = vec![Name::new("route", name).expect("a good name")];
                self.model.drop_route(name);
                self.ledger.note_change();
                self.sleeping.remove(name);
                self.held.retain(|held| held.route != name);
                self.spent.retain(|spent| spent.route != name);
            }
            Op::Pause { route, reminders, cleanups, paused } => {
                let name = route.map(|index| ROUTES[usize::from(index)]);
                if name.is_some_and(|name| self.model.lane(name).is_none()) {
                    return Ok(());
                }
                let pause = Pause {
                    route: name.map(|name| Name::new("route", name).expect("a good name")),
                    reminders: *reminders,
                    cleanups: *cleanups,
                    paused: *paused,
                };
                self.model.pause(name, *reminders, *cleanups, *paused);
                self.ledger.note_change();
                return self.bench.store.pause(&self.name, &pause).await.map_err(|error| format!("pause: {error}"));
            }
            other => return Err(format!("{other:?} changes nothing")),
        }
        let applied = self.bench.store.configure(&self.name, &change).await;
        applied.map(drop).map_err(|error| format!("configure: {error}"))
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

/// Whether the model and the port mean the same notice.
pub(crate) fn is_same(model: &Notice, port: &forewarn::model::Notice) -> bool {
    let told = (port.kind.to_stored(), port.expires_at_ms, port.id.as_bytes());
    told == (model.kind.text(), model.e.floor(), &model.id[..])
}
