//! What differs between two configurations, and what of it a running daemon can take over.

use std::fmt;

use crate::config::{Config, Limits, Log};

/// What differs, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// The keys that changed; of tokens and namespaces, the names.
    pub changed: Vec<Changed>,
}

/// One key that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The key, as in `limits.max_body` or `token.ops`.
    pub key: String,
    /// When it comes into force.
    pub reload: Reload,
}

/// When a change comes into force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// At once.
    Now,
    /// With the next start.
    Restart,
}

impl Difference {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty()
    }

    /// The keys that come into force then.
    pub fn keys(&self, reload: Reload) -> impl Iterator<Item = &str> {
        self.changed.iter().filter(move |changed| changed.reload == reload).map(|changed| changed.key.as_str())
    }

    fn note(&mut self, differs: bool, reload: Reload, key: impl Into<String>) {
        if differs {
            self.changed.push(Changed { key: key.into(), reload });
        }
    }
}

/// One line for the log.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |reload| self.keys(reload).collect::<Vec<_>>().join(", ");
        match (list(Reload::Now), list(Reload::Restart)) {
            (now, restart) if now.is_empty() && restart.is_empty() => f.write_str("nothing changed"),
            (now, restart) if restart.is_empty() => write!(f, "in force now: {now}"),
            (now, restart) if now.is_empty() => write!(f, "needs a restart: {restart}"),
            (now, restart) => write!(f, "in force now: {now}; needs a restart: {restart}"),
        }
    }
}

impl Config {
    /// What is different in `new`.
    pub fn difference(&self, new: &Self) -> Difference {
        // Every field by its name: one that is new does not compile until it is here.
        let Self { store, listen, insecure, tls, log, stop_timeout, limits, tokens, namespaces } = self;
        let mut found = Difference::default();
        found.note(*store != new.store, Reload::Restart, "store");
        found.note(*listen != new.listen, Reload::Restart, "listen");
        found.note(*insecure != new.insecure, Reload::Restart, "insecure");
        found.note(*tls != new.tls, Reload::Restart, "tls");
        let Log { format, filter } = log;
        found.note(*format != new.log.format, Reload::Restart, "log.format");
        found.note(*filter != new.log.filter, Reload::Now, "log.filter");
        found.note(*stop_timeout != new.stop_timeout, Reload::Now, "stop_timeout");
        limits.compare(&new.limits, &mut found);
        by_name(tokens, &new.tokens, |token| &token.name, "token", &mut found);
        by_name(namespaces, &new.namespaces, |one| one.name.as_str(), "namespace", &mut found);
        found
    }
}

impl Limits {
    fn compare(&self, new: &Self, found: &mut Difference) {
        let Self { max_body, max_header, request_timeout, header_timeout, max_connections, max_requests, max_waiting } =
            self;
        found.note(*max_body != new.max_body, Reload::Now, "limits.max_body");
        found.note(*max_header != new.max_header, Reload::Restart, "limits.max_header");
        found.note(*request_timeout != new.request_timeout, Reload::Now, "limits.request_timeout");
        found.note(*header_timeout != new.header_timeout, Reload::Restart, "limits.header_timeout");
        found.note(*max_connections != new.max_connections, Reload::Restart, "limits.max_connections");
        found.note(*max_requests != new.max_requests, Reload::Now, "limits.max_requests");
        found.note(*max_waiting != new.max_waiting, Reload::Now, "limits.max_waiting");
    }
}

/// Notes what was added, changed or taken out among named things.
fn by_name<T: PartialEq>(old: &[T], new: &[T], name: impl Fn(&T) -> &str, table: &str, found: &mut Difference) {
    let find = |all: &[T], wanted: &str| all.iter().position(|one| name(one) == wanted);
    for one in new {
        let differs = find(old, name(one)).is_none_or(|at| old[at] != *one);
        found.note(differs, Reload::Now, format!("{table}.{}", name(one)));
    }
    for one in old.iter().filter(|one| find(new, name(one)).is_none()) {
        found.note(true, Reload::Now, format!("{table}.{} (removed)", name(one)));
    }
}
