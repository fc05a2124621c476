//! Notices: what is claimed, delivered and retried, and the id that names one everywhere.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::model::{Id, Invalid, LeadTime, Name};

/// A reminder or a cleanup of one life of a deadline.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Notice {
    /// The namespace.
    pub namespace: Name,
    /// Which reminder, or why the cleanup.
    pub kind: Kind,
    /// The expiry it speaks of, in whole milliseconds since the epoch (a fraction set by a raw client is cut).
    pub expires_at_ms: i64,
    /// The id of the deadline.
    pub id: Id,
}

/// What a notice says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// "This expires in about `lead`."
    Reminder(LeadTime),
    /// "This has expired", or ended otherwise.
    Cleanup(Reason),
}

/// Why a cleanup was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// Its expiry and grace passed.
    Expired,
    /// Somebody ended it early with `expire`.
    Ended,
    /// Its key vanished early (key-backed namespaces).
    Gone,
}

impl Reason {
    /// The word for the reason in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Ended => "ended",
            Self::Gone => "gone",
        }
    }
}

impl Kind {
    /// `reminder` or `cleanup`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reminder(_) => "reminder",
            Self::Cleanup(_) => "cleanup",
        }
    }

    /// The kind as it is stored: the lead in ms, or `0`, `0x`, `0g` for a cleanup that expired, ended or is gone.
    pub fn to_stored(self) -> String {
        match self {
            Self::Reminder(lead) => lead.as_millis().to_string(),
            Self::Cleanup(Reason::Expired) => "0".to_owned(),
            Self::Cleanup(Reason::Ended) => "0x".to_owned(),
            Self::Cleanup(Reason::Gone) => "0g".to_owned(),
        }
    }

    /// Reads a stored kind; `None` for anything else.
    pub fn from_stored(text: &str) -> Option<Self> {
        match text {
            "0" => Some(Self::Cleanup(Reason::Expired)),
            "0x" => Some(Self::Cleanup(Reason::Ended)),
            "0g" => Some(Self::Cleanup(Reason::Gone)),
            lead => Some(Self::Reminder(LeadTime::from_millis(lead.parse().ok()?).ok()?)),
        }
    }
}

impl Notice {
    /// The id of the notice: the same over attempts, stores and machines.
    pub fn event_id(&self) -> EventId {
        let mut hash = Sha256::new();
        hash.update(self.namespace.as_str());
        hash.update([0]);
        hash.update(self.kind.to_stored());
        hash.update([0]);
        hash.update(self.expires_at_ms.to_string());
        hash.update([0]);
        hash.update(self.id.as_bytes());
        let digest = hash.finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        EventId(bytes)
    }

    /// How long before expiry it speaks, in milliseconds; 0 for a cleanup.
    pub fn lead_ms(&self) -> i64 {
        match self.kind {
            Kind::Reminder(lead) => lead.as_millis(),
            Kind::Cleanup(_) => 0,
        }
    }
}

/// The stable id of a notice: the first 32 hex digits of SHA-256 over `namespace 0 kind 0 e 0 id` (zero bytes between).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId([u8; 16]);

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventId({self})")
    }
}

impl FromStr for EventId {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong = || Invalid::new("event id", format!("\"{}\": give its 32 hex digits", text.escape_debug()));
        if text.len() != 32 || !text.bytes().all(|c| c.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        u128::from_str_radix(text, 16).map(|number| Self(number.to_be_bytes())).map_err(|_| wrong())
    }
}

impl Serialize for EventId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(kind: Kind, id: &[u8]) -> Notice {
        Notice {
            namespace: Name::new("namespace", "session").unwrap(),
            kind,
            expires_at_ms: 1_796_083_200_000,
            id: Id::new(id).unwrap(),
        }
    }

    #[test]
    fn the_event_id_is_the_documented_hash() {
        // python3 -c 'import hashlib; print(hashlib.sha256(b"session\x00600000\x001796083200000\x00a").hexdigest()[:32])'
        let reminder = Kind::Reminder(LeadTime::from_millis(600_000).unwrap());
        assert_eq!(notice(reminder, b"a").event_id().to_string(), "d7d489ae72018e6431c0e0ca54a7d333");
        // the same over b"session\x000x\x001796083200000\x00a"
        assert_eq!(
            notice(Kind::Cleanup(Reason::Ended), b"a").event_id().to_string(),
            "2607addae75421e53c2fe287b751b717"
        );
    }

    #[test]
    fn an_event_id_is_read_as_it_is_written() {
        for text in ["d7d489ae72018e6431c0e0ca54a7d333", "00000000000000000000000000000001"] {
            assert_eq!(text.parse::<EventId>().unwrap().to_string(), text);
        }
        for bad in ["", "d7d4", "+7d489ae72018e6431c0e0ca54a7d333", "g7d489ae72018e6431c0e0ca54a7d333"] {
            assert_eq!(bad.parse::<EventId>().unwrap_err().field(), "event id", "{bad}");
        }
    }

    #[test]
    fn a_kind_survives_being_stored() {
        let lead = Kind::Reminder(LeadTime::from_millis(1).unwrap());
        for kind in [lead, Kind::Cleanup(Reason::Expired), Kind::Cleanup(Reason::Ended), Kind::Cleanup(Reason::Gone)] {
            assert_eq!(Kind::from_stored(&kind.to_stored()), Some(kind));
        }
        assert_eq!(Kind::from_stored("x"), None);
        assert_eq!(Kind::from_stored("-1"), None);
    }
}
