//! A pair: one operation and the bare commands for the same, measured side by side over the rounds.

use anyhow::Result;

use crate::figure::Figure;
use crate::meter::{Costs, Meter};
use crate::table::Table;

/// One operation beside its bare counterpart.
#[derive(Debug)]
pub(crate) struct Pair {
    what: &'static str,
    bare_is: &'static str,
    /// What the bare commands cost, each.
    pub(crate) bare: Costs,
    /// What forewarn costs, each.
    pub(crate) ours: Costs,
}

/// Which round it is: the first warms up and does not count, and the sides take turns at being first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round(pub(crate) usize);

impl Pair {
    /// An operation, and what stands beside it.
    pub(crate) fn new(what: &'static str, bare_is: &'static str) -> Self {
        Self { what, bare_is, bare: Costs::default(), ours: Costs::default() }
    }

    /// Measures one round, in which each side does `count` things.
    pub(crate) async fn measure(
        &mut self,
        Round(round): Round,
        meter: &mut Meter,
        count: usize,
        bare: impl Future<Output = Result<()>>,
        ours: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        let (bare, ours) = if round.is_multiple_of(2) {
            let bare = meter.measure(bare).await?;
            (bare, meter.measure(ours).await?)
        } else {
            let ours = meter.measure(ours).await?;
            (meter.measure(bare).await?, ours)
        };
        if round > 0 {
            self.bare.add(bare, count);
            self.ours.add(ours, count);
        }
        Ok(())
    }

    /// How many times the CPU of the bare commands.
    pub(crate) fn ratio(&self) -> Figure {
        self.ours.cpu.over(&self.bare.cpu)
    }
}

/// Prints pairs under one another.
pub(crate) fn print(title: &str, pairs: &[&Pair]) {
    let columns = [
        "operation",
        "bare",
        "bare CPU",
        "forewarn CPU",
        "ratio",
        "bare inside",
        "forewarn inside",
        "bare wall",
        "forewarn wall",
    ];
    let mut table = Table::new(title, &columns);
    for pair in pairs {
        table.row([
            pair.what.to_owned(),
            pair.bare_is.to_owned(),
            pair.bare.cpu.to_string(),
            pair.ours.cpu.to_string(),
            format!("{}x", pair.ratio()),
            pair.bare.inside.to_string(),
            pair.ours.inside.to_string(),
            pair.bare.wall.to_string(),
            pair.ours.wall.to_string(),
        ]);
    }
    table.print();
}
