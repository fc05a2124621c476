//! Where a list by expiry goes on: what one page prints and the next command takes.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::model::{Handle, Id, Invalid, ShownId};

/// A place in a list by expiry, after one of its entries: `<ms>:<id in base64>`, or `<ms>:~<hash of its handle>` where ids
/// are masked. It holds no more of the id than the list shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// When the last entry seen expires, in ms.
    pub expires_at_ms: i64,
    /// That entry.
    pub last: ShownId,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.expires_at_ms)?;
        match &self.last {
            ShownId::Id(id) => f.write_str(&id.to_base64()),
            ShownId::Handle(handle) => handle.bare().fmt(f),
        }
    }
}

impl FromStr for Cursor {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong = || Invalid::new("after", "is no cursor; give what the page before printed as next");
        let (ms, last) = text.split_once(':').ok_or_else(wrong)?;
        let expires_at_ms = ms.parse().map_err(|_| wrong())?;
        let last = match last.starts_with('~') {
            true => ShownId::Handle(last.parse::<Handle>().map_err(|_| wrong())?),
            false => {
                let bytes = URL_SAFE_NO_PAD.decode(last.trim_end_matches('=')).map_err(|_| wrong())?;
                ShownId::Id(Id::new(bytes).map_err(|_| wrong())?)
            }
        };
        Ok(Self { expires_at_ms, last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{IdKey, IdMask};

    #[test]
    fn a_cursor_survives_being_printed() {
        let id = Id::new([0xFF, b':']).unwrap();
        let cursor = Cursor { expires_at_ms: -5, last: IdMask::none().show(&id) };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for bad in ["", "5", "x:YQ", "5:", "5:%", "5:~", "5:~xyz"] {
            assert_eq!(bad.parse::<Cursor>().unwrap_err().field(), "after", "{bad}");
        }
    }

    #[test]
    fn a_masked_cursor_has_nothing_of_the_id_and_nothing_to_escape() {
        let (key, id) = (IdKey::from_bytes([1; 16]), Id::new("a $b 'c' and more").unwrap());
        let text = Cursor { expires_at_ms: 5, last: IdMask::new(key.clone()).show(&id) }.to_string();
        assert!(text.starts_with("5:~") && text.len() == 19, "{text}");
        let ShownId::Handle(handle) = text.parse::<Cursor>().unwrap().last else { panic!("{text} has an id") };
        assert!(key.fits(&handle, &id));
    }
}
