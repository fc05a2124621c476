//! What commands print: one document of JSON or lines for people, ids and payloads of any bytes, instants and spans.
//!
//! Data goes to stdout, talk to stderr. Nothing from outside reaches a terminal with its control characters.

use std::{
    fmt::Display,
    io::{self, Write as _},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::SecondsFormat;
use comfy_table::{ContentArrangement, Table, presets};
use forewarn::model::{Paused, format_span, to_datetime};
use serde::Serialize;
use serde_json::Value;

/// Writes one line, or several, to stdout.
pub(super) fn print(text: impl Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

/// Writes one JSON document, on one line, to stdout.
pub(super) fn print_json(document: &impl Serialize) -> anyhow::Result<()> {
    Ok(print(serde_json::to_string(document)?)?)
}

/// Says something to the person at the terminal. That nobody listens there is no reason to fail.
pub(super) fn say(text: impl Display) {
    writeln!(io::stderr().lock(), "{text}").unwrap_or_default();
}

/// An instant as RFC 3339 UTC with milliseconds.
pub(super) fn instant(ms: i64) -> String {
    to_datetime(ms).to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// How far an instant is from now: `in 1h 29m`, `3s ago`, to the second, and to the minute if it is days away.
pub(super) fn distance(ms: i64, now_ms: i64) -> String {
    let far = ms.abs_diff(now_ms);
    let precision = match far {
        0..10_000 => 1,
        10_000..86_400_000 => 1_000,
        _ => 60_000,
    };
    let shown = far / precision * precision;
    let span = format_span(Duration::from_millis(shown));
    if ms >= now_ms { format!("in {span}") } else { format!("{span} ago") }
}

/// An instant for people: as RFC 3339, and how far it is.
pub(super) fn instant_and_distance(ms: i64, now_ms: i64) -> String {
    format!("{} ({})", instant(ms), distance(ms, now_ms))
}

/// A table for people: no lines, no wrapping, so that it can also be cut and searched.
pub(super) fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    table.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Prints a table for people; if it has no rows, only says so on stderr.
pub(super) fn print_table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> io::Result<()> {
    let mut rows = rows.into_iter().peekable();
    if rows.peek().is_none() {
        say("none");
        return Ok(());
    }
    print(table(header, rows))
}

/// Text from outside on one line, its control characters escaped.
pub(super) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// Payload bytes for people.
pub(super) fn payload_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => printable(text),
        Err(_) => format!("{} bytes, base64 {}", bytes.len(), STANDARD.encode(bytes)),
    }
}

/// What is paused, for people; `None` if nothing is.
pub(super) fn paused_text(paused: &Paused) -> Option<&'static str> {
    match (paused.reminders, paused.cleanups) {
        (true, true) => Some("reminders and cleanups"),
        (true, false) => Some("reminders"),
        (false, true) => Some("cleanups"),
        (false, false) => None,
    }
}

/// A payload in JSON: `payload` if it is JSON or absent, else `payload_base64`. To be flattened.
#[derive(Debug, Serialize)]
pub(super) enum PayloadJson {
    #[serde(rename = "payload")]
    Json(Value),
    #[serde(rename = "payload_base64")]
    Base64(String),
}

impl From<Option<&[u8]>> for PayloadJson {
    fn from(payload: Option<&[u8]>) -> Self {
        match payload {
            None => Self::Json(Value::Null),
            Some(bytes) => {
                serde_json::from_slice(bytes).map_or_else(|_| Self::Base64(STANDARD.encode(bytes)), Self::Json)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_is_written_as_people_say_it() {
        assert_eq!(distance(5_400_999, 0), "in 1h 30m");
        assert_eq!(distance(0, 1_500), "1s 500ms ago");
        assert_eq!(distance(7, 7), "in 0s");
        assert_eq!(distance(400 * 86_400_000 + 61_999, 0), "in 400d 1m");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[31m\nü"), "a\\u{1b}[31m\\nü");
        assert_eq!(payload_text(b"\xFF"), "1 bytes, base64 /w==");
    }

    #[test]
    fn a_table_has_aligned_columns_and_no_lines() {
        let text = table(["id", "n"], [["long-id".to_owned(), "1".to_owned()]]);
        assert_eq!(text, "id       n\nlong-id  1");
    }

    #[test]
    fn payloads_that_are_no_json_travel_as_base64() {
        let json = |bytes: &[u8]| serde_json::to_string(&PayloadJson::from(Some(bytes))).unwrap();
        assert_eq!(json(b"[1]"), r#"{"payload":[1]}"#);
        assert_eq!(json(b"\xFF"), r#"{"payload_base64":"/w=="}"#);
    }
}
