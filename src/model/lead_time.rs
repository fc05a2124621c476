//! Lead times: how long before expiry a reminder speaks.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::model::{Invalid, format_span, parse_span, span_ms};

/// How long before `expires_at` a reminder speaks: whole milliseconds, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(utoipa::ToSchema))]
#[serde(try_from = "i64", into = "i64")]
pub struct LeadTime(i64);

impl LeadTime {
    /// Makes a lead time of `ms` milliseconds.
    ///
    /// # Errors
    /// Refuses less than 1 ms and more than about 3,000 years.
    pub fn from_millis(ms: i64) -> Result<Self, Invalid> {
        match ms {
            1..=99_999_999_999_999 => Ok(Self(ms)),
            _ => Err(Invalid::new("lead time", format!("of {ms} ms: give at least 1 ms and less than 1e14"))),
        }
    }

    /// The milliseconds of the lead time.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// The lead time as a duration.
    pub fn as_duration(self) -> Duration {
        Duration::from_millis(self.0.unsigned_abs())
    }
}

impl fmt::Display for LeadTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_span(self.as_duration()))
    }
}

impl FromStr for LeadTime {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::from_millis(span_ms(parse_span("lead time", text)?))
    }
}

impl TryFrom<i64> for LeadTime {
    type Error = Invalid;
    fn try_from(ms: i64) -> Result<Self, Invalid> {
        Self::from_millis(ms)
    }
}

impl TryFrom<Duration> for LeadTime {
    type Error = Invalid;
    fn try_from(span: Duration) -> Result<Self, Invalid> {
        Self::from_millis(span_ms(span))
    }
}

impl From<LeadTime> for i64 {
    fn from(lead: LeadTime) -> i64 {
        lead.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_time_is_at_least_a_millisecond() {
        assert_eq!("10m".parse::<LeadTime>().unwrap().as_millis(), 600_000);
        assert_eq!("1ms".parse::<LeadTime>().unwrap().to_string(), "1ms");
        assert!("0s".parse::<LeadTime>().unwrap_err().to_string().starts_with("lead time of 0 ms"));
    }
}
