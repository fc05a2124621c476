//! Section `bytes`: the memory of a deadline, of a delivery in flight and of an open cleanup, for ids of 24 bytes.
//!
//! What the server hands out in all, and what it tells of each key. These hardly differ from run to run, so there is one
//! round. Tables double in size now and then; how full they are moves each figure by a few bytes.

use anyhow::{Result, ensure};
use forewarn::model::Name;
use forewarn::store::Store;

use crate::Effort;
use crate::figure::short;
use crate::rig::{self, LEAD_MS, Rig};
use crate::table::{Table, Targets};

/// How long arming may take.
const MARGIN_MS: i64 = 8_000;

/// Runs the section.
pub(crate) async fn run(effort: Effort, targets: &mut Targets) -> Result<()> {
    let mut rig = Rig::start().await?;
    let count = effort.pick(200_000, 50_000);
    let title = format!("Bytes of Redis memory for each of {count}");
    let mut table = Table::new(title, &["what", "bare ZSET", "forewarn", "by key"]);

    let now = rig.store.now().await?;
    let due_at = now + MARGIN_MS;
    let load = rig::load(0..count, due_at + LEAD_MS..due_at + LEAD_MS + 1_000)?;
    let before = rig.meter.memory().await?;
    rig.bare.add("bare", &load, 500).await?;
    let bare = (rig.meter.memory().await? - before) / count as f64;
    rig.bare.delete("bare").await?;

    let namespace = rig.namespace("bytes").await?;
    let before = rig.meter.memory().await?;
    rig::arm(&*rig.store, &namespace, &load).await?;
    let armed = rig.meter.memory().await?;
    let each = |from: f64, to: f64| (to - from) / count as f64;
    let deadline = each(before, armed);
    table.row(["an armed deadline".to_owned(), short(bare), short(deadline), by_key(&rig, "bytes", count).await?]);

    let late = rig.store.now().await? - due_at;
    ensure!(late < 0, "the machine is too slow: arming took {late} ms too long");
    rig::wait_until(&*rig.store, due_at + 1_000).await?;
    claim(&rig, &namespace, count).await?;
    let claimed = rig.meter.memory().await?;
    let what = "a reminder in flight, beside its deadline".to_owned();
    table.row([what, "–".to_owned(), short(each(armed, claimed)), by_key(&rig, "bytes", count).await?]);
    rig.forget(&namespace).await?;

    let namespace = rig.namespace("cleanups").await?;
    let before = rig.meter.memory().await?;
    let now = rig.store.now().await?;
    rig::arm(&*rig.store, &namespace, &rig::load(0..count, now - 1_000..now)?).await?;
    claim(&rig, &namespace, count).await?;
    let claimed = rig.meter.memory().await?;
    let what = "a cleanup in flight and open, its deadline gone".to_owned();
    table.row([what, "–".to_owned(), short(each(before, claimed)), by_key(&rig, "cleanups", count).await?]);
    table.print();
    targets.at_most("an armed deadline", 140.0, deadline, "bytes");
    Ok(())
}

/// Claims everything and acks nothing.
async fn claim(rig: &Rig, namespace: &Name, count: usize) -> Result<()> {
    let (route, mut taken) = (rig::route()?, 0);
    while taken < count {
        let claims = rig.store.claim(namespace, &route, 500, rig::LEASE).await?.claims.len();
        ensure!(claims > 0, "{taken} of {count} notices were due");
        taken += claims;
    }
    Ok(())
}

/// What the server tells of each key of a namespace, largest first; keys of next to nothing are left out.
async fn by_key(rig: &Rig, namespace: &str, count: usize) -> Result<String> {
    let mut connection = rig.server.connection().await;
    let pattern = format!("*:{namespace}:*");
    let keys: Vec<String> = redis::cmd("KEYS").arg(pattern).query_async(&mut connection).await?;
    let mut sizes = Vec::new();
    for key in keys {
        let usage = redis::cmd("MEMORY").arg("USAGE").arg(&key).arg("SAMPLES").arg(0).to_owned();
        let bytes: u64 = usage.query_async(&mut connection).await?;
        let each = bytes as f64 / count as f64;
        if each >= 1.0 {
            let name = key.rsplit_once("}:").map_or(key.as_str(), |(_, name)| name).to_owned();
            sizes.push((each, name));
        }
    }
    sizes.sort_by(|a, b| b.0.total_cmp(&a.0));
    Ok(sizes.iter().map(|(each, name)| format!("{name} {}", short(*each))).collect::<Vec<_>>().join(", "))
}
