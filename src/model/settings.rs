//! The settings of a namespace: what is said when, and how its claims behave.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::model::{Invalid, KeyPattern, LeadTime, format_span, span_ms};

/// The settings of one namespace. Every field has a default; [`Settings::check`] refuses what cannot work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Settings {
    /// Lead times of the reminders, in any order. Default: none.
    pub remind: Vec<LeadTime>,
    /// Whether expiry opens a cleanup. Default: yes. Off: the id is only disarmed.
    pub cleanup: bool,
    /// How long after expiry the cleanup waits and a renewal still revives. Default: 0.
    #[serde(rename = "grace_ms", with = "millis")]
    pub grace: Duration,
    /// What a reminder does when its deadline is set inside its lead. Default: [`Late::Crossing`].
    pub late: Late,
    /// What a new life does to an open cleanup of an earlier one. Default: [`OnRearm::Supersede`].
    pub on_rearm: OnRearm,
    /// The shortest time between two crossings of the same id and lead. Default: none, which means the lead itself.
    #[serde(rename = "min_repeat_ms", with = "millis::option")]
    pub min_repeat: Option<Duration>,
    /// The visibility timeout: how long a claimed notice belongs to its worker. Default: 60 s.
    #[serde(rename = "lease_ms", with = "millis")]
    pub lease: Duration,
    /// How far the store's clock may step back without repeats. Default: 5 s.
    #[serde(rename = "clock_tolerance_ms", with = "millis")]
    pub clock_tolerance: Duration,
    /// Hand-outs whose worker vanished before a notice becomes a dead letter of class `lapsed`. Default: 10.
    pub max_deliveries: u32,
    /// The largest payload accepted, in bytes. Default: 16 KiB.
    pub max_payload: u32,
    /// Into how many parts the namespace is split; fixed for its life. Default: 1.
    pub shards: u16,
    /// Whether the ids are real keys whose own TTL is the truth. Default: no.
    pub key_backed: bool,
    /// Key-backed: the patterns of the keys that may be ids; no other key is ever read. Default: none, which means every
    /// key but the store's own.
    pub keys: Vec<KeyPattern>,
    /// Key-backed: whether track, renew, remove and expire act on the keys, too. Default: no, they are refused.
    pub manage_keys: bool,
    /// Key-backed: what a key that vanishes before its time does. Default: [`OnGone::Cleanup`].
    pub on_gone: OnGone,
    /// Key-backed: how often the keys of ids inside the largest lead are looked at again. Default: 10 s.
    #[serde(rename = "recheck_interval_ms", with = "millis")]
    pub recheck_interval: Duration,
    /// About how many ended notices each shard remembers, so that one can be looked up later. Default: 0, which means none.
    pub history: u32,
    /// Whether ids are secrets: people and logs then see their handles. Default: no.
    pub sensitive_ids: bool,
    /// A number for these settings: a lower one never overwrites a higher one. Default: none, which always applies.
    pub revision: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            remind: Vec::new(),
            cleanup: true,
            grace: Duration::ZERO,
            late: Late::default(),
            on_rearm: OnRearm::default(),
            min_repeat: None,
            lease: Duration::from_secs(60),
            clock_tolerance: Duration::from_secs(5),
            max_deliveries: 10,
            max_payload: 16 * 1024,
            shards: 1,
            key_backed: false,
            keys: Vec::new(),
            manage_keys: false,
            on_gone: OnGone::default(),
            recheck_interval: Duration::from_secs(10),
            history: 0,
            sensitive_ids: false,
            revision: None,
        }
    }
}

impl Settings {
    /// Adds a reminder at `lead` before expiry.
    #[must_use]
    pub fn remind(mut self, lead: LeadTime) -> Self {
        self.remind.push(lead);
        self
    }

    /// Sets the time between expiry and cleanup.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets what a reminder does when its deadline is set inside its lead.
    #[must_use]
    pub fn late(mut self, late: Late) -> Self {
        self.late = late;
        self
    }

