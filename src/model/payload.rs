//! Payloads in JSON: as the JSON they are, or in base64.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::value::RawValue;

/// A payload in JSON, to be flattened: `payload` if it is JSON (`null` if there is none), else `payload_base64`.
///
/// JSON stays as it was written, its numbers and the order of its keys too; only the blanks between are taken out, so that
/// an event is one line.
#[derive(Debug, Clone, Serialize)]
pub enum PayloadJson {
    /// It is JSON, or there is none.
    #[serde(rename = "payload")]
    Json(Box<RawValue>),
    /// It is not.
    #[serde(rename = "payload_base64")]
    Base64(String),
}

impl From<Option<&[u8]>> for PayloadJson {
    fn from(payload: Option<&[u8]>) -> Self {
        let Some(bytes) = payload else { return Self::Json(RawValue::NULL.to_owned()) };
        match serde_json::from_slice::<&RawValue>(bytes) {
            Ok(json) if !json.get().contains([' ', '\t', '\r', '\n']) => Self::Json(json.to_owned()),
            Ok(json) => RawValue::from_string(compact(json.get()))
                .map_or_else(|_| Self::Base64(STANDARD.encode(bytes)), Self::Json),
            Err(_) => Self::Base64(STANDARD.encode(bytes)),
        }
    }
}

/// JSON without the blanks between its parts.
fn compact(json: &str) -> String {
    let (mut text, mut is_string, mut is_escaped) = (String::with_capacity(json.len()), false, false);
    for c in json.chars() {
        if is_string || !matches!(c, ' ' | '\t' | '\r' | '\n') {
            text.push(c);
        }
        match c {
            '"' if !is_escaped => is_string = !is_string,
            _ => {}
        }
        is_escaped = is_string && c == '\\' && !is_escaped;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(bytes: &[u8]) -> String {
        serde_json::to_string(&PayloadJson::from(Some(bytes))).unwrap()
    }

    #[test]
    fn json_stays_as_it_was_written_but_for_blanks_between() {
        let odd = br#"{"b":1.50,"a":123456789012345678901234567890,"a":"\" x \\","c":"\\\" "}"#;
        assert_eq!(json(odd), format!("{{\"payload\":{}}}", std::str::from_utf8(odd).unwrap()));
        assert_eq!(json(b" {\r\n\t\"a b\" : [ 1 , \"\\\\\" ] }\n"), r#"{"payload":{"a b":[1,"\\"]}}"#);
    }

    #[test]
    fn what_is_no_json_travels_as_base64() {
        assert_eq!(json(b"\xFF"), r#"{"payload_base64":"/w=="}"#);
        assert_eq!(json(b"{} x"), r#"{"payload_base64":"e30geA=="}"#);
        assert_eq!(serde_json::to_string(&PayloadJson::from(None)).unwrap(), r#"{"payload":null}"#);
    }
}
