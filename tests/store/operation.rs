//! What can happen to a namespace, and histories of it: short times around the leads, few ids, much of everything.

use forewarn::model::{Late, Mode};
use proptest::{collection::vec, option, prelude::*, sample::select};

use crate::model::Place;
use crate::words::Keyed;

/// Ids whose bytes sort differently in other locales, some the beginning of others.
pub(crate) const IDS: [&[u8]; 11] = [b"a", b"a ", b"a:B", b"B", b"_", b"-", b"~", b"~~", b"\xE9", b"\xFF", b"\xFF\xFF"];

/// The names of the routes a history may have.
pub(crate) const ROUTES: [&str; 3] = ["main", "mail", "audit"];

/// Sets of lead times to change between.
pub(crate) const LEADS: [&[i64]; 7] = [&[4, 10], &[10], &[4], &[4, 7, 10], &[7], &[], &[3, 10, 25]];

/// The instant at which every history begins.
pub(crate) const START: i64 = 1_000_000_000_000;

/// How much later those of key-backed ids begin: in 2096, so that the server itself expires no key.
pub(crate) const FAR: i64 = 3_000_000_000_000;

/// The clock tolerance of every history.
pub(crate) const TOLERANCE: i64 = 5;

/// One thing that happens. Times are relative to the clock at that moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    Track {
        mode: Mode,
        id: u8,
        ttl: i64,
        payload: Option<u8>,
    },
    /// One call with several entries; an id may come twice.
    TrackMany {
        mode: Mode,
        entries: Vec<(u8, i64)>,
    },
    /// Tracks an id with the very expiry it has.
    TrackSame {
        mode: Mode,
        id: u8,
    },
    Replace {
        mode: Mode,
        new: u8,
        old: u8,
        ttl: i64,
        payload: Option<u8>,
    },
    Renew {
        id: u8,
        ttl: i64,
        payload: Option<u8>,
    },
    RenewMany {
        entries: Vec<(u8, i64)>,
    },
    Remove {
        id: u8,
    },
    Expire {
        id: u8,
    },
    RawSet {
        id: u8,
        ttl: i64,
    },
    /// A raw client writes this very score.
    RawScore {
        id: u8,
        score: f64,
    },
    RawRemove {
        id: u8,
    },
    Every {
        id: u8,
        period: i64,
    },
    Claim {
        route: u8,
        limit: u32,
        lease: i64,
    },
    Settle {
        verb: Verb,
        pick: u8,
        is_stale: bool,
    },
    SettleAll {
        verb: Verb,
    },
    /// The workers forget what they hold.
    Crash,
    Forward {
        ms: i64,
    },
    Back {
        ms: i64,
    },
    Leads {
        set: u8,
    },
    Route {
        route: u8,
        reminders: bool,
        cleanups: bool,
        only: Option<i64>,
    },
    DropRoute {
        route: u8,
    },
    Pause {
        route: Option<u8>,
        reminders: bool,
        cleanups: bool,
        paused: bool,
    },
    /// The owner of a key writes it; without an expiry where none is given.
    KeySet {
        id: u8,
        ttl: Option<i64>,
    },
    KeyDelete {
        id: u8,
    },
    /// The owner writes the key and, as a raw client, its deadline.
    KeyArm {
        id: u8,
        ttl: i64,
    },
    /// The owner does so with the first keys, one as the other.
    KeyFew {
        ttl: i64,
        arms: bool,
    },
    /// A raw client writes the very expiry of the key.
    RawTrue {
        id: u8,
    },
    Resync,
    Requeue {
        place: Place,
        pick: u8,
    },
    Discard {
        place: Place,
        pick: u8,
    },
}

/// What is done with a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verb {
    Ack,
    Backoff(i64),
    RetryAfter(i64),
    Dead,
    Review,
    Extend(i64),
    Release,
    Recheck,
}

/// The settings and routes a history begins with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    pub(crate) late: Late,
    pub(crate) grace: i64,
    pub(crate) delivers: bool,
    pub(crate) min_repeat: Option<i64>,
    pub(crate) shards: u16,
    pub(crate) leads: u8,
    pub(crate) cleanup: bool,
    pub(crate) max_deliveries: u32,
    /// (reminders, cleanups, only this lead) of `main` and `mail`.
    pub(crate) routes: Vec<(bool, bool, Option<i64>)>,
    pub(crate) keyed: Option<Keyed>,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            late: Late::Crossing,
            grace: 0,
            delivers: false,
            min_repeat: None,
            shards: 1,
            leads: 0,
            cleanup: true,
            max_deliveries: 10,
            routes: vec![(true, true, None)],
            keyed: None,
        }
    }
}

