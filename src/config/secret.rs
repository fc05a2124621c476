//! Secrets: how they are read, and how little of them is shown.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use crate::config::Origin;

/// What stands where a secret is.
pub(super) const MASK: &str = "***";

/// The SHA-256 of a token's secret. Shows nothing of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of a secret.
    pub fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// The bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads `sha256:` and 64 hex digits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("sha256:")?;
        if digits.len() != 64 || !digits.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Refuses the secret of a token that is easily guessed or cannot stand in a header.
pub(super) fn check_token(secret: &str) -> Result<(), &'static str> {
    if secret.len() < 16 {
        return Err("holds fewer than 16 characters; make a secret with: openssl rand -hex 32");
    }
    match secret.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(()),
        false => Err("holds spaces or letters beyond ASCII; make a secret with: openssl rand -hex 32"),
    }
}

/// The content of a file with a secret, without the white space around it.
pub(super) fn read_file(path: &Path) -> Result<String, String> {
    // The cause, but never what stands in it.
    let why = |error: io::Error| format!("\"{}\" cannot be read: {error}", path.display());
    let secret = std::fs::read_to_string(path).map_err(why)?.trim().to_owned();
    if secret.is_empty() { Err(format!("\"{}\" is empty", path.display())) } else { Ok(secret) }
}

/// A path as it was given: a relative one in a file is meant from where that file is.
pub(super) fn from_origin(path: &str, origin: &Origin) -> PathBuf {
    match origin {
        Origin::File(file, _) => file.parent().unwrap_or(Path::new("")).join(path),
        _ => PathBuf::from(path),
    }
}

/// A URL without its password.
pub(super) fn masked_url(url: &str) -> String {
    let (url, query) = match url.split_once('?') {
        Some((url, query)) if !query.contains('@') => (url, Some(query)),
        // A password with a question mark in it.
        _ => (url, None),
    };
    let mut shown = match (url.split_once("://"), url.rfind('@')) {
        (Some((scheme, _)), Some(at)) if at > scheme.len() => {
            let rest = &url[at..];
            match url[scheme.len() + 3..at].split_once(':') {
                Some((user, _)) => format!("{scheme}://{user}:{MASK}{rest}"),
                // Some take a name without a password for one.
                None => format!("{scheme}://{MASK}{rest}"),
            }
        }
        _ => url.to_owned(),
    };
    if let Some(query) = query {
        let parts = query.split('&').map(|part| match part.split_once('=') {
            Some((name, _)) if name.to_lowercase().contains("pass") => format!("{name}={MASK}"),
            _ => part.to_owned(),
        });
        shown = format!("{shown}?{}", parts.collect::<Vec<_>>().join("&"));
    }
    shown
}

/// The URL of a store with a password that stands elsewhere.
pub(super) fn with_password(url: &str, password: &str) -> Result<String, &'static str> {
    const TWICE: &str = "is given beside a URL that has a password; leave one of them out";
    let encoded = encode(password);
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| *scheme != "sqlite") else {
        return Err("is given for a store without passwords; leave it out, or give the URL of a server as store");
    };
    if matches!(scheme, "unix" | "redis+unix") {
        return match rest.contains("pass=") {
            true => Err(TWICE),
            false => Ok(format!("{url}{}pass={encoded}", if rest.contains('?') { '&' } else { '?' })),
        };
    }
    match rest.rsplit_once('@') {
        Some((user, _)) if user.contains(':') => Err(TWICE),
        Some((user, host)) => Ok(format!("{scheme}://{user}:{encoded}@{host}")),
        None => Ok(format!("{scheme}://:{encoded}@{rest}")),
    }
}

/// Percent-encoding, of all but what never needs it.
fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_password() {
        for (url, shown) in [
            ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
            ("redis://user:s3cret@host/0", "redis://user:***@host/0"),
            ("redis://:s3cret@host", "redis://:***@host"),
            ("redis://s3cret@host", "redis://***@host"),
            ("redis://u:s3@cret:s3cret/s3cret?s3cret@host/0", "redis://u:***@host/0"),
            ("redis+unix:///run/redis?user=u&pass=s3cret&db=1", "redis+unix:///run/redis?user=u&pass=***&db=1"),
            ("sqlite:a@b.db", "sqlite:a@b.db"),
        ] {
            assert_eq!(masked_url(url), shown);
        }
    }

    #[test]
    fn a_password_from_elsewhere_is_encoded_into_the_url() {
        let with = |url| with_password(url, "p@ss/w:rd");
        assert_eq!(with("redis://host/0").unwrap(), "redis://:p%40ss%2Fw%3Ard@host/0");
        assert_eq!(with("rediss://user@host").unwrap(), "rediss://user:p%40ss%2Fw%3Ard@host");
        assert_eq!(with("redis+unix:///s?db=1").unwrap(), "redis+unix:///s?db=1&pass=p%40ss%2Fw%3Ard");
        for url in ["redis://u:p@host", "redis+unix:///s?pass=p", "sqlite:a.db"] {
            assert!(with(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_hash_is_64_digits_and_shows_nothing() {
        let hash = TokenHash::parse("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855").unwrap();
        assert_eq!(hash, TokenHash::of(b""));
        assert_eq!(format!("{hash:?}"), "***");
        for bad in ["e3b0", "sha256:e3", &format!("sha256:{}", "g".repeat(64)), &format!("sha256:{}", "é".repeat(32))]
        {
            assert!(TokenHash::parse(bad).is_none(), "{bad}");
        }
    }
}
