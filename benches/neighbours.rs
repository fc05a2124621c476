//! Section `neighbours`: what other clients of the same server feel while a backlog of cleanups drains.
//!
//! A client in a thread of its own reads a key once a millisecond, or as soon as it has its answer, and notes how long each
//! answer takes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Result, anyhow};
use forewarn::store::Store;
use tokio::time::{Instant, sleep};

use crate::Effort;
use crate::figure::{Figure, Waits};
use crate::rig::{self, Rig};
use crate::table::{Table, Targets};
use crate::work::drain_by_worker;

/// Who drains meanwhile.
#[derive(Debug, Clone, Copy)]
enum Drainer {
    Nobody,
    Bare,
    Store(u32),
    Worker { concurrency: usize, batch: u32 },
}

/// All of them, with what the table says of each.
const DRAINERS: [(&str, Drainer); 6] = [
    ("nobody, for a second", Drainer::Nobody),
    ("bare script, by 500", Drainer::Bare),
    ("claim + ack, by 100", Drainer::Store(100)),
    ("claim + ack, by 500", Drainer::Store(500)),
    ("worker, default settings", Drainer::Worker { concurrency: 16, batch: 100 }),
    ("worker, 500 handlers, by 500", Drainer::Worker { concurrency: 500, batch: 500 }),
];

/// Runs the section.
pub(crate) async fn run(effort: Effort, _: &mut Targets) -> Result<()> {
    let (backlog, rounds) = (effort.pick(200_000, 20_000), effort.pick(3, 1));
    let mut rig = Rig::start().await?;
    let mut felt = [(); DRAINERS.len()].map(|()| Felt::default());
    for _ in 0..rounds {
        for ((_, drainer), felt) in DRAINERS.iter().zip(&mut felt) {
            measure(&mut rig, *drainer, backlog, felt).await?;
        }
    }
    let title = format!("Neighbours: GET of another client, µs, while {backlog} cleanups drain, rounds: {rounds}");
    let mut table = Table::new(title, &["who drains", "p50", "p99", "longest", "drained a second"]);
    for ((what, _), Felt { p50, p99, longest, speed }) in DRAINERS.iter().zip(&felt) {
        let [p50, p99, longest, speed] = [p50, p99, longest, speed].map(Figure::to_string);
        table.row([(*what).to_owned(), p50, p99, longest, speed]);
    }
    table.print();
    Ok(())
}

/// What the client felt over the rounds.
#[derive(Debug, Default)]
struct Felt {
    p50: Figure,
    p99: Figure,
    longest: Figure,
    speed: Figure,
}

async fn measure(rig: &mut Rig, drainer: Drainer, backlog: usize, felt: &mut Felt) -> Result<()> {
    let now = rig.store.now().await?;
    let load = rig::load(0..backlog, now - 60_000..now)?;
    let namespace = rig.namespace("neighbours").await?;
    match drainer {
        Drainer::Nobody => {}
        Drainer::Bare => rig.bare.add("bare", &load, 500).await?,
        Drainer::Store(_) | Drainer::Worker { .. } => rig::arm(&*rig.store, &namespace, &load).await?,
    }
    let neighbour = Neighbour::start(rig)?;
    let begun = Instant::now();
    match drainer {
        Drainer::Nobody => sleep(Duration::from_secs(1)).await,
        Drainer::Bare => rig.bare.drain("bare", now, 500, backlog).await?,
        Drainer::Store(batch) => rig::drain(&*rig.store, &namespace, batch, backlog).await?,
        Drainer::Worker { concurrency, batch } => {
            drain_by_worker(rig.store.clone(), &namespace, concurrency, batch, backlog).await?;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let waits = neighbour.stop()?;
    if !matches!(drainer, Drainer::Nobody) {
        felt.speed.add(backlog as f64 / seconds);
    }
    felt.p50.add(waits.percentile(50));
    felt.p99.add(waits.percentile(99));
    felt.longest.add(waits.percentile(100));
    rig.forget(&namespace).await
}

/// A client that has nothing to do with deadlines.
struct Neighbour {
    is_over: Arc<AtomicBool>,
    reading: thread::JoinHandle<Result<Vec<f64>>>,
}

impl Neighbour {
    fn start(rig: &Rig) -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, mut connection) = (Arc::clone(&is_over), rig.server.blocking_connection());
        let reading = thread::Builder::new().name("neighbour".to_owned()).spawn(move || {
            let () = redis::cmd("SET").arg("neighbour").arg("there").query(&mut connection)?;
            let mut waits = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let asked_at = Instant::now();
                let _: String = redis::cmd("GET").arg("neighbour").query(&mut connection)?;
                let wait = asked_at.elapsed();
                waits.push(wait.as_secs_f64() * 1e6);
                #[expect(clippy::disallowed_methods, reason = "a thread of its own, with no runtime to block")]
                thread::sleep(Duration::from_millis(1).saturating_sub(wait));
            }
            Ok(waits)
        })?;
        Ok(Self { is_over, reading })
    }

    fn stop(self) -> Result<Waits> {
        self.is_over.store(true, Ordering::Relaxed);
        let waits = self.reading.join().map_err(|_| anyhow!("the neighbour panicked"))??;
        Ok(Waits::new(waits))
    }
}
