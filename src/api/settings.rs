//! The settings of a namespace as people and the HTTP API write them: one set of words for files, flags and JSON.
//!
//! Owns the notation only; what can work is decided by [`Settings::check`].

use std::{fmt, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Visitor};
use utoipa::ToSchema;

use crate::model::{Invalid, KeyPattern, Late, LeadTime, OnGone, OnRearm, Settings, format_span, parse_span, span_ms};

/// A duration as people write it: `10m`, `1h 30m`, `250ms`. What is no such text is kept as it came, and refused by
/// the conversion that knows the field.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, ToSchema)]
#[schemars(with = "String", extend("pattern" = SpanText::PATTERN))]
#[schema(value_type = String, example = "10m", pattern = "^[0-9]{1,5}(ms|s|m|h|d)( [0-9]{1,5}(ms|s|m|h|d))*$")]
pub struct SpanText(Written);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Written {
    Text(String),
    /// Something else than text, as it is called in an error.
    Other(String),
}

impl SpanText {
    /// What the descriptions of the API and the configuration say of its text.
    pub const PATTERN: &str = "^[0-9]{1,5}(ms|s|m|h|d)( [0-9]{1,5}(ms|s|m|h|d))*$";

    /// The duration; `field` is what the error calls it.
    ///
    /// # Errors
    /// Names the field, what was written and the fix.
    pub fn read(&self, field: &'static str) -> Result<Duration, Invalid> {
        match &self.0 {
            Written::Text(text) => parse_span(field, text),
            Written::Other(other) => {
                Err(Invalid::new(field, format!("is {other}; write a duration as text, as in \"60s\" or \"1h 30m\"")))
            }
        }
    }
}

impl From<Duration> for SpanText {
    fn from(span: Duration) -> Self {
        Self(Written::Text(format_span(span)))
    }
}

impl From<&str> for SpanText {
    fn from(text: &str) -> Self {
        Self(Written::Text(text.to_owned()))
    }
}

impl Serialize for SpanText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Written::Text(text) | Written::Other(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for SpanText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpanVisitor)
    }
}

struct SpanVisitor;

impl Visitor<'_> for SpanVisitor {
    type Value = SpanText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration as text, as in \"60s\" or \"1h 30m\"")
    }

    fn visit_str<E>(self, text: &str) -> Result<SpanText, E> {
        Ok(text.into())
    }

    fn visit_bool<E>(self, value: bool) -> Result<SpanText, E> {
        Ok(SpanText(Written::Other(value.to_string())))
    }

    fn visit_i64<E>(self, number: i64) -> Result<SpanText, E> {
        Ok(SpanText(Written::Other(format!("the number {number}"))))
    }

    fn visit_u64<E>(self, number: u64) -> Result<SpanText, E> {
        Ok(SpanText(Written::Other(format!("the number {number}"))))
    }

    fn visit_f64<E>(self, number: f64) -> Result<SpanText, E> {
        Ok(SpanText(Written::Other(format!("the number {number}"))))
    }
}

