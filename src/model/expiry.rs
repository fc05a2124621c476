//! The absolute instant at which something expires, checked to be milliseconds.

use chrono::{DateTime, SecondsFormat, Utc};

use crate::model::Invalid;

/// When something expires: milliseconds since the Unix epoch, from 1e11 (March 1973) to 1e14 (the year 5138).
///
/// The range is narrow on purpose: seconds and microseconds of our century fall outside, so the common mistake of
/// the wrong unit is refused instead of firing at once or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExpiresAt(i64);

impl ExpiresAt {
    /// The earliest instant accepted, in milliseconds.
    pub const MIN_MS: i64 = 100_000_000_000;
    /// The latest instant accepted, in milliseconds.
    pub const MAX_MS: i64 = 100_000_000_000_000;

    /// Checks and takes milliseconds since the epoch.
    ///
    /// # Errors
    /// Refuses what is outside the range, and says when it looks like seconds or microseconds.
    pub fn from_millis(ms: i64) -> Result<Self, Invalid> {
        let problem = match ms {
            Self::MIN_MS..=Self::MAX_MS => return Ok(Self(ms)),
            1..Self::MIN_MS => {
                format!("{ms} looks like seconds; give milliseconds since 1970, as in {}", ms.saturating_mul(1000))
            }
            i64::MIN..=0 => {
                format!("{ms} is not after 1970; give milliseconds since 1970, from 100000000000 to 100000000000000")
            }
            _ => format!(
                "{ms} looks like microseconds or is beyond the year 5138; give milliseconds since 1970, as in {}",
                ms / 1000
            ),
        };
        Err(Invalid::new("expires_at", problem))
    }

    /// Milliseconds since the epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// The instant as a date and time.
    pub fn to_datetime(self) -> DateTime<Utc> {
        to_datetime(self.0)
    }
}

/// Milliseconds since the epoch as a date and time; what chrono cannot hold becomes its nearest limit.
pub fn to_datetime(ms: i64) -> DateTime<Utc> {
    let limit = if ms < 0 { DateTime::<Utc>::MIN_UTC } else { DateTime::<Utc>::MAX_UTC };
    DateTime::from_timestamp_millis(ms).unwrap_or(limit)
}

/// Milliseconds since the epoch as RFC 3339 in UTC, with milliseconds.
pub fn format_instant(ms: i64) -> String {
    to_datetime(ms).to_rfc3339_opts(SecondsFormat::Millis, true)
}

impl TryFrom<DateTime<Utc>> for ExpiresAt {
    type Error = Invalid;
    fn try_from(at: DateTime<Utc>) -> Result<Self, Invalid> {
        Self::from_millis(at.timestamp_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_the_range_are_accepted_and_one_beyond_is_refused() {
        for ms in [ExpiresAt::MIN_MS, ExpiresAt::MAX_MS, 1_796_083_200_000] {
            assert_eq!(ExpiresAt::from_millis(ms).unwrap().as_millis(), ms);
        }
        for ms in [ExpiresAt::MIN_MS - 1, ExpiresAt::MAX_MS + 1, 0, -1, i64::MIN, i64::MAX] {
            assert_eq!(ExpiresAt::from_millis(ms).unwrap_err().field(), "expires_at");
        }
    }

    #[test]
    fn seconds_where_milliseconds_belong_are_named_with_the_fix() {
        let error = ExpiresAt::from_millis(1_796_083_200).unwrap_err().to_string();
        assert_eq!(
            error,
            "expires_at 1796083200 looks like seconds; give milliseconds since 1970, as in 1796083200000"
        );
        assert!(ExpiresAt::from_millis(1_796_083_200_000_000).unwrap_err().to_string().contains("microseconds"));
    }
}
