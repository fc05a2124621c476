//! Section `embedded`: the store in a file, beside bare statements on a table, and beside the store on a server.
//!
//! All of it through the same calls, on the same machine, in the same run. The file is where temporary files are; how fast
//! that disk confirms a write decides what a call that stands alone can do.

use std::sync::Arc;

use anyhow::{Context, Result};
use forewarn::model::{Mode, Name, Track};
use forewarn::store::Store;
use forewarn::store::sqlite::{SqliteOptions, SqliteStore};
use tokio::task::block_in_place;
use tokio::time::Instant;

use crate::Effort;
use crate::arrivals::{Lateness, Plan, take_barely};
use crate::bare_file::{BareFile, bytes_on_disk};
use crate::figure::{Figure, short};
use crate::operations::renew_at_once;
use crate::rig::{self, Rig};
use crate::table::{Table, Targets, say};
use crate::work::drain_by_worker;

/// Runs the section.
pub(crate) async fn run(effort: Effort, targets: &mut Targets) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("forewarn.db");
    let mut sides = Sides {
        file: Arc::new(SqliteStore::open(&path, SqliteOptions::default()).await?),
        rig: Rig::start().await?,
        bare: BareFile::create(&directory.path().join("bare.db"))?,
    };
    let armed = effort.pick(200_000, 20_000);
    let plan = Plan { armed, per_second: 500, seconds: effort.pick(20, 4) };
    let namespace = sides.arm(plan).await?;
    let bytes = [path, directory.path().join("bare.db")].map(|path| block_in_place(|| bytes_on_disk(&path)));
    let [bytes, bare_bytes] = bytes.map(|bytes| bytes.map(|bytes| bytes as f64 / armed as f64));
    let (bytes, bare_bytes) = (bytes?, bare_bytes?);

    let mut rates = Rates::default();
    let count = effort.pick(20_000, 4_000);
    let rounds = effort.pick(3, 1);
    // The first warms up.
    for round in 0..=rounds {
        let measured = sides.measure(&namespace, armed, count).await?;
        if round > 0 {
            rates.add(measured);
        }
    }
    rates.print(rounds, armed);
    targets.at_least("embedded: tracks by 500 a second", 10_000.0, rates.file[TRACK].median(), "");
    targets.at_least("embedded: notices a second, worker", 5_000.0, rates.file[WORK].median(), "");

    let lateness = sides.lateness(plan, &namespace, rounds).await?;
    let title = format!(
        "Embedded: lateness in ms, {} due a second for {} s, {armed} armed, rounds: {rounds}",
        plan.per_second, plan.seconds
    );
    let mut table = Table::new(title, &["", "p50", "p99", "longest"]);
    for (what, Lateness { p50, p99, longest }) in ["bare loop on a table", "file", "server"].iter().zip(&lateness) {
        let [p50, p99, longest] = [p50, p99, longest].map(Figure::to_string);
        table.row([(*what).to_owned(), p50, p99, longest]);
    }
    table.print();
    targets.at_most("embedded: lateness at 500 due a second, p99", 25.0, lateness[1].p99.median(), "ms");
    say(format!(
        "\nBytes on disk for each of {armed} armed: {}; a bare table with an index: {}.",
        short(bytes),
        short(bare_bytes)
    ));
    Ok(())
}

/// The store in a file, the one on a server, and the bare table.
struct Sides {
    file: Arc<SqliteStore>,
    rig: Rig,
    bare: BareFile,
}

impl Sides {
    async fn arm(&mut self, plan: Plan) -> Result<Name> {
        let mut namespace = None;
        for store in [&*self.file as &dyn Store, &*self.rig.store] {
            let name = rig::namespace(store, "embedded").await?;
            plan.arm_the_rest(store, &name).await?;
            namespace = Some(name);
        }
        let now = self.file.now().await?;
        let far = rig::load(0..plan.armed, now + 86_400_000..now + 172_800_000)?;
        block_in_place(|| self.bare.add(&far, 500))?;
        namespace.context("no store")
    }

    /// One round: on the bare table, the file and the server.
    async fn measure(&mut self, namespace: &Name, armed: usize, count: usize) -> Result<[Speeds; 3]> {
        let now = self.file.now().await?;
        let far = rig::load(armed..armed + count, now + 86_400_000..now + 172_800_000)?;
        let single = rig::load(armed + count..armed + count + 200, now + 86_400_000..now + 172_800_000)?;
        let expired = rig::load(armed..armed + count, now - 60_000..now)?;
        let bare = block_in_place(|| -> Result<Speeds> {
            let track = speed(count, || self.bare.add(&far, 500))?;
            let track_single = speed(single.len(), || self.bare.add(&single, 1))?;
            self.bare.add(&expired, 500)?;
            let drain = speed(count, || self.bare.drain(now, 500, count))?;
            Ok([track, track_single, f64::NAN, drain, f64::NAN])
        })?;
        let file = measure(self.file.clone(), namespace, &far, &single, &expired).await?;
        let server = measure(self.rig.store.clone(), namespace, &far, &single, &expired).await?;
        Ok([bare, file, server])
    }

