//! A rolling deploy between two sets of leads, while deadlines pass under virtual time: no reminder is lost or doubled.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use forewarn::{
    ExpiresAt, Forewarn, Id, Kind, Mode, Name,
    config::{Config, Effect, apply},
    model::Track,
    store::{
        Store,
        redis::{RedisOptions, RedisStore},
        sqlite::{SqliteOptions, SqliteStore},
    },
};

use crate::harness::{Server, servers};
use crate::stage::{Stage, config};

const START: i64 = 1_000_000_000_000;
const MINUTE: i64 = 60_000;
/// How far the clock goes between two looks of the worker.
const STEP: i64 = 10_000;

/// A store of some kind under a clock of the test's, and what has been said so far.
struct Fleet {
    forewarn: Forewarn,
    namespace: Name,
    clock: Arc<AtomicI64>,
    /// How often each lead (in ms) spoke for each expiry (in ms after the beginning).
    said: BTreeMap<(i64, i64), u32>,
}

impl Fleet {
    async fn all(stage: &Stage) -> Vec<Self> {
        let mut stores: Vec<(Arc<dyn Store>, Arc<AtomicI64>)> = Vec::new();
        for kind in servers() {
            let clock = Arc::new(AtomicI64::new(START));
            let options = RedisOptions { manual_clock: Some(Arc::clone(&clock)), ..RedisOptions::default() };
            stores.push((Arc::new(RedisStore::open(&Server::shared(kind).url(), options).await.unwrap()), clock));
        }
        let clock = Arc::new(AtomicI64::new(START));
        let options = SqliteOptions { manual_clock: Some(Arc::clone(&clock)), ..SqliteOptions::default() };
        stores.push((Arc::new(SqliteStore::open(stage.path("forewarn.db"), options).await.unwrap()), clock));
        let fleet = |(store, clock)| Self {
            forewarn: Forewarn::with_store(store),
            namespace: Name::new("namespace", crate::harness::namespace()).unwrap(),
            clock,
            said: BTreeMap::new(),
        };
        stores.into_iter().map(fleet).collect()
    }

    /// A configuration of this fleet's namespace.
    fn config(&self, head: &str, leads: &str) -> Config {
        config(&format!("{head}\n[namespace.{}]\ncleanup = false\nremind = {leads}", self.namespace))
    }

    async fn apply(&self, config: &Config) -> Effect {
        let mut done = apply(&self.forewarn, config).await;
        done.remove(0).result.unwrap()
    }

    /// Tracks deadlines that expire one after the other, every seven seconds, over 40 minutes.
    async fn track(&self) -> Vec<i64> {
        let expiries: Vec<i64> = (1..340).map(|number| number * 7_000).collect();
        let entries: Vec<Track> = expiries
            .iter()
            .map(|&at| Track {
                id: Id::new(at.to_string()).unwrap(),
                expires_at: ExpiresAt::from_millis(START + at).unwrap(),
                payload: None,
            })
            .collect();
        self.forewarn.store().track(&self.namespace, Mode::Upsert, &entries).await.unwrap();
        expiries
    }

    fn set_clock(&self, at: i64) {
        self.clock.store(START + at, Ordering::SeqCst);
    }

    /// Handles all that is due.
    async fn work(&mut self) {
        let (store, route) = (self.forewarn.store(), Name::new("route", "main").unwrap());
        loop {
            let claimed = store.claim(&self.namespace, &route, 100, Duration::from_secs(60)).await.unwrap().claims;
            if claimed.is_empty() {
                return;
            }
            for claim in &claimed {
                let Kind::Reminder(lead) = claim.notice.kind else { panic!("{claim:?}") };
                let key = (lead.as_millis(), claim.notice.expires_at_ms - START);
                *self.said.entry(key).or_default() += 1;
            }
            let tokens: Vec<_> = claimed.into_iter().map(|claim| claim.token).collect();
            store.ack(&self.namespace, &route, &tokens).await.unwrap();
        }
    }

    fn count(&self, lead: i64, expires_at: i64) -> u32 {
        self.said.get(&(lead, expires_at)).copied().unwrap_or(0)
    }
}

#[tokio::test]
async fn a_rolling_deploy_between_two_sets_of_leads_loses_no_reminder() {
    // Between two looks of the worker, so that some have crossed a lead and nobody has seen it yet.
    const DEPLOY: i64 = 20 * MINUTE + STEP / 2;
    let stage = Stage::new();
    for mut fleet in Fleet::all(&stage).await {
        let old = fleet.config("revision = 1", "[\"10m\", \"1m\"]");
        let new = fleet.config("revision = 2", "[\"15m\", \"10m\", \"30s\"]");
        assert_eq!(fleet.apply(&old).await, Effect::Created);
        let expiries = fleet.track().await;
        for at in (0..=41 * MINUTE).step_by(usize::try_from(STEP).unwrap()) {
            if (at - STEP..at).contains(&DEPLOY) {
                fleet.set_clock(DEPLOY);
                assert_eq!(fleet.apply(&new).await, Effect::Changed);
            }
            if at == 22 * MINUTE {
                // An old daemon that starts once more during the deploy.
                assert_eq!(fleet.apply(&old).await, Effect::Outranked { in_force: 2, given: 1 });
            }
            fleet.set_clock(at);
            fleet.work().await;
        }
        for e in expiries {
            let crosses = |lead: i64| e - lead;
            let both = 10 * MINUTE;
            assert_eq!(fleet.count(both, e), u32::from(crosses(both) > 0), "10m of {e}");
            if crosses(MINUTE) <= 20 * MINUTE {
                assert_eq!(fleet.count(MINUTE, e), u32::from(crosses(MINUTE) > 0), "1m of {e}, before");
            } else if crosses(MINUTE) > DEPLOY {
                assert_eq!(fleet.count(MINUTE, e), 0, "1m of {e}, after");
            }
            for lead in [15 * MINUTE, MINUTE / 2] {
                match crosses(lead) > DEPLOY {
                    true => assert_eq!(fleet.count(lead, e), 1, "{lead} of {e}"),
                    false => assert!(fleet.count(lead, e) <= 1, "{lead} of {e}"),
                }
            }
        }
        assert!(fleet.said.values().all(|count| *count == 1), "{:?}", fleet.said);
    }
}

#[tokio::test]
async fn two_daemons_with_different_files_keep_the_lead_they_share() {
    let stage = Stage::new();
    for mut fleet in Fleet::all(&stage).await {
        let files = [fleet.config("", "[\"10m\", \"1m\"]"), fleet.config("", "[\"15m\", \"10m\", \"30s\"]")];
        fleet.apply(&files[0]).await;
        let expiries = fleet.track().await;
        for (look, at) in (0..=41 * MINUTE).step_by(usize::try_from(STEP).unwrap()).enumerate() {
            if look % 3 == 1 {
                fleet.set_clock(at - STEP / 2);
                fleet.apply(&files[(look / 3 + 1) % 2]).await;
            }
            fleet.set_clock(at);
            fleet.work().await;
        }
        for e in expiries {
            assert_eq!(fleet.count(10 * MINUTE, e), u32::from(e > 10 * MINUTE), "10m of {e}");
        }
    }
}
