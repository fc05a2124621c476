//! Section `idle`: what a worker asks of the server while nothing is due, beside a bare loop that looks once a second.
//!
//! What it sends is told apart from what its scripts do inside by listening in. The CPU is taken in a second stretch, with
//! nobody listening.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Result;
use forewarn::Worker;
use forewarn::store::Store as _;
use futures::StreamExt;
use tokio::time::{interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::Effort;
use crate::figure::short;
use crate::rig::{self, Rig};
use crate::table::{Table, Targets};

/// Runs the section.
pub(crate) async fn run(effort: Effort, targets: &mut Targets) -> Result<()> {
    let (armed, length) = (effort.pick(200_000, 20_000), Duration::from_secs(effort.pick(20, 5)));
    let mut rig = Rig::start().await?;
    let namespace = rig.namespace("idle").await?;
    let now = rig.store.now().await?;
    let far = rig::load(0..armed, now + 86_400_000..now + 172_800_000)?;
    rig::arm(&*rig.store, &namespace, &far).await?;
    rig.bare.add("bare", &far, 500).await?;

    let nobody = listen(&mut rig, length).await?;
    let mut bare = rig.bare.clone();
    let looking = tokio::spawn(async move {
        let mut ticks = interval(Duration::from_secs(1));
        loop {
            ticks.tick().await;
            bare.take("bare", forewarn::clock::now_ms(), 500).await?;
        }
        #[expect(unreachable_code, reason = "it says what the loop fails with")]
        anyhow::Ok(())
    });
    let bare = listen(&mut rig, length).await?;
    looking.abort();

    let (started, stop) = (Arc::new(tokio::sync::Notify::new()), CancellationToken::new());
    let (tell, stopped) = (Arc::clone(&started), stop.clone().cancelled_owned());
    let worker = Worker::builder(&rig.face(&namespace))
        .on_reminder(|_| async {})
        .on_cleanup(|_| async {})
        .observer(move |_| tell.notify_one());
    let working = tokio::spawn(worker.run(stopped));
    started.notified().await;
    let ours = listen(&mut rig, length).await?;
    stop.cancel();
    working.await??;

    let title = format!("Idle: each second of {} s, {armed} armed and nothing due", length.as_secs());
    let mut table = Table::new(title, &["", "sent", "inside scripts", "Redis CPU, ms", "what is sent"]);
    for (what, heard) in [("nobody", &nobody), ("bare loop, once a second", &bare), ("worker", &ours)] {
        let Heard { sent, inside, cpu_ms, names } = heard;
        table.row([what.to_owned(), short(*sent), short(*inside), short(*cpu_ms), names.clone()]);
    }
    table.print();
    targets.at_most("commands of an idle worker a second", 3.0, ours.sent, "");
    Ok(())
}

/// What went on in a stretch of time, each second.
struct Heard {
    sent: f64,
    inside: f64,
    cpu_ms: f64,
    names: String,
}

async fn listen(rig: &mut Rig, length: Duration) -> Result<Heard> {
    let seconds = length.as_secs_f64();
    let mut monitor = redis::Client::open(rig.server.owner_url())?.get_async_monitor().await?;
    let (mut sent, mut inside, mut names) = (0_u32, 0_u32, BTreeMap::<String, u32>::new());
    let listening = async {
        let mut lines = monitor.on_message::<String>();
        while let Some(line) = lines.next().await {
            // As in: 1796083200.000000 [0 lua] "zcount" "…"
            let Some((source, command)) = line.split_once("] ") else { continue };
            if source.ends_with(" lua") {
                inside += 1;
                continue;
            }
            sent += 1;
            let name = command.split('"').nth(1).unwrap_or_default().to_uppercase();
            *names.entry(name).or_default() += 1;
        }
    };
    // It ends with its time, never by itself.
    timeout(length, listening).await.err();
    drop(monitor);
    let cpu = rig.meter.cpu_us().await?;
    sleep(length).await;
    let cpu_ms = (rig.meter.cpu_us().await? - cpu) / 1e3 / seconds;
    let names: Vec<String> =
        names.iter().map(|(name, count)| format!("{name} {}", short(f64::from(*count) / seconds))).collect();
    Ok(Heard { sent: f64::from(sent) / seconds, inside: f64::from(inside) / seconds, cpu_ms, names: names.join(", ") })
}