impl Case {
    /// The instant at which its histories begin.
    pub(crate) fn begins_at(&self) -> i64 {
        if self.keyed.is_some() { START + FAR } else { START }
    }
}

/// What a kind of history contains beside the ordinary.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mix {
    /// The clock steps back.
    pub(crate) back: bool,
    /// Leads, routes and pauses change.
    pub(crate) changes: bool,
    /// Raw clients write.
    pub(crate) raw: bool,
    /// Raw clients write what is no expiry in whole milliseconds.
    pub(crate) odd: bool,
    /// The ids are keys, whose owner writes them.
    pub(crate) keys: bool,
    /// Commands act on the keys, too.
    pub(crate) manages: bool,
}

pub(crate) fn cases(mix: Mix) -> impl Strategy<Value = Case> {
    let routes = prop_oneof![
        3 => Just(vec![(true, true, None)]),
        2 => Just(vec![(true, true, None), (true, true, None)]),
        1 => Just(vec![(true, false, None), (false, true, None)]),
        1 => Just(vec![(true, true, None), (true, false, Some(4))]),
    ];
    let late = prop_oneof![3 => Just(Late::Crossing), 1 => Just(Late::Skip), 1 => Just(Late::Fire)];
    let min_repeat = prop_oneof![2 => Just(None), 1 => Just(Some(0)), 1 => Just(Some(6)), 1 => Just(Some(30))];
    let shards = prop_oneof![4 => Just(1), 1 => Just(3)];
    let leads = prop_oneof![6 => Just(0u8), 1 => Just(1), 1 => Just(3), 1 => Just(6)];
    let cleanup = prop_oneof![9 => Just(true), 1 => Just(false)];
    let keyed = (prop::bool::weighted(0.2), prop::bool::weighted(0.3))
        .prop_map(move |(drops, has_pattern)| mix.keys.then_some(Keyed { manages: mix.manages, drops, has_pattern }));
    let rest = (cleanup, select(vec![2, 3, 10]), routes, keyed);
    (late, select(vec![0, 0, 3]), any::<bool>(), min_repeat, shards, leads, rest).prop_map(
        |(late, grace, delivers, min_repeat, shards, leads, (cleanup, max_deliveries, routes, keyed))| Case {
            late,
            grace,
            delivers,
            min_repeat,
            shards,
            leads,
            cleanup,
            max_deliveries,
            routes,
            keyed,
        },
    )
}

pub(crate) fn histories(mix: Mix) -> impl Strategy<Value = (Case, Vec<Op>)> {
    (cases(mix), vec(ops(mix), 1..60))
}

fn id() -> impl Strategy<Value = u8> {
    prop_oneof![1 => 0u8..3, 1 => 0u8..11]
}

fn ttl() -> impl Strategy<Value = i64> {
    prop_oneof![12 => 1i64..15, 2 => -3i64..2, 2 => 14i64..40]
}

fn payload() -> impl Strategy<Value = Option<u8>> {
    option::weighted(0.3, any::<u8>())
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![5 => Just(Mode::Upsert), 1 => Just(Mode::Create), 1 => Just(Mode::ExtendOnly)]
}

fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        5 => Just(Verb::Ack),
        2 => (0i64..8).prop_map(Verb::Backoff),
        2 => (0i64..8).prop_map(Verb::RetryAfter),
        1 => Just(Verb::Dead),
        1 => Just(Verb::Review),
        2 => (1i64..8).prop_map(Verb::Extend),
        2 => Just(Verb::Release),
        2 => Just(Verb::Recheck),
    ]
}

fn place() -> impl Strategy<Value = Place> {
    select(vec![Place::Dead, Place::Review])
}

/// Scores that are no expiry in whole milliseconds, and some that are.
fn odd_score() -> impl Strategy<Value = f64> {
    let near = (-3i64..15).prop_map(|ttl| (START + ttl) as f64);
    let fraction = (-3i64..15, select(vec![0.25, 0.5, 0.75])).prop_map(|(ttl, part)| (START + ttl) as f64 + part);
    let strange = select(vec![
        0.0,
        -0.0,
        -1.0,
        -1e12,
        f64::NEG_INFINITY,
        f64::INFINITY,
        1.5,
        1e9,
        1e11 - 1.0,
        1e11,
        1e14,
        1e14 + 1.0,
        1e15,
        1e18,
    ]);
    prop_oneof![2 => near, 3 => fraction, 3 => strange]
}

