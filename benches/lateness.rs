//! Section `lateness`: how late notices come under a steady load, through a worker with default settings.
//!
//! Beside it a bare loop on the same arrivals, which rests for a millisecond whenever nothing is due.

use std::sync::Arc;

use anyhow::Result;
use forewarn::store::Store;

use crate::Effort;
use crate::arrivals::{Lateness, Plan, take_barely};
use crate::figure::{Figure, Waits};
use crate::meter::own_cpu_us;
use crate::rig::{self, Rig};
use crate::table::{Table, Targets};

/// Runs the section.
pub(crate) async fn run(effort: Effort, targets: &mut Targets) -> Result<()> {
    let plan = Plan { armed: effort.pick(200_000, 20_000), per_second: 2_000, seconds: effort.pick(20, 4) };
    let rounds = effort.pick(3, 1);
    let mut rig = Rig::start().await?;
    let namespace = rig.namespace("lateness").await?;
    plan.arm_the_rest(&*rig.store, &namespace).await?;
    let now = rig.store.now().await?;
    rig.bare.add("bare", &rig::load(0..plan.armed, now + 86_400_000..now + 172_800_000)?, 500).await?;
    let (mut bare, mut ours) = (Side::default(), Side::default());
    for _ in 0..rounds {
        let due = plan.due(&*rig.store).await?;
        due.arm(&*rig.store, &namespace).await?;
        let usage = Usage::begin(&mut rig).await?;
        let waits = plan.work(Arc::clone(&rig.store) as Arc<dyn Store>, &namespace).await?;
        usage.end(&mut rig, &waits, &mut ours).await?;
        due.disarm(&*rig.store, &namespace).await?;

        let load = plan.due(&*rig.store).await?.barely()?;
        rig.bare.add("bare", &load, 500).await?;
        let usage = Usage::begin(&mut rig).await?;
        let mut taker = rig.bare.clone();
        let waits = take_barely(plan, &load, async |now_ms| taker.take("bare", now_ms, 500).await).await?;
        usage.end(&mut rig, &waits, &mut bare).await?;
    }
    let Plan { armed, per_second, seconds } = plan;
    let title = format!("Lateness in ms: {per_second} due a second for {seconds} s, {armed} armed, rounds: {rounds}");
    let columns = ["", "p50", "p99", "longest", "Redis CPU for each, µs", "own CPU for each, µs"];
    let mut table = Table::new(title, &columns);
    for (what, Side { lateness: Lateness { p50, p99, longest }, redis, own }) in
        [("bare loop", &bare), ("worker", &ours)]
    {
        let [p50, p99, longest] = [p50, p99, longest].map(Figure::to_string);
        table.row([what.to_owned(), p50, p99, longest, redis.to_string(), own.to_string()]);
    }
    table.print();
    targets.at_most(format!("lateness at {per_second} due a second, p50"), 2.0, ours.lateness.p50.median(), "ms");
    targets.at_most(format!("lateness at {per_second} due a second, p99"), 10.0, ours.lateness.p99.median(), "ms");
    Ok(())
}

/// Lateness, and what it took.
#[derive(Debug, Default)]
struct Side {
    lateness: Lateness,
    redis: Figure,
    own: Figure,
}

/// CPU at the beginning of a round.
struct Usage {
    redis: f64,
    own: f64,
}

impl Usage {
    async fn begin(rig: &mut Rig) -> Result<Self> {
        Ok(Self { redis: rig.meter.cpu_us().await?, own: own_cpu_us()? })
    }

    async fn end(self, rig: &mut Rig, waits: &Waits, side: &mut Side) -> Result<()> {
        let count = waits.count() as f64;
        side.redis.add((rig.meter.cpu_us().await? - self.redis) / count);
        side.own.add((own_cpu_us()? - self.own) / count);
        side.lateness.add(waits);
        Ok(())
    }
}
