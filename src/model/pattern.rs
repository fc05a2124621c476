//! Patterns of keys, in the notation of the store's own `KEYS` and `SCAN`: which keys are ids of a namespace.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::model::Invalid;

/// A glob over the bytes of a key: `*` any run, `?` one byte, `[a-z]` one of a set, `[^a]` one outside it, `\` takes the
/// next byte as it is.
///
/// The notation is that of [KEYS](https://redis.io/docs/latest/commands/keys/).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyPattern {
    text: String,
    segments: Vec<Vec<Piece>>,
}

/// What one byte must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// This byte.
    Byte(u8),
    /// Any one byte.
    Any,
    /// One byte of these ranges, or outside all of them.
    Set {
        /// Whether it is outside that matches.
        is_outside: bool,
        /// First and last of each range.
        ranges: Vec<(u8, u8)>,
    },
}

impl KeyPattern {
    /// Whether a key matches, in time proportional to its length and the pattern's.
    pub fn matches(&self, key: &[u8]) -> bool {
        let (Some((first, middle)), mut rest) = (self.segments.split_first(), key) else { return false };
        let Some((last, middle)) = middle.split_last() else { return key.len() == first.len() && begins(first, key) };
        if !begins(first, rest) {
            return false;
        }
        rest = &rest[first.len()..];
        // The leftmost place of each is as good as any: a run takes up what is before the next.
        for segment in middle {
            let Some(at) = (0..=rest.len()).find(|at| begins(segment, &rest[*at..])) else { return false };
            rest = &rest[at + segment.len()..];
        }
        rest.len() >= last.len() && begins(last, &rest[rest.len() - last.len()..])
    }

    /// What stands between the runs: at least one segment; the first begins the key and the last ends it.
    pub(crate) fn segments(&self) -> &[Vec<Piece>] {
        &self.segments
    }
}

impl Piece {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::Any => true,
            Self::Set { is_outside, ranges } => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&byte)) != *is_outside
            }
        }
    }
}

fn begins(segment: &[Piece], key: &[u8]) -> bool {
    segment.len() <= key.len() && segment.iter().zip(key).all(|(piece, byte)| piece.takes(*byte))
}

impl FromStr for KeyPattern {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = |problem: String| Err(Invalid::new("keys", format!("\"{}\": {problem}", text.escape_debug())));
        if text.is_empty() || text.len() > 256 {
            return refuse(format!("has {} bytes; give 1 to 256, as in user_session:*", text.len()));
        }
        let mut bytes = text.bytes();
        let (mut segments, mut segment) = (Vec::new(), Vec::new());
        while let Some(byte) = bytes.next() {
            segment.push(match byte {
                b'*' => {
                    // Two runs side by side are one.
                    if segments.is_empty() || !segment.is_empty() {
                        segments.push(std::mem::take(&mut segment));
                    }
                    continue;
                }
                b'?' => Piece::Any,
                b'[' => match set(&mut bytes) {
                    Some(set) => set,
                    None => {
                        return refuse("has a [ without its ]; put \\ before one that stands for itself".to_owned());
                    }
                },
                b'\\' => Piece::Byte(bytes.next().unwrap_or(b'\\')),
                byte => Piece::Byte(byte),
            });
        }
        segments.push(segment);
        Ok(Self { text: text.to_owned(), segments })
    }
}

/// What follows a bracket, up to the one that closes it.
fn set(bytes: &mut impl Iterator<Item = u8>) -> Option<Piece> {
    let mut bytes = bytes.peekable();
    let is_outside = bytes.next_if_eq(&b'^').is_some();
    let mut ranges = Vec::new();
    loop {
        let first = match bytes.next()? {
            b']' => return Some(Piece::Set { is_outside, ranges }),
            b'\\' => bytes.next()?,
            byte => byte,
        };
        let last = match bytes.next_if_eq(&b'-') {
            Some(_) => bytes.next()?,
            None => first,
        };
        ranges.push((first.min(last), first.max(last)));
    }
}

impl TryFrom<String> for KeyPattern {
    type Error = Invalid;
    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<KeyPattern> for String {
    fn from(pattern: KeyPattern) -> Self {
        pattern.text
    }
}

impl fmt::Display for KeyPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_the_whole_key_byte_by_byte() {
        for (pattern, yes, no) in [
            (
                "user_session:*",
                &["user_session:", "user_session:a\n\u{e9}"][..],
                &["user_session", "x user_session:"][..],
            ),
            ("a?c", &["abc", "a.c"], &["ac", "abbc"]),
            ("[a-c]x", &["ax", "cx"], &["dx", "x"]),
            ("[^a-c]x", &["dx", "-x"], &["ax", "x"]),
            ("[z-a]", &["m"], &["A"]),
            (r"[.%\-]", &["%", ".", "-"], &["a"]),
            (r"\*[\]]", &["*]"], &["a]", "*["]),
            ("*a*b", &["ab", "xaxbab"], &["ba"]),
            ("**", &["", "x"], &[]),
            ("ab*ba", &["abba", "abxba"], &["aba"]),
            ("*a*a*a*", &["aaa", "xaxaxax"], &["aa"]),
            ("a**b", &["ab", "axb"], &["a", "abx"]),
        ] {
            let pattern: KeyPattern = pattern.parse().unwrap();
            let wrong = yes.iter().filter(|key| !pattern.matches(key.as_bytes()));
            let wrong: Vec<_> = wrong.chain(no.iter().filter(|key| pattern.matches(key.as_bytes()))).collect();
            assert!(wrong.is_empty(), "{pattern}: {wrong:?}");
        }
    }

    #[test]
    fn patterns_that_cannot_be_meant_are_refused() {
        for pattern in ["", "a[b", &"x".repeat(257)] {
            let refused = pattern.parse::<KeyPattern>().unwrap_err();
            assert_eq!(refused.field(), "keys");
        }
    }
}