fn commands() -> Vec<(u32, BoxedStrategy<Op>)> {
    let entries = || vec((id(), ttl()), 1..5);
    vec![
        (
            14,
            (mode(), id(), ttl(), payload())
                .prop_map(|(mode, id, ttl, payload)| Op::Track { mode, id, ttl, payload })
                .boxed(),
        ),
        (4, (mode(), entries()).prop_map(|(mode, entries)| Op::TrackMany { mode, entries }).boxed()),
        (2, (mode(), id()).prop_map(|(mode, id)| Op::TrackSame { mode, id }).boxed()),
        (
            2,
            (mode(), id(), id(), ttl(), payload())
                .prop_map(|(mode, new, old, ttl, payload)| Op::Replace { mode, new, old, ttl, payload })
                .boxed(),
        ),
        (12, (id(), ttl(), payload()).prop_map(|(id, ttl, payload)| Op::Renew { id, ttl, payload }).boxed()),
        (3, entries().prop_map(|entries| Op::RenewMany { entries }).boxed()),
        (4, id().prop_map(|id| Op::Remove { id }).boxed()),
        (4, id().prop_map(|id| Op::Expire { id }).boxed()),
    ]
}

fn ops(mix: Mix) -> BoxedStrategy<Op> {
    let limit = prop_oneof![2 => Just(1u32), 2 => Just(3), 4 => Just(100), 1 => Just(0)];
    let mut choices: Vec<(u32, BoxedStrategy<Op>)> = vec![
        (26, (0u8..3, limit, 1i64..10).prop_map(|(route, limit, lease)| Op::Claim { route, limit, lease }).boxed()),
        (
            14,
            (verb(), any::<u8>(), prop::bool::weighted(0.2))
                .prop_map(|(verb, pick, is_stale)| Op::Settle { verb, pick, is_stale })
                .boxed(),
        ),
        (5, verb().prop_map(|verb| Op::SettleAll { verb }).boxed()),
        (2, Just(Op::Crash).boxed()),
        (22, (0i64..14).prop_map(|ms| Op::Forward { ms }).boxed()),
        (1, (900i64..1200).prop_map(|ms| Op::Forward { ms }).boxed()),
        (2, (place(), any::<u8>()).prop_map(|(place, pick)| Op::Requeue { place, pick }).boxed()),
        (1, (place(), any::<u8>()).prop_map(|(place, pick)| Op::Discard { place, pick }).boxed()),
    ];
    if !mix.keys || mix.manages {
        choices.extend(commands());
    }
    if !mix.keys {
        choices.push((2, (id(), 1i64..25).prop_map(|(id, period)| Op::Every { id, period }).boxed()));
    }
    if mix.keys {
        choices.push((16, (id(), ttl()).prop_map(|(id, ttl)| Op::KeyArm { id, ttl }).boxed()));
        let ttl_or_none = prop_oneof![8 => ttl().prop_map(Some), 1 => Just(None)];
        choices.push((22, (id(), ttl_or_none).prop_map(|(id, ttl)| Op::KeySet { id, ttl }).boxed()));
        choices.push((6, (ttl(), any::<bool>()).prop_map(|(ttl, arms)| Op::KeyFew { ttl, arms }).boxed()));
        choices.push((6, id().prop_map(|id| Op::KeyDelete { id }).boxed()));
        choices.push((4, id().prop_map(|id| Op::RawTrue { id }).boxed()));
        choices.push((6, Just(Op::Resync).boxed()));
    }
    if mix.raw {
        choices.push((10, (id(), ttl()).prop_map(|(id, ttl)| Op::RawSet { id, ttl }).boxed()));
        choices.push((4, id().prop_map(|id| Op::RawRemove { id }).boxed()));
    }
    if mix.odd {
        choices.push((20, (id(), odd_score()).prop_map(|(id, score)| Op::RawScore { id, score }).boxed()));
    }
    if mix.back {
        choices.push((14, (1i64..30).prop_map(|ms| Op::Back { ms }).boxed()));
    }
    if mix.changes {
        let flag = any::<bool>;
        choices.push((4, (0..LEADS.len() as u8).prop_map(|set| Op::Leads { set }).boxed()));
        choices.push((
            3,
            (0u8..3, flag(), flag(), option::weighted(0.2, Just(10)))
                .prop_map(|(route, reminders, cleanups, only)| Op::Route { route, reminders, cleanups, only })
                .boxed(),
        ));
        choices.push((2, (0u8..3).prop_map(|route| Op::DropRoute { route }).boxed()));
        choices.push((
            7,
            (option::of(0u8..3), flag(), flag(), flag())
                .prop_map(|(route, reminders, cleanups, paused)| Op::Pause { route, reminders, cleanups, paused })
                .boxed(),
        ));
    }
    proptest::strategy::Union::new_weighted(choices).boxed()
}
