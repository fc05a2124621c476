//! Ids, instants, spans and payloads as the API writes them: read here once, into the words of the model.

use std::{fmt, marker::PhantomData, time::Duration};

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use chrono::DateTime;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, Unexpected, Visitor},
};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::model::{ExpiresAt, Id, Invalid, PayloadJson, ShownId, parse_span, span_ms};

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);
const PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const PADDED: GeneralPurpose = base64::engine::general_purpose::STANDARD;

/// Reads base64 of either alphabet, with or without padding.
fn bytes(field: &'static str, text: &str) -> Result<Vec<u8>, Invalid> {
    let engine = if text.contains(['+', '/']) { &PLAIN } else { &URL };
    engine.decode(text).map_err(|e| Invalid::new(field, format!("is not base64 ({e}); see RFC 4648, section 4 or 5")))
}

/// Reads an id given as base64.
///
/// # Errors
/// Refuses what is no base64, and what is no id.
pub fn id_from_base64(text: &str) -> Result<Id, Invalid> {
    Id::new(bytes("id_base64", text)?)
}

/// Reads an id given as text or as base64.
///
/// # Errors
/// Refuses both, none, and what is no id.
pub fn read_id(id: Option<&str>, id_base64: Option<&str>) -> Result<Id, Invalid> {
    match (id, id_base64) {
        (Some(id), None) => Id::new(id),
        (None, Some(text)) => id_from_base64(text),
        (Some(_), Some(_)) => Err(Invalid::new("id", "is given together with id_base64; give one of them")),
        (None, None) => Err(Invalid::new("id", "is missing; give id, or id_base64 if it is not UTF-8")),
    }
}

/// An id as it is written: `id`, or `id_base64` if it is not UTF-8.
pub(super) fn write_id(id: &Id) -> (Option<String>, Option<String>) {
    match id.as_text() {
        Some(text) => (Some(text.to_owned()), None),
        None => (None, Some(id.to_base64())),
    }
}

/// An id as it is shown: one of the three.
#[derive(Debug, Default)]
pub(super) struct WrittenId {
    pub(super) id: Option<String>,
    pub(super) id_base64: Option<String>,
    pub(super) handle: Option<String>,
}

impl WrittenId {
    pub(super) fn new(shown: &ShownId) -> Self {
        match shown {
            ShownId::Id(id) => {
                let (id, id_base64) = write_id(id);
                Self { id, id_base64, handle: None }
            }
            ShownId::Handle(handle) => Self { handle: Some(handle.to_string()), ..Self::default() },
        }
    }
}

/// Reads a payload given as JSON or as base64.
///
/// # Errors
/// Refuses both, and what is no base64.
pub(crate) fn read_payload(json: Option<&RawValue>, base64: Option<&str>) -> Result<Option<Vec<u8>>, Invalid> {
    match (json, base64) {
        (Some(_), Some(_)) => Err(Invalid::new("payload", "is given together with payload_base64; give one of them")),
        (Some(json), None) => Ok(Some(json.get().as_bytes().to_vec())),
        (None, Some(text)) => bytes("payload_base64", text).map(Some),
        (None, None) => Ok(None),
    }
}

/// A payload as it is written: `payload` if it is JSON, else `payload_base64`; neither if there is none. A `null` goes as base64:
/// as JSON it would mean that there is none.
pub(super) fn write_payload(payload: Option<&[u8]>) -> (Option<Box<RawValue>>, Option<String>) {
    match payload.map(|bytes| (bytes, PayloadJson::from(Some(bytes)))) {
        Some((bytes, PayloadJson::Json(json))) if json.get() == "null" => (None, Some(PADDED.encode(bytes))),
        Some((_, PayloadJson::Json(json))) => (Some(json), None),
        Some((_, PayloadJson::Base64(text))) => (None, Some(text)),
        None => (None, None),
    }
}

/// A payload as it is sent to be stored: with all its blanks.
pub(super) fn write_payload_exactly(payload: Option<&[u8]>) -> (Option<Box<RawValue>>, Option<String>) {
    match (write_payload(payload), payload) {
        ((Some(json), None), Some(bytes)) if json.get().as_bytes() != bytes => (None, Some(PADDED.encode(bytes))),
        (written, _) => written,
    }
}