    /// How late notices come: by a bare loop on the table, by a worker on the file, by one on the server.
    async fn lateness(&mut self, plan: Plan, namespace: &Name, rounds: usize) -> Result<[Lateness; 3]> {
        let [mut bare, mut file, mut server] = [(); 3].map(|()| Lateness::default());
        for _ in 0..rounds {
            let load = plan.due(&*self.file).await?.barely()?;
            block_in_place(|| self.bare.add(&load, 500))?;
            let take = async |now_ms| block_in_place(|| self.bare.take(now_ms, 500));
            bare.add(&take_barely(plan, &load, take).await?);
            let (on_file, on_server) = (self.file.clone() as Arc<dyn Store>, self.rig.store.clone());
            for (store, lateness) in [(on_file, &mut file), (on_server, &mut server)] {
                let due = plan.due(&*store).await?;
                due.arm(&*store, namespace).await?;
                lateness.add(&plan.work(Arc::clone(&store), namespace).await?);
                due.disarm(&*store, namespace).await?;
            }
        }
        Ok([bare, file, server])
    }
}

async fn measure(
    store: Arc<dyn Store>,
    namespace: &Name,
    far: &[Track],
    single: &[Track],
    expired: &[Track],
) -> Result<Speeds> {
    let count = far.len();
    let begun = Instant::now();
    rig::arm(&*store, namespace, far).await?;
    let track = per_second(count, begun);

    let begun = Instant::now();
    for entry in single {
        store.track(namespace, Mode::Create, std::slice::from_ref(entry)).await?;
    }
    let track_single = per_second(single.len(), begun);

    let later: Vec<Track> = far
        .iter()
        .map(|entry| Ok(Track { expires_at: rig::later(entry.expires_at)?, ..entry.clone() }))
        .collect::<Result<_>>()?;
    let begun = Instant::now();
    renew_at_once(&store, namespace, &later).await?;
    let renew = per_second(count, begun);
    rig::disarm(&*store, namespace, far).await?;
    rig::disarm(&*store, namespace, single).await?;

    rig::arm(&*store, namespace, expired).await?;
    let begun = Instant::now();
    rig::drain(&*store, namespace, 500, count).await?;
    let drain = per_second(count, begun);

    rig::arm(&*store, namespace, expired).await?;
    let begun = Instant::now();
    drain_by_worker(store, namespace, 16, 100, count).await?;
    let work = per_second(count, begun);
    Ok([track, track_single, renew, drain, work])
}

fn speed(count: usize, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begun = Instant::now();
    work()?;
    Ok(per_second(count, begun))
}

fn per_second(count: usize, begun: Instant) -> f64 {
    count as f64 / begun.elapsed().as_secs_f64()
}

/// What is measured, in the order of the table.
const OPERATIONS: [&str; 5] = [
    "track, 500 in a call",
    "track, one by one",
    "renew, 100 callers at once",
    "claim + ack, cleanups by 500",
    "notices through a worker, default settings",
];
const TRACK: usize = 0;
const WORK: usize = 4;

/// How many of each a second, in one round; no number for what a side cannot do.
type Speeds = [f64; OPERATIONS.len()];

/// The same over the rounds.
#[derive(Debug, Default)]
struct Rates {
    bare: [Figure; OPERATIONS.len()],
    file: [Figure; OPERATIONS.len()],
    server: [Figure; OPERATIONS.len()],
}

impl Rates {
    fn add(&mut self, speeds: [Speeds; 3]) {
        for (rates, speeds) in [&mut self.bare, &mut self.file, &mut self.server].into_iter().zip(speeds) {
            rates.iter_mut().zip(speeds).for_each(|(rate, speed)| rate.add(speed));
        }
    }

    fn print(&self, rounds: usize, armed: usize) {
        let title = format!("Embedded: how many a second, {armed} armed, rounds: {rounds}");
        let mut table = Table::new(title, &["operation", "bare table", "file", "server"]);
        for (place, what) in OPERATIONS.iter().enumerate() {
            let [bare, file, server] = [&self.bare, &self.file, &self.server].map(|rates| rates[place].to_string());
            table.row([(*what).to_owned(), bare, file, server]);
        }
        table.print();
    }
}
