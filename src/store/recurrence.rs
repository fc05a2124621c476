//! When an id that recurs by a cron expression expires next.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use croner::Cron;

use crate::model::{ExpiresAt, to_datetime};

/// The first instant after now that `cron:<spec>` names, in UTC.
pub(crate) fn next_by_cron(period: &str, now_ms: i64) -> Option<ExpiresAt> {
    let cron = Cron::from_str(period.strip_prefix("cron:")?).ok()?;
    let next: DateTime<Utc> = cron.find_next_occurrence(&to_datetime(now_ms), false).ok()?;
    ExpiresAt::try_from(next).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cron_expression_names_the_next_instant() {
        // 2026-12-01T00:00:00Z is 1796083200000.
        assert_eq!(next_by_cron("cron:0 * * * *", 1_796_083_200_000).unwrap().as_millis(), 1_796_086_800_000);
        assert_eq!(next_by_cron("cron:0 * * * *", 1_796_083_199_999).unwrap().as_millis(), 1_796_083_200_000);
        assert!(next_by_cron("cron:nonsense", 0).is_none());
        assert!(next_by_cron("nonsense", 0).is_none());
    }
}
