//! The id of a deadline: any bytes, 1 to 1024 of them.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::model::Invalid;

/// The id of a deadline within its namespace: any 1 to 1024 bytes, text or not.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(Vec<u8>);

impl Id {
    /// The longest id, in bytes.
    pub const MAX_LEN: usize = 1024;

    /// Checks and takes the bytes of an id.
    ///
    /// # Errors
    /// Refuses an empty id and one of more than [`Id::MAX_LEN`] bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, Invalid> {
        let bytes = bytes.into();
        match bytes.len() {
            0 => Err(Invalid::new("id", "is empty; give 1 to 1024 bytes")),
            n if n > Self::MAX_LEN => Err(Invalid::new("id", format!("has {n} bytes; at most 1024 are allowed"))),
            _ => Ok(Self(bytes)),
        }
    }

    /// The bytes of the id.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The id as text, if it is UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The id in URL-safe base64 without padding (RFC 4648, section 5), for where text is needed and it is not UTF-8.
    pub fn to_base64(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.0)
    }

    /// Writes the id as it is shown, character by character and escape by escape.
    pub(super) fn write_pieces(&self, mut write: impl FnMut(fmt::Arguments<'_>) -> fmt::Result) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if c.is_control() {
                    write(format_args!("{}", c.escape_default()))?
                } else {
                    write(format_args!("{c}"))?
                }
            }
            for byte in chunk.invalid() {
                write(format_args!("\\x{byte:02X}"))?;
            }
        }
        Ok(())
    }
}

/// Text as it is, with control characters escaped; bytes that are not UTF-8 as `\xNN`.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_pieces(|piece| f.write_fmt(piece))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

impl TryFrom<&str> for Id {
    type Error = Invalid;
    fn try_from(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_1_to_1024_bytes_of_any_kind() {
        assert!(Id::new([0xFFu8, 0, b'\n']).is_ok());
        assert!(Id::new(vec![b'x'; 1024]).is_ok());
        assert_eq!(Id::new("").unwrap_err().to_string(), "id is empty; give 1 to 1024 bytes");
        assert_eq!(Id::new(vec![b'x'; 1025]).unwrap_err().to_string(), "id has 1025 bytes; at most 1024 are allowed");
    }

    #[test]
    fn an_id_is_shown_on_one_line_whatever_its_bytes() {
        assert_eq!(Id::new(b"a\n\xFFb".to_vec()).unwrap().to_string(), "a\\n\\xFFb");
        assert_eq!(Id::new("é{}:").unwrap().to_string(), "é{}:");
    }
}
