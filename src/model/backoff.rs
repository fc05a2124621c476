//! How long a failed notice waits before its next attempt.

use std::time::Duration;

use crate::model::{Invalid, Kind};

/// The retry policy of a worker or sink. Pure: the caller brings the randomness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    delays: Vec<Duration>,
    max_failures: u32,
}

impl Default for Backoff {
    /// Cleanups wait 30 s, 2 min, 10 min and then 30 min each time; the eighth failure is the last.
    fn default() -> Self {
        Self { delays: [30, 120, 600, 1800].map(Duration::from_secs).to_vec(), max_failures: 8 }
    }
}

impl Backoff {
    /// A policy for cleanups: the delay after each failure (the last one repeats), and how many failures are allowed.
    ///
    /// # Errors
    /// Refuses an empty list of delays, and no failure at all.
    pub fn new(delays: Vec<Duration>, max_failures: u32) -> Result<Self, Invalid> {
        if delays.is_empty() {
            return Err(Invalid::new("retry delays", "are empty; give at least one, as in 30s"));
        }
        if max_failures == 0 {
            return Err(Invalid::new("max failures", "is 0; give at least 1"));
        }
        Ok(Self { delays, max_failures })
    }

    /// The failures after which a notice becomes a dead letter.
    pub fn max_failures(&self) -> u32 {
        self.max_failures
    }

    /// The delay after `failures` recorded failures (at least 1). `jitter` is a random number from 0 to 1; it moves the
    /// delay of a cleanup by up to a tenth either way.
    ///
    /// Reminders start at 1 s and double. The store cuts a reminder's delay to a quarter of the window it may speak in.
    pub fn delay(&self, kind: Kind, failures: u32, jitter: f64) -> Duration {
        match kind {
            Kind::Reminder(_) => Duration::from_secs(1 << failures.saturating_sub(1).min(12)),
            Kind::Cleanup(_) => {
                let index = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
                let delay = self.delays.get(index).or(self.delays.last()).copied().unwrap_or_default();
                delay.mul_f64(0.9 + 0.2 * jitter.clamp(0.0, 1.0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LeadTime, Reason};

    #[test]
    fn cleanups_follow_the_list_and_then_its_last_delay() {
        let backoff = Backoff::new(vec![Duration::from_secs(30), Duration::from_secs(120)], 8).unwrap();
        let delay = |failures| backoff.delay(Kind::Cleanup(Reason::Expired), failures, 0.5).as_secs();
        assert_eq!([1, 2, 3, 100].map(delay), [30, 120, 120, 120]);
    }

    #[test]
    fn jitter_stays_within_a_tenth() {
        let delay = |jitter| Backoff::default().delay(Kind::Cleanup(Reason::Expired), 1, jitter).as_millis();
        assert_eq!((delay(0.0), delay(1.0)), (27_000, 33_000));
    }

    #[test]
    fn reminders_double_from_a_second() {
        let kind = Kind::Reminder(LeadTime::from_millis(600_000).unwrap());
        let delay = |failures| Backoff::default().delay(kind, failures, 0.5).as_secs();
        assert_eq!([1, 2, 3, 4].map(delay), [1, 2, 4, 8]);
    }

    #[test]
    fn a_policy_without_delays_or_attempts_is_refused() {
        assert_eq!(Backoff::new(Vec::new(), 1).unwrap_err().field(), "retry delays");
        assert_eq!(Backoff::new(vec![Duration::ZERO], 0).unwrap_err().field(), "max failures");
    }
}