/// An instant: RFC 3339 with its offset, or whole milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Instant {
    /// Milliseconds since 1970, from 100000000000 to 100000000000000.
    Millis(i64),
    /// RFC 3339 with its offset, as in 2026-12-01T10:00:00Z.
    #[schema(format = "date-time")]
    Text(String),
}

impl Instant {
    /// The instant meant.
    ///
    /// # Errors
    /// Refuses a text without an offset, and what looks like seconds or microseconds.
    pub fn read(&self) -> Result<ExpiresAt, Invalid> {
        match self {
            Self::Millis(ms) => ExpiresAt::from_millis(*ms),
            Self::Text(text) => {
                let at = DateTime::parse_from_rfc3339(text).map_err(|_| {
                    let problem = "is no instant; write RFC 3339 with an offset, as in 2026-12-01T10:00:00Z, or whole \
                                   milliseconds since 1970";
                    Invalid::new("expires_at", format!("\"{}\" {problem}", text.escape_debug()))
                })?;
                at.to_utc().try_into()
            }
        }
    }
}

/// A span: text as in `2h` or `1h 30m`, or seconds.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Span {
    /// Seconds; a fraction is kept to the millisecond.
    Seconds(f64),
    /// As in `2h`, `1h 30m` or `250ms`.
    Text(String),
}

impl Span {
    /// The span meant.
    ///
    /// # Errors
    /// Refuses a negative one, and what is no span; `field` is what the error calls it.
    pub fn read(&self, field: &'static str) -> Result<Duration, Invalid> {
        match self {
            Self::Text(text) => parse_span(field, text),
            Self::Seconds(seconds) => {
                let wrong = |problem: &str| Invalid::new(field, format!("{seconds} {problem}"));
                if *seconds < 0.0 {
                    return Err(wrong("is negative; give seconds, or a text such as \"2h\""));
                }
                let ms = (seconds * 1000.0).round();
                let span =
                    Duration::try_from_secs_f64(ms / 1000.0).map_err(|_| wrong("is too long; give fewer seconds"))?;
                // As long as an expiry may be away.
                if span_ms(span) > ExpiresAt::MAX_MS { Err(wrong("is too long; give fewer seconds")) } else { Ok(span) }
            }
        }
    }
}

/// What is a text or a number. By hand: derived, each is read into a value first, and the wrong one of both makes an error text.
struct TextOr<T>(PhantomData<T>);

impl<'de> Visitor<'de> for TextOr<Instant> {
    type Value = Instant;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an instant: RFC 3339 with an offset, or whole milliseconds since 1970")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Instant, E> {
        Ok(Instant::Text(text.to_owned()))
    }

    fn visit_i64<E: Error>(self, ms: i64) -> Result<Instant, E> {
        Ok(Instant::Millis(ms))
    }

    fn visit_u64<E: Error>(self, ms: u64) -> Result<Instant, E> {
        i64::try_from(ms).map(Instant::Millis).map_err(|_| E::invalid_value(Unexpected::Unsigned(ms), &self))
    }
}

impl<'de> Visitor<'de> for TextOr<Span> {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a span: a text such as \"2h\", or seconds")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
        Ok(Span::Text(text.to_owned()))
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<Span, E> {
        Ok(Span::Seconds(seconds))
    }

    #[expect(clippy::cast_precision_loss, reason = "so many seconds are refused when the span is read")]
    fn visit_i64<E: Error>(self, seconds: i64) -> Result<Span, E> {
        Ok(Span::Seconds(seconds as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "so many seconds are refused when the span is read")]
    fn visit_u64<E: Error>(self, seconds: u64) -> Result<Span, E> {
        Ok(Span::Seconds(seconds as f64))
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOr::<Self>(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOr::<Self>(PhantomData))
    }
}

impl From<Duration> for Span {
    fn from(span: Duration) -> Self {
        Self::Text(format!("{}ms", span_ms(span)))
    }
}