/// The settings of a namespace. What is absent has its default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct SettingsForm {
    /// Lead times: how long before expiry to remind, in any order, 32 at most. Default: none, which means no reminders.
    #[schemars(extend("examples" = [["10m", "1m"]]))]
    pub remind: Option<Vec<SpanText>>,
    /// Whether expiry opens a cleanup. Default: true; false only disarms the id.
    pub cleanup: Option<bool>,
    /// How long after expiry the cleanup waits, a duration; until then a renewal still revives. Default: "0s".
    pub grace: Option<SpanText>,
    /// What a reminder does when its deadline is set inside its lead: "crossing" (silent on creation, a renewal from
    /// outside to inside speaks at once), "skip" (silent) or "fire" (speaks at once, also on creation). Default:
    /// "crossing".
    pub late: Option<Late>,
    /// What a new life of an id does to an open cleanup of an earlier one: "supersede" (voids it) or "deliver" (lets it
    /// run). Default: "supersede".
    pub on_rearm: Option<OnRearm>,
    /// The shortest time between two reminders by renewal of the same id and lead, a duration. Default: the lead itself.
    #[schemars(extend("examples" = ["10m"]))]
    pub min_repeat: Option<SpanText>,
    /// The visibility timeout: how long a claimed notice belongs to its worker, a duration. Default: "1m".
    pub lease: Option<SpanText>,
    /// How far the store's clock may step back without repeats, a duration. Default: "5s".
    pub clock_tolerance: Option<SpanText>,
    /// How many workers may vanish with a notice before it becomes a dead letter. Default: 10.
    #[schemars(range(min = 1))]
    #[schema(minimum = 1)]
    pub max_deliveries: Option<u32>,
    /// The largest payload accepted, in bytes. Default: 16384.
    #[schemars(range(max = 16_777_216))]
    #[schema(maximum = 16_777_216)]
    pub max_payload: Option<u32>,
    /// Into how many parts the namespace is split, 1 to 1024; fixed for its life. Default: 1.
    #[schemars(range(min = 1, max = 1024))]
    #[schema(minimum = 1, maximum = 1024)]
    pub shards: Option<u16>,
    /// Whether the ids are keys of the same server whose own TTL is the truth. Default: false.
    pub key_backed: Option<bool>,
    /// Key-backed: patterns of the keys that may be ids, 64 at most; no other key is ever read. Default: none, which
    /// means every key but the store's own.
    #[schemars(extend("examples" = [["user_session:*"]]))]
    pub keys: Option<Vec<String>>,
    /// Key-backed: whether track, renew, remove and expire change the keys, too. Default: false, they are refused.
    pub manage_keys: Option<bool>,
    /// Key-backed: what a key that vanishes before its time does: "cleanup" (opens one) or "drop" (only disarms its
    /// id). Default: "cleanup".
    pub on_gone: Option<OnGone>,
    /// Key-backed: how often the keys inside the largest lead are looked at again, a duration of 100ms or more.
    /// Default: "10s".
    pub recheck_interval: Option<SpanText>,
    /// About how many ended notices each shard remembers, so that one can be looked up later. Default: 0, none.
    #[schemars(range(max = 10_000_000))]
    #[schema(maximum = 10_000_000)]
    pub history: Option<u32>,
    /// Whether ids are secrets: people and logs then see their handles. Default: false.
    pub sensitive_ids: Option<bool>,
    /// A number for these settings: a lower one never overwrites a higher one. Default: none, which always applies.
    #[schemars(extend("examples" = [1]))]
    pub revision: Option<u64>,
}

/// The settings meant, not yet checked: see [`Settings::check`].
impl TryFrom<SettingsForm> for Settings {
    type Error = Invalid;

    fn try_from(form: SettingsForm) -> Result<Self, Invalid> {
        let mut settings = Self::default();
        read_spans(&form, &mut settings)?;
        // Every field by its name: one that is new does not compile until it is here.
        let SettingsForm {
            remind,
            cleanup,
            grace: _,
            late,
            on_rearm,
            min_repeat: _,
            lease: _,
            clock_tolerance: _,
            max_deliveries,
            max_payload,
            shards,
            key_backed,
            keys,
            manage_keys,
            on_gone,
            recheck_interval: _,
            history,
            sensitive_ids,
            revision,
        } = form;
        settings.remind = remind.unwrap_or_default().iter().map(read_lead).collect::<Result<_, _>>()?;
        settings.keys = keys.unwrap_or_default().iter().map(|text| read_pattern(text)).collect::<Result<_, _>>()?;
        take(&mut settings.cleanup, cleanup);
        take(&mut settings.late, late);
        take(&mut settings.on_rearm, on_rearm);
        take(&mut settings.max_deliveries, max_deliveries);
        take(&mut settings.max_payload, max_payload);
        take(&mut settings.shards, shards);
        take(&mut settings.key_backed, key_backed);
        take(&mut settings.manage_keys, manage_keys);
        take(&mut settings.on_gone, on_gone);
        take(&mut settings.history, history);
        take(&mut settings.sensitive_ids, sensitive_ids);
        settings.revision = revision;
        Ok(settings)
    }
}

/// The fields that are durations.
fn read_spans(form: &SettingsForm, settings: &mut Settings) -> Result<(), Invalid> {
    for (field, written, place) in [
        ("grace", &form.grace, &mut settings.grace),
        ("lease", &form.lease, &mut settings.lease),
        ("clock_tolerance", &form.clock_tolerance, &mut settings.clock_tolerance),
        ("recheck_interval", &form.recheck_interval, &mut settings.recheck_interval),
    ] {
        if let Some(span) = written {
            *place = span.read(field)?;
        }
    }
    settings.min_repeat = form.min_repeat.as_ref().map(|span| span.read("min_repeat")).transpose()?;
    Ok(())
}

fn read_lead(span: &SpanText) -> Result<LeadTime, Invalid> {
    let named = |problem: Invalid| Invalid::new("remind", format!("has a {problem}"));
    LeadTime::from_millis(span_ms(span.read("remind")?)).map_err(named)
}

