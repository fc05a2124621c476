//! Section `operations`: what each operation costs the server, beside the bare commands.
//!
//! Nothing else is armed meanwhile; how the costs grow with what is armed is the section `growth`.

use std::sync::Arc;

use anyhow::{Result, ensure};
use forewarn::Forewarn;
use forewarn::model::{Mode, Name, Renew, Track};
use forewarn::store::{Renewed, Store};
use futures::future::try_join_all;

use crate::claims::{Kind, Place, Trial};
use crate::pair::{self, Pair, Round};
use crate::rig::{self, Rig};
use crate::table::Targets;
use crate::{Effort, claims};

/// Tasks that renew at the same time, each one deadline after the other.
const CALLERS: usize = 100;

/// Runs the section.
pub(crate) async fn run(effort: Effort, targets: &mut Targets) -> Result<()> {
    let mut rig = Rig::start().await?;
    let mut sets = Sets::new(effort.pick(20_000, 4_000));
    let mut taking = Taking::new(effort.pick(20_000, 4_000));
    for round in effort.rounds() {
        sets.measure(round, &mut rig).await?;
        taking.measure(round, &mut rig).await?;
    }
    let title = format!("Operations: Redis µs for each, rounds: {}, each of {}", effort.count(), sets.count);
    let [by_500, by_100, cleanups] = &taking.trials;
    let Sets { track, track_single, renew_callers, renew, renew_single, remove, .. } = &sets;
    let taken = [&by_500.pair, &by_100.pair, &cleanups.pair, &taking.idle];
    let set = [track, track_single, renew, renew_callers, renew_single, remove];
    pair::print(&title, &[taken.as_slice(), set.as_slice()].concat());
    targets.at_most("claim + ack of reminders, batch 500, Redis CPU", 5.0, by_500.pair.ratio().median(), "x");
    targets.at_most("claim + ack of cleanups, batch 500, Redis CPU", 7.0, cleanups.pair.ratio().median(), "x");
    targets.at_most("renew by 100 callers at once, Redis CPU", 2.5, renew_callers.ratio().median(), "x");
    Ok(())
}

/// Claims and acks.
struct Taking {
    trials: [Trial; 3],
    idle: Pair,
}

impl Taking {
    fn new(count: usize) -> Self {
        let (reminder, cleanup) = (Kind::Reminder, Kind::Cleanup);
        let trials = [
            Trial::new("claim + ack, reminders by 500", "ZRANGEBYSCORE + ZREM by 500", reminder, 500, count),
            Trial::new("claim + ack, reminders by 100", "ZRANGEBYSCORE + ZREM by 100", reminder, 100, count),
            Trial::new("claim + ack, cleanups by 500", "ZRANGEBYSCORE + ZREM by 500", cleanup, 500, count),
        ];
        Self { trials, idle: Pair::new("claim, nothing due", "the same script, nothing due") }
    }

    async fn measure(&mut self, round: Round, rig: &mut Rig) -> Result<()> {
        let mut places = Vec::new();
        for number in 0..self.trials.len() {
            let namespace = rig.namespace(&format!("claims-{number}")).await?;
            places.push(Place { namespace, key: format!("bare-{number}"), first: 0 });
        }
        let mut trials: Vec<_> = self.trials.iter_mut().zip(&places).collect();
        claims::measure(round, rig, &mut trials).await?;
        for Place { namespace, key, .. } in &places {
            rig.bare.delete(key).await?;
            rig.forget(namespace).await?;
        }
        self.measure_idle(round, rig).await
    }

    async fn measure_idle(&mut self, round: Round, rig: &mut Rig) -> Result<()> {
        let namespace = rig.namespace("idle").await?;
        let now = rig.store.now().await?;
        let far = rig::load(0..1_000, now + 3_600_000..now + 7_200_000)?;
        rig::arm(&*rig.store, &namespace, &far).await?;
        let mut bare = rig.bare.clone();
        bare.add("bare", &far, 500).await?;
        let (calls, store, route) = (1_000, rig.store.clone(), rig::route()?);
        let ours = async {
            for _ in 0..calls {
                store.claim(&namespace, &route, 500, rig::LEASE).await?;
            }
            Ok(())
        };
        let plain = async {
            for _ in 0..calls {
                bare.take("bare", now, 500).await?;
            }
            Ok(())
        };
        self.idle.measure(round, &mut rig.meter, calls, plain, ours).await?;
        rig.bare.delete("bare").await?;
        rig.forget(&namespace).await
    }
}

