//! How stores write notices and tokens as bytes: `<kind>:<e>:<id>`, and `<fence>:<notice>`.
//!
//! The fence is n * 64 + c: n hand-outs so far, and c, which is 0 while nobody holds the notice.

use crate::model::{Id, Kind, Name, Notice};
use crate::store::Token;

/// Reads a notice; `None` if the bytes are none.
pub(crate) fn read_notice(namespace: &Name, stored: &[u8]) -> Option<Notice> {
    let mut parts = stored.splitn(3, |byte| *byte == b':');
    let kind = Kind::from_stored(std::str::from_utf8(parts.next()?).ok()?)?;
    let expires_at_ms = whole(std::str::from_utf8(parts.next()?).ok()?)?;
    Some(Notice { namespace: namespace.clone(), kind, expires_at_ms, id: Id::new(parts.next()?).ok()? })
}

/// Writes a notice.
pub(crate) fn write_notice(notice: &Notice) -> Vec<u8> {
    let mut bytes = format!("{}:{}:", notice.kind.to_stored(), notice.expires_at_ms).into_bytes();
    bytes.extend_from_slice(notice.id.as_bytes());
    bytes
}

/// The bytes of the id in a stored notice.
pub(crate) fn id_of_notice(notice: &[u8]) -> Option<&[u8]> {
    notice.splitn(3, |byte| *byte == b':').nth(2)
}

/// The token of a hand-out.
pub(crate) fn write_token(fence: i64, notice: &[u8]) -> Token {
    let mut bytes = format!("{fence}:").into_bytes();
    bytes.extend_from_slice(notice);
    Token::from_bytes(bytes)
}

/// The fence and the notice in a token; `None` for what is none.
pub(crate) fn split_token(token: &Token) -> Option<(u32, &[u8])> {
    let bytes = token.as_bytes();
    let mut parts = bytes.splitn(4, |byte| *byte == b':');
    let mut word = || std::str::from_utf8(parts.next()?).ok();
    let fence = word()?;
    let (number, kind, expires_at) = (fence.parse().ok()?, word()?, word()?);
    let is_notice = kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && Kind::from_stored(kind).is_some()
        && whole(expires_at).is_some()
        && (1..=Id::MAX_LEN).contains(&parts.next()?.len());
    is_notice.then(|| (number, &bytes[fence.len() + 1..]))
}

/// The bytes that a script is given for a token: for what is none, those of one that nobody has.
pub(crate) fn stored_token(token: &Token) -> &[u8] {
    split_token(token).map_or(b"0:0:0:-", |_| token.as_bytes())
}

/// The bytes of the id in a token. What is no token has none and goes to some shard, which calls it stale.
pub(crate) fn id_of_token(token: &Token) -> &[u8] {
    split_token(token).and_then(|(_, notice)| id_of_notice(notice)).unwrap_or_default()
}

/// A score or expiry as a whole number, its fraction cut.
pub(crate) fn whole(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let number: f64 = text.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "a float cast saturates, and beyond 2^53 no instant is meant")]
    (!number.is_nan()).then(|| number.floor() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_and_tokens_are_read_as_they_are_written() {
        let namespace = Name::new("namespace", "session").unwrap();
        for stored in [b"0x:1796083200000:a:b\n\xFF".as_slice(), b"600000:1796083200000::"] {
            let notice = read_notice(&namespace, stored).unwrap();
            assert_eq!(write_notice(&notice), stored);
            assert_eq!(id_of_notice(stored), Some(notice.id.as_bytes()));
            assert_eq!(split_token(&write_token(65, stored)), Some((65, stored)));
        }
        assert_eq!(read_notice(&namespace, b"10:1796083200000.75:a").unwrap().expires_at_ms, 1_796_083_200_000);
        assert_eq!(read_notice(&namespace, b"10:1796083200000"), None);
        for none in
            ["", "65", ":", "65:", "x:10:0:a", "65:10:0", "65:10:0:", "65:+5:0:a", "65:x:0:a", "65:10:x:a", "65:10::a"]
        {
            let token = Token::from_bytes(none);
            assert_eq!((split_token(&token), stored_token(&token)), (None, &b"0:0:0:-"[..]), "{none}");
        }
        assert_eq!(split_token(&Token::from_bytes([b"65:10:0:".as_slice(), &[b'a'; 1025]].concat())), None);
        assert!(split_token(&Token::from_bytes(*b"0:0:0:-")).is_some());
    }
}