fn read_pattern(text: &str) -> Result<KeyPattern, Invalid> {
    text.parse()
}

fn take<T>(place: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *place = value;
    }
}

/// All settings, none left out; only what has no value by default may be absent.
impl From<&Settings> for SettingsForm {
    fn from(settings: &Settings) -> Self {
        let Settings {
            remind,
            cleanup,
            grace,
            late,
            on_rearm,
            min_repeat,
            lease,
            clock_tolerance,
            max_deliveries,
            max_payload,
            shards,
            key_backed,
            keys,
            manage_keys,
            on_gone,
            recheck_interval,
            history,
            sensitive_ids,
            revision,
        } = settings;
        Self {
            remind: Some(remind.iter().map(|lead| lead.as_duration().into()).collect()),
            cleanup: Some(*cleanup),
            grace: Some((*grace).into()),
            late: Some(*late),
            on_rearm: Some(*on_rearm),
            min_repeat: min_repeat.map(Into::into),
            lease: Some((*lease).into()),
            clock_tolerance: Some((*clock_tolerance).into()),
            max_deliveries: Some(*max_deliveries),
            max_payload: Some(*max_payload),
            shards: Some(*shards),
            key_backed: Some(*key_backed),
            keys: Some(keys.iter().map(ToString::to_string).collect()),
            manage_keys: Some(*manage_keys),
            on_gone: Some(*on_gone),
            recheck_interval: Some((*recheck_interval).into()),
            history: Some(*history),
            sensitive_ids: Some(*sensitive_ids),
            revision: *revision,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Settings, Invalid> {
        serde_json::from_str::<SettingsForm>(json).unwrap().try_into()
    }

    #[test]
    fn what_is_absent_has_its_default() {
        assert_eq!(read("{}").unwrap(), Settings::default());
        assert_eq!(read(r#"{"lease": null, "keys": null}"#).unwrap(), Settings::default());
    }

    #[test]
    fn every_setting_survives_its_form() {
        let settings = Settings {
            remind: vec!["10m".parse().unwrap(), "1m".parse().unwrap()],
            cleanup: false,
            grace: Duration::from_millis(1_500),
            late: Late::Fire,
            on_rearm: OnRearm::Deliver,
            min_repeat: Some(Duration::from_secs(3)),
            lease: Duration::from_secs(90),
            clock_tolerance: Duration::from_secs(6),
            max_deliveries: 11,
            max_payload: 12,
            shards: 13,
            key_backed: true,
            keys: vec!["a:*".parse().unwrap()],
            manage_keys: true,
            on_gone: OnGone::Drop,
            recheck_interval: Duration::from_secs(14),
            history: 15,
            sensitive_ids: true,
            revision: Some(16),
        };
        let form = SettingsForm::from(&settings);
        let json = serde_json::to_value(&form).unwrap();
        let default = serde_json::to_value(SettingsForm::from(&Settings::default())).unwrap();
        for (field, value) in json.as_object().unwrap() {
            assert_ne!(*value, default[field], "{field}: the test gives its default");
        }
        assert_eq!(read(&json.to_string()).unwrap(), settings);
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_field() {
        let error = |json: &str| read(json).unwrap_err().to_string();
        assert_eq!(
            error(r#"{"lease": 60}"#),
            r#"lease is the number 60; write a duration as text, as in "60s" or "1h 30m""#
        );
        assert!(error(r#"{"grace": "5 parsecs"}"#).starts_with(r#"grace "5 parsecs": unknown unit"#));
        assert!(error(r#"{"remind": ["10m", 1.5]}"#).starts_with("remind is the number 1.5"));
        assert!(error(r#"{"remind": ["0s"]}"#).starts_with("remind has a lead time of 0 ms"));
        assert!(error(r#"{"keys": [""]}"#).starts_with("keys"), "{}", error(r#"{"keys": [""]}"#));
        assert!(serde_json::from_str::<SettingsForm>(r#"{"leases": 60}"#).is_err());
    }

    #[test]
    fn every_field_says_what_it_is_in_both_descriptions() {
        let json = serde_json::to_value(schemars::schema_for!(SettingsForm)).unwrap();
        let open_api = serde_json::to_value(<SettingsForm as utoipa::PartialSchema>::schema()).unwrap();
        let fields = serde_json::to_value(SettingsForm::default()).unwrap();
        for field in fields.as_object().unwrap().keys() {
            for text in [&json["properties"][field], &open_api["properties"][field]] {
                assert!(text.to_string().contains("Default:"), "{field}: {text}");
            }
        }
    }
}