    /// Sets the visibility timeout.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the number of shards.
    #[must_use]
    pub fn shards(mut self, shards: u16) -> Self {
        self.shards = shards;
        self
    }

    /// Whether expiry opens a cleanup.
    #[must_use]
    pub fn cleanup(mut self, cleanup: bool) -> Self {
        self.cleanup = cleanup;
        self
    }

    /// Sets about how many ended notices each shard remembers.
    #[must_use]
    pub fn history(mut self, history: u32) -> Self {
        self.history = history;
        self
    }

    /// Sets whether ids are secrets, which people and logs see only by their handles.
    #[must_use]
    pub fn sensitive_ids(mut self, sensitive_ids: bool) -> Self {
        self.sensitive_ids = sensitive_ids;
        self
    }

    /// Whether the ids are real keys whose own TTL is the truth.
    #[must_use]
    pub fn key_backed(mut self, key_backed: bool) -> Self {
        self.key_backed = key_backed;
        self
    }

    /// Adds a pattern of keys that may be ids.
    #[must_use]
    pub fn keys(mut self, pattern: KeyPattern) -> Self {
        self.keys.push(pattern);
        self
    }

    /// Sets whether track, renew, remove and expire act on the keys, too.
    #[must_use]
    pub fn manage_keys(mut self, manage_keys: bool) -> Self {
        self.manage_keys = manage_keys;
        self
    }

    /// Sets what a key that vanishes before its time does.
    #[must_use]
    pub fn on_gone(mut self, on_gone: OnGone) -> Self {
        self.on_gone = on_gone;
        self
    }

    /// The lead times, smallest first.
    pub fn leads(&self) -> Vec<LeadTime> {
        let mut leads = self.remind.clone();
        leads.sort_unstable();
        leads
    }

    /// Refuses settings that cannot work.
    ///
    /// # Errors
    /// Names the first field that is wrong and the fix.
    pub fn check(&self) -> Result<(), Invalid> {
        let leads = self.leads();
        if let Some(twice) = leads.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Invalid::new("remind", format!("names {} twice; give each lead time once", twice[0])));
        }
        if leads.len() > 32 {
            return Err(Invalid::new("remind", format!("has {} lead times; give at most 32", leads.len())));
        }
        if span_ms(self.lease) < 1 {
            return Err(Invalid::new("lease", "is 0s; give the time a handler needs, as in 60s"));
        }
        if !(1..=1024).contains(&self.shards) {
            return Err(Invalid::new("shards", format!("is {}; give 1 to 1024", self.shards)));
        }
        if self.max_deliveries == 0 {
            return Err(Invalid::new("max_deliveries", "is 0; give at least 1"));
        }
        if self.max_payload > 16 * 1024 * 1024 {
            return Err(Invalid::new("max_payload", format!("is {} bytes; give at most 16 MiB", self.max_payload)));
        }
        if self.history > 10_000_000 {
            return Err(Invalid::new("history", format!("is {}; give at most 10000000", self.history)));
        }
        if span_ms(self.recheck_interval) < 100 {
            let interval = format_span(self.recheck_interval);
            return Err(Invalid::new("recheck_interval", format!("is {interval}; give at least 100ms")));
        }
        if self.keys.len() > 64 {
            return Err(Invalid::new("keys", format!("has {} patterns; give at most 64", self.keys.len())));
        }
        if self.key_backed && self.manage_keys && self.keys.is_empty() {
            return Err(Invalid::new(
                "manage_keys",
                "is given without a pattern; say with keys which keys may be changed",
            ));
        }
        let of_keys = [
            ("keys", !self.keys.is_empty()),
            ("manage_keys", self.manage_keys),
            ("on_gone", self.on_gone != OnGone::default()),
        ];
        match of_keys.into_iter().find(|(_, is_given)| *is_given && !self.key_backed) {
            Some((field, _)) => Err(Invalid::new(field, "is only for key-backed ids; set key_backed, too")),
            None => Ok(()),
        }
    }
}

