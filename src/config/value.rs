//! Whether a value may stand at its place: its type, its range, its word; and what to write instead.

use serde_json::Value as Json;

use crate::config::nearest::nearest;
use crate::config::shape::{Kind, Leaf};
use crate::model::parse_span;

impl Leaf {
    /// Refuses a value that cannot stand here; answers with what is wrong and the fix, to follow the key.
    pub(super) fn check(&self, value: &Json) -> Result<(), String> {
        self.kind.check(value, &self.shown())
    }

    /// Reads a value from a variable or a flag, where everything is text.
    pub(super) fn read(&self, text: &str) -> Result<Json, String> {
        let value = self.kind.read(text)?;
        self.check(&value)?;
        Ok(value)
    }

    /// A value as it may be written here.
    fn shown(&self) -> String {
        let is_empty = self.default.is_null() || self.default.as_array().is_some_and(Vec::is_empty);
        toml_text(if is_empty { &self.example } else { &self.default })
    }
}

impl Kind {
    fn check(&self, value: &Json, shown: &str) -> Result<(), String> {
        match (self, value) {
            (Self::Bool, Json::Bool(_)) | (Self::Text, Json::String(_)) => Ok(()),
            (Self::Number { min, max }, Json::Number(number)) => match number.as_u64() {
                Some(number) if (*min..=*max).contains(&number) => Ok(()),
                _ => Err(format!("is {number}; write a whole number from {min} to {max}")),
            },
            (Self::Span, Json::String(text)) => match parse_span("", text) {
                Ok(_) => Ok(()),
                Err(invalid) => Err(invalid.to_string().trim_start().to_owned()),
            },
            (Self::Words(words), Json::String(word)) => {
                if words.contains(word) {
                    return Ok(());
                }
                let meant = nearest(word, words.iter().map(String::as_str));
                let meant = meant.map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default();
                Err(format!("\"{}\": {meant}use {}", word.escape_debug(), one_of(words)))
            }
            (Self::List(each), Json::Array(items)) => items.iter().enumerate().try_for_each(|(at, item)| {
                each.check(item, &in_brackets(shown)).map_err(|problem| format!("entry {} {problem}", at + 1))
            }),
            _ => Err(format!("is {}; {}", called(value), self.fix(shown))),
        }
    }

    fn fix(&self, shown: &str) -> String {
        match self {
            Self::Bool => "write true or false".to_owned(),
            Self::Number { min, max } => format!("write a whole number from {min} to {max}"),
            Self::Text => format!("write text in quotes, as in {shown}"),
            Self::Span => format!("write a duration as text, as in {shown}"),
            Self::Words(words) => format!("write {}", one_of(words)),
            Self::List(_) => format!("write a list, as in {shown}"),
        }
    }

    fn read(&self, text: &str) -> Result<Json, String> {
        let text = text.trim();
        match self {
            Self::Text | Self::Span | Self::Words(_) => Ok(Json::from(text)),
            Self::Bool => match text {
                "true" => Ok(true.into()),
                "false" => Ok(false.into()),
                _ => Err(format!("\"{}\": write true or false", text.escape_debug())),
            },
            Self::Number { .. } => {
                let wrong = |_| format!("\"{}\" is no number; {}", text.escape_debug(), self.fix(""));
                text.parse::<u64>().map(Json::from).map_err(wrong)
            }
            Self::List(_) if text.starts_with('[') => {
                let wrong = |_| "is no list; separate by commas, as in a,b, or write a list of TOML".to_owned();
                let mut table: toml::Table = toml::from_str(&format!("list = {text}")).map_err(wrong)?;
                table.remove("list").and_then(|list| serde_json::to_value(list).ok()).ok_or_else(String::new)
            }
            Self::List(each) => text.split(',').map(|item| each.read(item)).collect::<Result<_, _>>().map(Json::Array),
        }
    }
}

/// A value as TOML writes it; nothing for null.
pub(super) fn toml_text(value: &Json) -> String {
    toml::Value::try_from(value).map(|value| value.to_string()).unwrap_or_default()
}

/// The first of a list, as it is written.
fn in_brackets(list: &str) -> String {
    let inner = list.trim_start_matches('[').trim_end_matches(']');
    inner.split(", ").next().unwrap_or(inner).to_owned()
}

/// What a value of the wrong type is called. Text is not repeated: it may be a secret at the wrong place.
fn called(value: &Json) -> String {
    match value {
        Json::Null => "nothing".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Number(number) => format!("the number {number}"),
        Json::String(_) => "text".to_owned(),
        Json::Array(_) => "a list".to_owned(),
        Json::Object(_) => "a table".to_owned(),
    }
}

/// `"a", "b" or "c"`.
fn one_of(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.join(""),
    }
}
