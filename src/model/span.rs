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
        Ok(span) if span.subsec_nanos() % 1_000_000 != 0 => {
            "has parts below a millisecond; the smallest unit is ms".to_owned()
        }
        Ok(span) if span.as_millis() > MAX_MS => "is longer than 1000 years; give a shorter one".to_owned(),
        Ok(span) => return Ok(span),
        Err(DurationError::UnknownUnit { unit, .. }) if unit.is_empty() => {
            "has no unit; use ms, s, m, h or d, as in 10m".to_owned()
        }
        Err(DurationError::UnknownUnit { unit, .. }) => {
            format!("unknown unit \"{}\"; use ms, s, m, h or d", unit.escape_debug())
        }
        Err(DurationError::Empty) => "is empty; give a duration such as 10m".to_owned(),
        Err(DurationError::NumberOverflow) => "is too large; give a shorter one".to_owned(),
        Err(_) => "is no duration; write it as in 10m, 1h 30m or 250ms".to_owned(),
    };
    Err(Invalid::new(field, format!("\"{}\": {problem}", text.escape_debug())))
}

const MAX_MS: u128 = 1000 * 366 * 24 * 3600 * 1000;

/// Writes a duration as people do: `10m`, `1h 30m`, `0s`.
pub fn format_span(span: Duration) -> String {
    humantime::format_duration(span).to_string()
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
            assert_eq!(parse_span("grace", &format_span(span)).unwrap(), span);
        }
    }

    #[test]
    fn a_bad_duration_names_the_field_and_the_fix() {
        let error = |text| parse_span("lead time", text).unwrap_err().to_string();
        assert_eq!(error("15x"), "lead time \"15x\": unknown unit \"x\"; use ms, s, m, h or d");
        assert_eq!(error("15"), "lead time \"15\": has no unit; use ms, s, m, h or d, as in 10m");
        assert_eq!(error(""), "lead time \"\": is empty; give a duration such as 10m");
        assert_eq!(error("soon"), "lead time \"soon\": is no duration; write it as in 10m, 1h 30m or 250ms");
        assert_eq!(error("5us"), "lead time \"5us\": has parts below a millisecond; the smallest unit is ms");
        assert!(error("99999999999999999999s").contains("too large"));
        assert!(error("2000y").contains("longer than"));
    }
}