/// Makes the small enums of the settings alike: one word each, in every notation.
macro_rules! words {
    ($name:ident, $field:literal, $all:literal, { $($variant:ident => $word:literal),+ }) => {
        impl $name {
            /// The word in flags, JSON and scripts.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl FromStr for $name {
            type Err = Invalid;
            fn from_str(text: &str) -> Result<Self, Invalid> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    other => Err(Invalid::new($field, format!(concat!("\"{}\": use ", $all), other.escape_debug()))),
                }
            }
        }
    };
}

/// What a reminder does when its deadline is set inside its lead.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "daemon", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub enum Late {
    /// Silent on creation; a renewal from outside to inside speaks at once.
    #[default]
    Crossing,
    /// Silent.
    Skip,
    /// The tightest late lead speaks at once, also on creation.
    Fire,
}

words!(Late, "late", "crossing, skip or fire", { Crossing => "crossing", Skip => "skip", Fire => "fire" });

/// What a new life does to an open cleanup of an earlier one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "daemon", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub enum OnRearm {
    /// Voids it: the lives share what would be cleaned.
    #[default]
    Supersede,
    /// Lets it run: each life owns resources of its own.
    Deliver,
}

words!(OnRearm, "on_rearm", "supersede or deliver", { Supersede => "supersede", Deliver => "deliver" });

/// What a key that vanishes before its time does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "daemon", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub enum OnGone {
    /// Opens a cleanup of reason `gone`, unless the key is back when that is handed out.
    #[default]
    Cleanup,
    /// Disarms its id and nothing more.
    Drop,
}

words!(OnGone, "on_gone", "cleanup or drop", { Cleanup => "cleanup", Drop => "drop" });

/// Whether ids armed before the first worker ran, and inside a lead already, are reminded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "daemon", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub enum FirstStart {
    /// They are.
    #[default]
    Speak,
    /// They are not.
    Silent,
}

words!(FirstStart, "first_start", "speak or silent", { Speak => "speak", Silent => "silent" });

/// Durations in whole milliseconds, as they are stored.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    use crate::model::span_ms;

    pub(super) fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(span_ms(*span))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }

    pub(super) mod option {
        use super::{Deserialize, Deserializer, Duration, Serializer, span_ms};

        pub(in super::super) fn serialize<S: Serializer>(
            span: &Option<Duration>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match span {
                Some(span) => serializer.serialize_some(&span_ms(*span)),
                None => serializer.serialize_none(),
            }
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Duration>, D::Error> {
            Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(text: &str) -> LeadTime {
        text.parse().unwrap()
    }

    #[test]
    fn settings_survive_being_stored() {
        let settings = Settings { min_repeat: Some(Duration::from_secs(3)), revision: Some(7), ..Settings::default() }
            .remind(lead("10m"))
            .grace(Duration::from_millis(5))
            .late(Late::Fire);
        let stored = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&stored).unwrap(), settings);
        assert_eq!(serde_json::from_str::<Settings>("{}").unwrap(), Settings::default());
    }

    #[test]
    fn settings_that_cannot_work_are_refused_by_field() {
        let field = |settings: Settings| settings.check().unwrap_err().field().to_owned();
        assert_eq!(field(Settings::default().remind(lead("60s")).remind(lead("1m"))), "remind");
        assert_eq!(field(Settings::default().lease(Duration::ZERO)), "lease");
        assert_eq!(field(Settings::default().shards(0)), "shards");
        assert_eq!(field(Settings::default().manage_keys(true)), "manage_keys");
        assert_eq!(field(Settings::default().key_backed(true).manage_keys(true)), "manage_keys");
        assert_eq!(field(Settings::default().keys("a:*".parse().unwrap())), "keys");
        assert_eq!(Settings::default().check(), Ok(()));
        assert_eq!(Settings::default().key_backed(true).keys("a:*".parse().unwrap()).manage_keys(true).check(), Ok(()));
    }

    #[test]
    fn leads_come_smallest_first() {
        let settings = Settings::default().remind(lead("10m")).remind(lead("1m"));
        assert_eq!(settings.leads(), [lead("1m"), lead("10m")]);
    }
}
