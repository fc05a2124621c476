//! Arguments that several commands share: a namespace, an id of any bytes, an expiry, a page.

use std::{ffi::OsString, num::NonZeroUsize, time::Duration};

use anyhow::Context as _;
use base64::{
    Engine as _,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use chrono::DateTime;
use clap::{
    Args,
    builder::{OsStringValueParser, TypedValueParser},
};
use forewarn::{
    ExpiresAt, Id, Invalid, LeadTime, Name, Namespace, StoreError,
    model::{Handle, IdMask, parse_span},
    store::Store,
};

/// Parses the name of a namespace.
pub(super) fn namespace(text: &str) -> Result<Name, Invalid> {
    Name::new("namespace", text)
}

/// Parses the name of a route.
pub(super) fn route(text: &str) -> Result<Name, Invalid> {
    Name::new("route", text)
}

/// Parses a duration; `field` is what errors call it.
pub(super) fn span(field: &'static str) -> impl Fn(&str) -> Result<Duration, Invalid> + Clone + Send + Sync + 'static {
    move |text| parse_span(field, text)
}

/// Parses one lead time of a list.
pub(super) fn lead(text: &str) -> Result<LeadTime, Invalid> {
    text.parse().map_err(|invalid: Invalid| match text.trim().contains(' ') {
        // Two leads with a space between look like one duration of two parts.
        true => Invalid::new(
            "remind",
            format!("\"{}\" is no lead; separate several by commas, as in 10m,1m", text.escape_debug()),
        ),
        false => invalid,
    })
}

/// Parses how many notices at the same time.
pub(super) fn concurrency(text: &str) -> Result<NonZeroUsize, Invalid> {
    text.parse().map_err(|_| {
        Invalid::new("concurrency", format!("\"{}\" is no number of notices; give 1 or more", text.escape_debug()))
    })
}

/// Parses a number of shards.
pub(super) fn shards(text: &str) -> Result<u16, Invalid> {
    text.parse().map_err(|_| Invalid::new("shards", format!("is {}; give 1 to 1024", text.escape_debug())))
}

/// Parses an id given as it is: on Unix any bytes, elsewhere UTF-8.
pub(super) fn id_parser() -> impl TypedValueParser<Value = Id> {
    OsStringValueParser::new().try_map(|text| Id::new(id_bytes(text)?))
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn id_bytes(text: OsString) -> Result<Vec<u8>, Invalid> {
    Ok(std::os::unix::ffi::OsStringExt::into_vec(text))
}

#[cfg(not(unix))]
fn id_bytes(text: OsString) -> Result<Vec<u8>, Invalid> {
    let text = text.into_string().map_err(|_| Invalid::new("id", "is not UTF-8; give it with --id-base64"))?;
    Ok(text.into_bytes())
}

// What we print has no padding; what people paste may have it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Parses an id given in base64, of the URL-safe alphabet that outputs use or of the ordinary one.
fn id_from_base64(text: &str) -> Result<Id, Invalid> {
    let text = text.replace('+', "-").replace('/', "_");
    let bytes = BASE64
        .decode(&text)
        .map_err(|e| Invalid::new("id_base64", format!("is not base64 ({e}); give what --json printed")))?;
    Id::new(bytes)
}

/// The id of a deadline that may be new.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct NewIdArg {
    /// The id: any 1 to 1024 bytes; one that begins with a dash goes last, after --
    #[arg(value_name = "ID", value_parser = id_parser())]
    id: Option<Id>,
    /// The id in base64, as --json prints ids that are not UTF-8
    #[arg(long, value_name = "BASE64", value_parser = id_from_base64)]
    id_base64: Option<Id>,
}

impl NewIdArg {
    /// The id, whichever way it was given.
    pub(super) fn into_id(self) -> Result<Id, Invalid> {
        self.id.or(self.id_base64).ok_or_else(|| Invalid::new("id", "is missing; give ID or --id-base64"))
    }
}

/// The id of a deadline that is known.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct IdArg {
    /// The id: any 1 to 1024 bytes; one that begins with a dash goes last, after --
    #[arg(value_name = "ID", value_parser = id_parser())]
    id: Option<Id>,
    /// The id in base64, as --json prints ids that are not UTF-8
    #[arg(long, value_name = "BASE64", value_parser = id_from_base64)]
    id_base64: Option<Id>,
    /// What outputs show in place of a sensitive id; all ids may have to be looked through
    #[arg(long, value_name = "HANDLE")]
    handle: Option<Handle>,
}

impl IdArg {
    /// The id, whichever way it was given. That of a handle is looked for in the namespace.
    pub(super) async fn resolve(self, namespace: &Namespace) -> anyhow::Result<Id> {
        let Some(handle) = self.handle else {
            let id = self.id.or(self.id_base64);
            return Ok(id.ok_or_else(|| Invalid::new("id", "is missing; give ID, --id-base64 or --handle"))?);
        };
        let found = namespace.find(&handle).await?;
        found.with_context(|| {
            format!("nothing of this namespace has the handle {handle}: it has ended, or is another namespace's")
        })
    }
}

/// Whether sensitive ids are shown all the same.
#[derive(Debug, Args)]
pub(super) struct Reveal {
    /// Show sensitive ids whole, not by their handles
    #[arg(long)]
    reveal: bool,
}

impl Reveal {
    /// How the ids of a namespace are to be shown.
    pub(super) async fn mask(&self, namespace: &Namespace) -> Result<IdMask, StoreError> {
        if self.reveal { Ok(IdMask::none()) } else { namespace.id_mask().await }
    }
}

/// When a deadline expires.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct When {
    /// Expires this long from now by the store's clock, as in 2h or 1h 30m
    #[arg(long = "in", value_name = "SPAN", allow_hyphen_values = true, value_parser = span("in"))]
    span: Option<Duration>,
    /// Expires at this RFC 3339 instant with its offset, as in 2026-12-01T10:00:00Z
    #[arg(long, value_name = "TIME", value_parser = instant)]
    at: Option<ExpiresAt>,
    /// Expires at this instant in milliseconds since 1970
    #[arg(long, value_name = "MS", allow_hyphen_values = true, value_parser = instant_ms)]
    at_ms: Option<ExpiresAt>,
}