/// Tracks, renewals and removals.
struct Sets {
    count: usize,
    track: Pair,
    track_single: Pair,
    renew: Pair,
    renew_callers: Pair,
    renew_single: Pair,
    remove: Pair,
}

impl Sets {
    fn new(count: usize) -> Self {
        Self {
            count,
            track: Pair::new("track, 500 in a call", "ZADD, 500 pipelined"),
            track_single: Pair::new("track, one by one", "ZADD, one by one"),
            renew: Pair::new("renew, 100 in a call", "ZADD, 100 pipelined"),
            renew_callers: Pair::new("renew, 100 callers at once", "ZADD, 100 pipelined"),
            renew_single: Pair::new("renew, one by one", "ZADD, one by one"),
            remove: Pair::new("remove, 500 in a call", "ZREM, 500 pipelined"),
        }
    }

    async fn measure(&mut self, round: Round, rig: &mut Rig) -> Result<()> {
        let (store, mut bare, count) = (rig.store.clone(), rig.bare.clone(), self.count);
        let (meter, few) = (&mut rig.meter.clone(), count / 10);
        let namespace = rig.namespace("sets").await?;
        let hour = 3_600_000;
        let now = store.now().await?;
        let loads: Vec<Vec<Track>> = (1..=4)
            .map(|hours| rig::load(0..count, now + hours * hour..now + (hours + 1) * hour))
            .collect::<Result<_>>()?;
        let singles = rig::load(count..count + few, now + hour..now + 2 * hour)?;

        let plain = bare.add("bare", &loads[0], 500);
        self.track.measure(round, meter, count, plain, rig::arm(&*store, &namespace, &loads[0])).await?;

        let ours = async {
            for entry in &singles {
                store.track(&namespace, Mode::Create, std::slice::from_ref(entry)).await?;
            }
            Ok(())
        };
        self.track_single.measure(round, meter, few, bare.add("bare", &singles, 1), ours).await?;

        let ours = renew(&*store, &namespace, &loads[1], 100);
        self.renew.measure(round, meter, count, bare.add("bare", &loads[1], 100), ours).await?;

        let gathering: Arc<dyn Store> = store.clone();
        let ours = renew_at_once(&gathering, &namespace, &loads[2]);
        self.renew_callers.measure(round, meter, count, bare.add("bare", &loads[2], 100), ours).await?;

        let ours = renew(&*store, &namespace, &loads[3][..few], 1);
        self.renew_single.measure(round, meter, few, bare.add("bare", &loads[3][..few], 1), ours).await?;

        let ours = rig::disarm(&*store, &namespace, &loads[0]);
        self.remove.measure(round, meter, count, bare.remove("bare", &loads[0], 500), ours).await?;

        rig.bare.delete("bare").await?;
        rig.forget(&namespace).await
    }
}

/// Renews through the store, `batch` in a call.
async fn renew(store: &dyn Store, namespace: &Name, load: &[Track], batch: usize) -> Result<()> {
    for chunk in load.chunks(batch) {
        let entries: Vec<Renew> = chunk
            .iter()
            .map(|Track { id, expires_at, .. }| Renew { id: id.clone(), expires_at: *expires_at, payload: None })
            .collect();
        let renewed = store.renew(namespace, &entries).await?;
        ensure!(renewed.iter().all(|renewed| *renewed == Renewed::Renewed), "a deadline was not renewed");
    }
    Ok(())
}

/// Renews as a program with many users does: each caller one deadline after the other, all callers at once.
pub(crate) async fn renew_at_once(store: &Arc<dyn Store>, namespace: &Name, load: &[Track]) -> Result<()> {
    let sessions = Forewarn::with_store(Arc::clone(store)).namespace(namespace.as_str());
    let each = load.len().div_ceil(CALLERS);
    let callers = load.chunks(each).map(|share| {
        let (sessions, share) = (sessions.clone(), share.to_vec());
        tokio::spawn(async move {
            for Track { id, expires_at, .. } in share {
                let renewed = sessions.renew(id.as_bytes(), expires_at).await?;
                ensure!(renewed == Renewed::Renewed, "a deadline was not renewed: {renewed:?}");
            }
            Ok(())
        })
    });
    try_join_all(callers).await?.into_iter().collect()
}
