//! Section `lateness`: how late notices come under a steady load, through a worker with default settings.
//!
//! Beside it a bare loop that takes what is due, asks again at once, and rests for a millisecond when there was nothing.

use std::{collections::HashMap, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use forewarn::model::ExpiresAt;
use forewarn::store::Store;
use tokio::time::{Instant, sleep};

use crate::Effort;
use crate::arrivals::{Due, FineClock, Plan};
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
    let (mut bare, mut ours) = (Lateness::default(), Lateness::default());
    for _ in 0..rounds {
        let due = plan.due(&*rig.store).await?;
        due.arm(&*rig.store, &namespace).await?;
        let usage = Usage::begin(&mut rig).await?;
        let waits = plan.work(Arc::clone(&rig.store) as Arc<dyn Store>, &namespace).await?;
        usage.end(&mut rig, &waits, &mut ours).await?;
        due.disarm(&*rig.store, &namespace).await?;

        let due = due_barely(&mut rig, plan).await?;
        let usage = Usage::begin(&mut rig).await?;
        let waits = take_barely(&mut rig, plan, &due).await?;
        usage.end(&mut rig, &waits, &mut bare).await?;
    }
    let Plan { armed, per_second, seconds } = plan;
    let title = format!("Lateness in ms: {per_second} due a second for {seconds} s, {armed} armed, {rounds} rounds");
    let columns = ["", "p50", "p99", "longest", "Redis CPU for each, µs", "own CPU for each, µs"];
    let mut table = Table::new(title, &columns);
    for (what, Lateness { p50, p99, longest, redis, own }) in [("bare loop", &bare), ("worker", &ours)] {
        let [p50, p99, longest] = [p50, p99, longest].map(Figure::to_string);
        table.row([what.to_owned(), p50, p99, longest, redis.to_string(), own.to_string()]);
    }
    table.print();
    targets.at_most(format!("lateness at {per_second} due a second, p50"), 2.0, ours.p50.median(), "ms");
    targets.at_most(format!("lateness at {per_second} due a second, p99"), 10.0, ours.p99.median(), "ms");
    Ok(())
}

/// Lateness over the rounds, and what it took.
#[derive(Debug, Default)]
struct Lateness {
    p50: Figure,
    p99: Figure,
    longest: Figure,
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

    async fn end(self, rig: &mut Rig, waits: &Waits, lateness: &mut Lateness) -> Result<()> {
        let count = waits.count() as f64;
        lateness.redis.add((rig.meter.cpu_us().await? - self.redis) / count);
        lateness.own.add((own_cpu_us()? - self.own) / count);
        lateness.p50.add(waits.percentile(50));
        lateness.p99.add(waits.percentile(99));
        lateness.longest.add(waits.percentile(100));
        Ok(())
    }
}

/// Adds the same arrivals to the bare ZSET, each with the instant at which it is due; answers with these.
async fn due_barely(rig: &mut Rig, plan: Plan) -> Result<HashMap<Vec<u8>, i64>> {
    let Due { mut reminders, cleanups, .. } = plan.due(&*rig.store).await?;
    for entry in &mut reminders {
        entry.expires_at = ExpiresAt::from_millis(entry.expires_at.as_millis() - rig::LEAD_MS)?;
    }
    reminders.extend(cleanups);
    rig.bare.add("bare", &reminders, 500).await?;
    Ok(reminders.into_iter().map(|entry| (entry.id.as_bytes().to_vec(), entry.expires_at.as_millis())).collect())
}

/// Runs the bare loop until all of it has come.
async fn take_barely(rig: &mut Rig, plan: Plan, due: &HashMap<Vec<u8>, i64>) -> Result<Waits> {
    let (clock, mut waits) = (FineClock::new(), Vec::with_capacity(due.len()));
    let until = Instant::now() + plan.patience();
    while waits.len() < due.len() {
        ensure!(Instant::now() < until, "the bare loop does not keep up");
        let taken = rig.bare.take("bare", forewarn::clock::now_ms(), 500).await?;
        waits.extend(taken.iter().filter_map(|id| Some(clock.since(*due.get(id)?))));
        if taken.is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
    }
    Ok(Waits::new(waits))
}