impl When {
    /// The instant meant. Only `--in` asks the store, whose clock decides.
    pub(super) async fn resolve(&self, store: &dyn Store) -> Result<ExpiresAt, StoreError> {
        if let Some(at) = self.at.or(self.at_ms) {
            return Ok(at);
        }
        let span = self.span.ok_or_else(|| Invalid::new("expires_at", "is missing; give --in, --at or --at-ms"))?;
        Ok(ExpiresAt::from_millis(store.now().await?.saturating_add(forewarn::model::span_ms(span)))?)
    }
}

fn instant(text: &str) -> Result<ExpiresAt, Invalid> {
    let at = DateTime::parse_from_rfc3339(text).map_err(|_| {
        let problem = "is no time; write date, T, time of day and offset, as in 2026-12-01T10:00:00Z or \
                       2026-12-01T11:00:00+01:00";
        Invalid::new("at", format!("\"{}\" {problem}", text.escape_debug()))
    })?;
    at.to_utc().try_into()
}

fn instant_ms(text: &str) -> Result<ExpiresAt, Invalid> {
    let ms = text.parse().map_err(|_| {
        Invalid::new("at_ms", "is no whole number in range; give milliseconds since 1970, as in 1796119200000")
    })?;
    ExpiresAt::from_millis(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_ids_are_read_with_and_without_padding_in_both_alphabets() {
        for text in ["_-8", "_-8=", "/+8="] {
            assert_eq!(id_from_base64(text).unwrap().as_bytes(), [0xFF, 0xEF], "{text}");
        }
        assert_eq!(id_from_base64("%").unwrap_err().field(), "id_base64");
        assert_eq!(id_from_base64("").unwrap_err().field(), "id");
    }

    #[test]
    fn a_time_needs_its_offset() {
        assert_eq!(instant("2026-12-01T01:00:00+01:00").unwrap().as_millis(), 1_796_083_200_000);
        for bad in ["2026-12-01T00:00:00", "2026-12-01", "tomorrow"] {
            assert!(instant(bad).unwrap_err().to_string().contains("offset"), "{bad}");
        }
    }
}
