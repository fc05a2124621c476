//! What a piece of work costs the server: CPU of the whole process, time inside scripts, and time by the clock.
//!
//! The CPU is what a user pays: reading the request, running it, writing the reply. It is read before and after, on a
//! connection that is used for nothing else.

use std::time::Duration;

use anyhow::{Context, Result};
use redis::aio::MultiplexedConnection;
use tokio::time::{Instant, sleep};

use crate::figure::Figure;

/// Reads the counters of one server.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    connection: MultiplexedConnection,
}

/// What work cost, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// CPU of the server's process, user and system.
    pub(crate) cpu: f64,
    /// Time inside scripts; inside commands if no script ran.
    pub(crate) inside: f64,
    /// From beginning to end.
    pub(crate) wall: f64,
}

impl Meter {
    pub(crate) fn new(connection: MultiplexedConnection) -> Self {
        Self { connection }
    }

    /// Does the work and answers with its cost.
    pub(crate) async fn measure(&mut self, work: impl Future<Output = Result<()>>) -> Result<Cost> {
        self.settle().await?;
        let () = redis::cmd("CONFIG").arg("RESETSTAT").query_async(&mut self.connection).await?;
        let cpu = self.cpu_us().await?;
        let begun = Instant::now();
        work.await?;
        let wall = begun.elapsed();
        let cpu = self.cpu_us().await? - cpu;
        Ok(Cost { cpu, inside: self.inside_us().await?, wall: wall.as_secs_f64() * 1e6 })
    }

    /// The CPU the server's process has used since it started.
    pub(crate) async fn cpu_us(&mut self) -> Result<f64> {
        let info = self.info("cpu").await?;
        Ok((field(&info, "used_cpu_user")? + field(&info, "used_cpu_sys")?) * 1e6)
    }

    /// The memory the server has handed out.
    pub(crate) async fn memory(&mut self) -> Result<f64> {
        self.settle().await?;
        field(&self.info("memory").await?, "used_memory")
    }

    /// Waits until the server frees nothing in the background any more: it would count as somebody's work.
    async fn settle(&mut self) -> Result<()> {
        while field(&self.info("memory").await?, "lazyfree_pending_objects")? > 0.0 {
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    async fn inside_us(&mut self) -> Result<f64> {
        let info = self.info("commandstats").await?;
        let (mut scripts, mut commands) = (0.0, 0.0);
        for line in info.lines() {
            let Some((name, numbers)) = line.strip_prefix("cmdstat_").and_then(|line| line.split_once(':')) else {
                continue;
            };
            let usec = numbers.split(',').find_map(|number| number.strip_prefix("usec="));
            let usec: f64 = usec.context("no usec in commandstats")?.parse()?;
            match name {
                "eval" | "evalsha" => scripts += usec,
                "info" | "config|resetstat" => {}
                _ => commands += usec,
            }
        }
        Ok(if scripts > 0.0 { scripts } else { commands })
    }

    async fn info(&mut self, section: &str) -> Result<String> {
        Ok(redis::cmd("INFO").arg(section).query_async(&mut self.connection).await?)
    }
}

/// The CPU this process has used since it started, in microseconds; the system counts it in hundredths of a second.
pub(crate) fn own_cpu_us() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("no /proc/self/stat")?;
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields).context("an odd /proc/self/stat")?;
    let ticks = fields.split(' ').skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? * 1e4)
}

fn field(info: &str, name: &str) -> Result<f64> {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(value.with_context(|| format!("the server does not tell {name}"))?.trim().parse()?)
}

/// The costs of one kind of work over the rounds, each divided by what was done.
#[derive(Debug, Clone, Default)]
pub(crate) struct Costs {
    pub(crate) cpu: Figure,
    pub(crate) inside: Figure,
    pub(crate) wall: Figure,
}

impl Costs {
    /// Adds a round that did `count` things.
    pub(crate) fn add(&mut self, cost: Cost, count: usize) {
        let count = count as f64;
        self.cpu.add(cost.cpu / count);
        self.inside.add(cost.inside / count);
        self.wall.add(cost.wall / count);
    }
}
