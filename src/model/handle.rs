//! Handles: what stands in place of an id that is a secret, and the key that makes them.
//!
//! A handle tells an id from others and finds it again; it does not tell the id. It begins with a few characters of it, so
//! that people can match it with what they know.

use std::{
    fmt::{self, Write as _},
    str::FromStr,
};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Serialize, Serializer};
use sha2::Sha256;

use crate::model::{Id, Invalid};

/// The key of a namespace's handles: 128 random bits, made by the store and never changed. It never shows itself.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct IdKey([u8; 16]);

impl IdKey {
    /// Takes the bytes of a key.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Reads a key as stores keep it: 32 hex digits.
    ///
    /// # Errors
    /// Refuses anything else, without repeating it.
    pub fn from_hex(text: &str) -> Result<Self, Invalid> {
        let number = if is_hex(text, 32) { u128::from_str_radix(text, 16).ok() } else { None };
        let number = number.ok_or_else(|| Invalid::new("id_key", "is no key; it has 32 hex digits"))?;
        Ok(Self(number.to_be_bytes()))
    }

    /// The key as stores keep it.
    pub(crate) fn to_hex(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }

    /// The handle of an id: the same for every process that knows the key.
    pub fn handle(&self, id: &Id) -> Handle {
        Handle { beginning: beginning(id), hash: self.hash(id) }
    }

    /// Whether this is the handle of this id, with or without its beginning.
    pub fn fits(&self, handle: &Handle, id: &Id) -> bool {
        self.hash(id) == handle.hash && (handle.beginning.is_empty() || handle.beginning == beginning(id))
    }

    /// The first 8 bytes of HMAC-SHA-256.
    fn hash(&self, id: &Id) -> u64 {
        // A shorter key is by definition one with zeros behind it.
        let mut block = [0; 64];
        block[..16].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(id.as_bytes());
        mac.finalize().into_bytes().iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
    }
}

impl fmt::Debug for IdKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdKey(***)")
    }
}

/// What stands for an id that must not be shown: its first characters, `~`, and 16 hex digits of a keyed hash.
///
/// Written without the first characters it names the same id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Handle {
    beginning: String,
    hash: u64,
}

impl Handle {
    /// The most characters of an id that its handle shows.
    pub const MAX_SHOWN: usize = 6;

    /// The same without the first characters of the id: `~` and the hash, which no shell and no URL has to escape.
    #[must_use]
    pub fn bare(&self) -> Self {
        Self { beginning: String::new(), hash: self.hash }
    }
}

/// The first characters of an id as it is shown, in whole escapes; at most half of what there is, so that a short id is
/// not told with its handle.
fn beginning(id: &Id) -> String {
    let most = Handle::MAX_SHOWN.min(id.to_string().chars().count() / 2);
    let (mut beginning, mut left) = (String::new(), most);
    let mut piece = String::new();
    // The writing ends early with what has no place any more, which is no error here.
    id.write_pieces(|shown| {
        piece.clear();
        piece.write_fmt(shown)?;
        left = left.checked_sub(piece.chars().count()).ok_or(fmt::Error)?;
        beginning.push_str(&piece);
        Ok(())
    })
    .unwrap_or_default();
    beginning
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{:016x}", self.beginning, self.hash)
    }
}

impl FromStr for Handle {
    type Err = Invalid;

    /// Reads a handle. What is none is not repeated in the error: it may be an id.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong = || {
            Invalid::new("handle", "is none; give what outputs show in place of an id, as in abcdef~0123456789abcdef")
        };
        let (beginning, digits) = text.rsplit_once('~').ok_or_else(wrong)?;
        if beginning.chars().count() > Self::MAX_SHOWN || !is_hex(digits, 16) {
            return Err(wrong());
        }
        let hash = u64::from_str_radix(digits, 16).map_err(|_| wrong())?;
        Ok(Self { beginning: beginning.to_owned(), hash })
    }
}

impl Serialize for Handle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> IdKey {
        IdKey::from_hex("000102030405060708090a0b0c0d0e0f").unwrap()
    }

    fn handle(id: impl Into<Vec<u8>>) -> String {
        key().handle(&Id::new(id).unwrap()).to_string()
    }

    #[test]
    fn a_handle_is_the_beginning_and_the_documented_hash() {
        // python3 -c 'import hmac, hashlib; print(hmac.new(bytes(range(16)), b"abc", hashlib.sha256).hexdigest()[:16])'
        assert_eq!(handle("user_session:wang2024"), "user_s~cdbb8810c47beddf");
        assert_eq!(handle("abc"), "a~d601cc177559b024");
        assert_eq!(handle(*b"\xFF\x00\n"), "\\xFF~e8d93be40f231030");
    }

    #[test]
    fn a_handle_never_shows_more_than_half_of_an_id_nor_half_of_an_escape() {
        let shown = |id: &[u8]| handle(id).rsplit_once('~').unwrap().0.to_owned();
        for (id, beginning) in [
            (&b"a"[..], ""),
            (b"ab", "a"),
            (b"abcdefghijk", "abcde"),
            (b"abcdefghijklm", "abcdef"),
            ("äöüßäöüßäöüß".as_bytes(), "äöüßäö"),
            (b"abcd\xFF\xFF\xFF\xFF", "abcd"),
            (b"ab\x1B[31mabcdefg", "ab"),
            (b"~~~~~~~~", "~~~~"),
        ] {
            assert_eq!(shown(id), beginning, "{}", id.escape_ascii());
        }
    }

    #[test]
    fn a_handle_is_read_as_it_is_written_and_without_its_beginning() {
        let (key, id) = (key(), Id::new("a~b: c\u{1b}é~").unwrap());
        let written = key.handle(&id);
        assert_eq!(written.to_string().parse::<Handle>().unwrap(), written);
        let bare: Handle = written.bare().to_string().parse().unwrap();
        assert!(key.fits(&written, &id) && key.fits(&bare, &id));
        let other = Handle { beginning: "b".to_owned(), ..written.clone() };
        assert!(!key.fits(&other, &id) && !key.fits(&written, &Id::new("a~b: c").unwrap()));
        assert!(!IdKey::default().fits(&written, &id));
    }

    #[test]
    fn what_is_no_handle_is_refused_and_not_repeated() {
        for bad in ["", "abcdef", "abcdef~", "abcdef~0123", "abcdefg~0123456789abcdef", "a~+123456789abcdef"] {
            let refused = bad.parse::<Handle>().unwrap_err();
            assert_eq!(refused.field(), "handle", "{bad}");
            assert!(bad.is_empty() || !refused.to_string().contains(&format!("\"{bad}\"")), "{refused}");
        }
        assert_eq!(IdKey::from_hex("00").unwrap_err().field(), "id_key");
    }

    #[test]
    fn a_key_shows_itself_to_nobody() {
        assert_eq!(format!("{:?}", key()), "IdKey(***)");
        assert_eq!(key().to_hex(), "000102030405060708090a0b0c0d0e0f");
        assert_eq!(IdKey::from_hex(&key().to_hex()), Ok(IdKey::from_bytes(std::array::from_fn(|n| n as u8))));
    }
}
