//! Section `growth`: what claim + ack costs while more and more is armed and not due.
//!
//! All sizes stand on one server at once, and each round measures all of them.

use anyhow::Result;
use forewarn::store::Store as _;

use crate::Effort;
use crate::claims::{self, Kind, Place, Trial};
use crate::pair::Round;
use crate::rig::{self, Rig};
use crate::table::{Table, Targets};

/// Armed and not due before the run ends.
const FAR: std::ops::Range<i64> = 86_400_000..172_800_000;

/// Runs the section.
pub(crate) async fn run(effort: Effort, targets: &mut Targets) -> Result<()> {
    let sizes: &[usize] = effort.pick(&[10_000, 100_000, 1_000_000], &[10_000, 100_000]);
    let mut rig = Rig::start().await?;
    let mut stands = Vec::new();
    for &size in sizes {
        stands.push(Stand::build(&mut rig, size, effort.pick(10_000, 4_000)).await?);
    }
    for round in effort.rounds() {
        for kind in [Kind::Reminder, Kind::Cleanup] {
            measure(round, &mut rig, &mut stands, kind).await?;
        }
    }
    print(effort, &stands, targets);
    Ok(())
}

/// A namespace and a bare ZSET of one size.
struct Stand {
    size: usize,
    place: Place,
    reminders: Trial,
    cleanups: Trial,
}

impl Stand {
    async fn build(rig: &mut Rig, size: usize, count: usize) -> Result<Self> {
        let namespace = rig.namespace(&format!("growth-{size}")).await?;
        let place = Place { namespace, key: format!("bare-{size}"), first: size };
        let now = rig.store.now().await?;
        let far = rig::load(0..size, now + FAR.start..now + FAR.end)?;
        rig::arm(&*rig.store, &place.namespace, &far).await?;
        rig.bare.add(&place.key, &far, 500).await?;
        let reminders = Trial::new("", "", Kind::Reminder, 500, count);
        let cleanups = Trial::new("", "", Kind::Cleanup, 500, count);
        Ok(Self { size, place, reminders, cleanups })
    }
}

async fn measure(round: Round, rig: &mut Rig, stands: &mut [Stand], kind: Kind) -> Result<()> {
    let mut trials: Vec<_> = stands
        .iter_mut()
        .map(|Stand { place, reminders, cleanups, .. }| match kind {
            Kind::Reminder => (reminders, &*place),
            Kind::Cleanup => (cleanups, &*place),
        })
        .collect();
    let armed = claims::measure(round, rig, &mut trials).await?;
    if kind == Kind::Reminder {
        for (stand, load) in stands.iter().zip(armed) {
            rig::disarm(&*rig.store, &stand.place.namespace, &load).await?;
        }
    }
    Ok(())
}

fn print(effort: Effort, stands: &[Stand], targets: &mut Targets) {
    let columns = ["armed", "bare", "reminders", "to the smallest", "cleanups", "to the smallest"];
    let title = format!("Growth: Redis µs of CPU for each claim + ack by 500, rounds: {}", effort.count());
    let mut table = Table::new(title, &columns);
    let Some(smallest) = stands.first() else { return };
    for Stand { size, reminders, cleanups, .. } in stands {
        let to_smallest = |trial: &Trial, smallest: &Trial| trial.pair.ours.cpu.over(&smallest.pair.ours.cpu);
        let grown = [to_smallest(reminders, &smallest.reminders), to_smallest(cleanups, &smallest.cleanups)];
        table.row([
            size.to_string(),
            reminders.pair.bare.cpu.to_string(),
            reminders.pair.ours.cpu.to_string(),
            format!("{}x", grown[0]),
            cleanups.pair.ours.cpu.to_string(),
            format!("{}x", grown[1]),
        ]);
        if *size > smallest.size {
            for (grown, what) in grown.iter().zip(["reminders", "cleanups"]) {
                let what = format!("claim + ack of {what}, {} armed to {size}", smallest.size);
                targets.at_most(what, 1.5, grown.median(), "x");
            }
        }
    }
    table.print();
}
