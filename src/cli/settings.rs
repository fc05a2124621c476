//! The settings of a namespace as text: for people, and as the command that applies them.

use forewarn::{LeadTime, Name, Settings, model::format_span, store::Configured};

/// The command that gives a namespace these settings.
pub(super) fn apply_words(name: &Name, settings: &Settings) -> String {
    let default = Settings::default();
    let mut words = format!("forewarn namespace apply {name}");
    let mut flag = |name: &str, value: String| {
        let quote = if value.contains(' ') { "'" } else { "" };
        words += &format!(" --{name} {quote}{value}{quote}");
    };
    for lead in settings.leads().iter().rev() {
        flag("remind", lead.to_string());
    }
    for (name, value, standard) in [
        ("grace", settings.grace, default.grace),
        ("lease", settings.lease, default.lease),
        ("clock-tolerance", settings.clock_tolerance, default.clock_tolerance),
        ("recheck-interval", settings.recheck_interval, default.recheck_interval),
    ] {
        if value != standard {
            flag(name, format_span(value));
        }
    }
    if let Some(span) = settings.min_repeat {
        flag("min-repeat", format_span(span));
    }
    for (name, value, standard) in [
        ("late", settings.late.as_str().to_owned(), default.late.as_str().to_owned()),
        ("on-rearm", settings.on_rearm.as_str().to_owned(), default.on_rearm.as_str().to_owned()),
        ("shards", settings.shards.to_string(), default.shards.to_string()),
        ("max-payload", settings.max_payload.to_string(), default.max_payload.to_string()),
        ("max-deliveries", settings.max_deliveries.to_string(), default.max_deliveries.to_string()),
        ("history", settings.history.to_string(), default.history.to_string()),
        ("on-gone", settings.on_gone.as_str().to_owned(), default.on_gone.as_str().to_owned()),
    ] {
        if value != standard {
            flag(name, value);
        }
    }
    if let Some(revision) = settings.revision {
        flag("revision", revision.to_string());
    }
    for pattern in &settings.keys {
        words += &format!(" --key '{}'", pattern.to_string().replace('\'', r"'\''"));
    }
    for (name, is_set) in [
        ("key-backed", settings.key_backed && settings.keys.is_empty()),
        ("manage-keys", settings.manage_keys),
        ("sensitive-ids", settings.sensitive_ids),
        ("no-cleanup", !settings.cleanup),
    ] {
        if is_set {
            words += &format!(" --{name}");
        }
    }
    words
}

/// Settings and routes for people.
pub(super) fn configured_text(name: &Name, configured: &Configured) -> String {
    let fields = fields(configured).into_iter().map(|(field, value)| field_text(field, &value));
    [name.to_string()].into_iter().chain(fields).collect::<Vec<_>>().join("\n")
}

/// One line of such a text.
pub(super) fn field_text(field: &str, value: &str) -> String {
    format!("  {field:<17}{value}")
}

/// The fields of such a text with their values.
pub(super) fn fields(configured: &Configured) -> Vec<(&'static str, String)> {
    let mut fields = settings_fields(&configured.settings);
    let routes: Vec<_> = configured.routes.iter().map(ToString::to_string).collect();
    fields.push(("routes", routes.join(", ")));
    fields
}

/// Those of the settings alone.
pub(super) fn settings_fields(settings: &Settings) -> Vec<(&'static str, String)> {
    let leads: Vec<_> = settings.leads().into_iter().rev().collect();
    let yes = |is_set: bool| if is_set { "yes" } else { "no" }.to_owned();
    let patterns: Vec<_> = settings.keys.iter().map(ToString::to_string).collect();
    let mut fields = vec![
        ("remind", if leads.is_empty() { "never".to_owned() } else { leads_text(&leads) }),
        ("cleanup", yes(settings.cleanup)),
        ("grace", format_span(settings.grace)),
        ("late", settings.late.to_string()),
        ("min_repeat", settings.min_repeat.map_or_else(|| "the lead".to_owned(), format_span)),
        ("on_rearm", settings.on_rearm.to_string()),
        ("lease", format_span(settings.lease)),
        ("clock_tolerance", format_span(settings.clock_tolerance)),
        ("max_deliveries", settings.max_deliveries.to_string()),
        ("max_payload", format!("{} bytes", settings.max_payload)),
        ("shards", settings.shards.to_string()),
        ("history", if settings.history == 0 { "none".to_owned() } else { settings.history.to_string() }),
        ("sensitive_ids", yes(settings.sensitive_ids)),
        ("revision", settings.revision.map_or_else(|| "none".to_owned(), |revision| revision.to_string())),
        ("key_backed", yes(settings.key_backed)),
    ];
    if settings.key_backed {
        fields.extend([
            ("keys", if patterns.is_empty() { "all".to_owned() } else { patterns.join(", ") }),
            ("manage_keys", yes(settings.manage_keys)),
            ("on_gone", settings.on_gone.to_string()),
            ("recheck_interval", format_span(settings.recheck_interval)),
        ]);
    }
    fields
}

/// Lead times, in the order given.
pub(super) fn leads_text(leads: &[LeadTime]) -> String {
    leads.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
