//! Figures: a quantity measured in several rounds, and the distribution of many waits.
//!
//! The middle round is shown, with the lowest and the highest as the noise of the machine. Ratios are formed within
//! each round, where both sides met the same noise, and only then is the middle one taken.

use std::fmt;

/// One quantity over the rounds of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figure(Vec<f64>);

impl Figure {
    /// Adds what a round measured.
    pub(crate) fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The middle round; no number without rounds.
    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        }
    }

    /// This quantity divided by the other, round by round.
    pub(crate) fn over(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(own, other)| own / other).collect())
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

/// The middle, and in brackets the lowest and highest; a dash for what was not measured.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sorted = self.sorted();
        if sorted.iter().any(|value| value.is_nan()) {
            return f.write_str("–");
        }
        match (sorted.first(), sorted.last()) {
            (Some(low), Some(high)) if sorted.len() > 1 => {
                write!(f, "{} ({}–{})", short(self.median()), short(*low), short(*high))
            }
            (Some(only), _) => f.write_str(&short(*only)),
            _ => f.write_str("–"),
        }
    }
}

/// Many waits of one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waits(Vec<f64>);

impl Waits {
    /// Takes them in any order.
    pub(crate) fn new(mut waits: Vec<f64>) -> Self {
        waits.sort_by(f64::total_cmp);
        Self(waits)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The wait that `percent` of all do not exceed; 100 is the longest.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let place = (self.0.len() * percent).div_ceil(100).max(1) - 1;
        self.0.get(place).copied().unwrap_or(f64::NAN)
    }
}

/// A number with three digits that say something, or all before the point.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 99.95 => format!("{value:.0}"),
        middle if middle >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
