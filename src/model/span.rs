//! Durations as people write them: `10m`, `1h 30m`, `250ms`.

use std::time::Duration;

use humantime::DurationError;

use crate::model::Invalid;

/// Reads a duration such as `10m`, `1h 30m` or `250ms`; `field` is what the error calls it.
///
/// # Errors
/// Names the field, the text and what is wrong with it.
pub fn parse_span(field: &'static str, text: &str) -> Result<Duration, Invalid> {
    let problem = match humantime::parse_duration(text.trim()) {
        _ if text.trim_start().starts_with('-') => " is negative; give a duration such as 10m".to_owned(),
        Ok(_) if !descends(text) => {
            " has its parts in disorder; write each unit once, from large to small, as in 1h 30m".to_owned()
        }
        Ok(span) if span.subsec_nanos() % 1_000_000 != 0 => {
            " has parts below a millisecond; the smallest unit is ms".to_owned()
        }
        Ok(span) if span.as_millis() > MAX_MS => " is longer than 1000 years; give a shorter one".to_owned(),
        Ok(span) => return Ok(span),
        Err(DurationError::UnknownUnit { unit, .. }) if unit.is_empty() => {
            " has no unit; use ms, s, m, h or d, as in 10m".to_owned()
        }
        Err(DurationError::UnknownUnit { unit, .. }) => {
            format!(": unknown unit \"{}\"; use ms, s, m, h or d", unit.escape_debug())
        }
        Err(DurationError::Empty) => " is empty; give a duration such as 10m".to_owned(),
        Err(DurationError::NumberOverflow) => " is too large; give a shorter one".to_owned(),
        Err(_) => " is no duration; write it as in 10m, 1h 30m or 250ms".to_owned(),
    };
    Err(Invalid::new(field, format!("\"{}\"{problem}", text.escape_debug())))
}

/// Whether each part is of a smaller unit than the one before: `10m 1m` is most likely meant to be two durations.
fn descends(text: &str) -> bool {
    let units = text.split(|c: char| !c.is_alphabetic()).filter(|unit| !unit.is_empty());
    let sizes: Vec<_> = units.filter_map(|unit| humantime::parse_duration(&format!("1{unit}")).ok()).collect();
    sizes.is_sorted_by(|larger, smaller| larger > smaller)
}

const MAX_MS: u128 = 1000 * 366 * 24 * 3600 * 1000;

/// Writes a duration as people do: `10m`, `1h 30m`, `400d`, `0s`. What is below a millisecond is left out.
///
/// Days are the largest unit: months and years have no one length.
pub fn format_span(span: Duration) -> String {
    let mut rest = span.as_millis();
    let mut parts = Vec::new();
    for (unit, ms) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if rest >= ms {
            parts.push(format!("{}{unit}", rest / ms));
            rest %= ms;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// The whole milliseconds of a duration; what does not fit in an `i64` becomes its maximum.
pub fn span_ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_and_written_as_people_do() {
        for (text, ms) in [("10m", 600_000), ("1h 30m", 5_400_000), ("250ms", 250), ("0s", 0), ("1d", 86_400_000)] {
            let span = parse_span("grace", text).unwrap();
            assert_eq!(span_ms(span), ms);
            assert_eq!(format_span(span), text);
        }
        let span = Duration::from_millis(400 * 86_400_000 + 25 * 3_600_000 + 61_001);
        assert_eq!(format_span(span), "401d 1h 1m 1s 1ms");
        assert_eq!(parse_span("grace", "401d 1h 1m 1s 1ms").unwrap(), span);
        assert_eq!(format_span(parse_span("grace", "1y").unwrap()), "365d 6h");
    }

    #[test]
    fn a_bad_duration_names_the_field_and_the_fix() {
        let error = |text| parse_span("lead time", text).unwrap_err().to_string();
        assert_eq!(error("15x"), "lead time \"15x\": unknown unit \"x\"; use ms, s, m, h or d");
        assert_eq!(error("15"), "lead time \"15\" has no unit; use ms, s, m, h or d, as in 10m");
        assert_eq!(error(""), "lead time \"\" is empty; give a duration such as 10m");
        assert_eq!(error("soon"), "lead time \"soon\" is no duration; write it as in 10m, 1h 30m or 250ms");
        assert_eq!(error("5us"), "lead time \"5us\" has parts below a millisecond; the smallest unit is ms");
        assert!(error("99999999999999999999s").contains("too large"));
        assert!(error("2000y").contains("longer than"));
        assert_eq!(error("-5m"), "lead time \"-5m\" is negative; give a duration such as 10m");
        for twisted in ["10m 1m", "1m 1h", "1m1m"] {
            assert!(error(twisted).contains("from large to small"), "{twisted}");
        }
    }
}
