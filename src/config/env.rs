//! Environment variables and flags: the same keys, as text.
//!
//! A variable is `FOREWARN_` and the path of its key in capitals, nested by two underscores:
//! `FOREWARN_LIMITS__MAX_BODY`. What is empty counts as not given.

use std::ffi::OsString;

use crate::config::Flag;
use crate::config::given::{Layered, Origin, key_text};
use crate::config::nearest::{nearest, nearest_of_all};
use crate::config::shape::{Shape, What};

const PREFIX: &str = "FOREWARN_";

/// Variables of the project that are no keys: what leads to a configuration, what the client needs, what `work --exec` sets.
const OTHERS: &[&str] = &[
    "FOREWARN_CONFIG",
    "FOREWARN_SERVER",
    "FOREWARN_TOKEN",
    "FOREWARN_EVENT_ID",
    "FOREWARN_NAMESPACE",
    "FOREWARN_ROUTE",
    "FOREWARN_KIND",
    "FOREWARN_ATTEMPT",
    "FOREWARN_ID",
    "FOREWARN_ID_BASE64",
    "FOREWARN_LEAD_MS",
    "FOREWARN_REASON",
];

/// A variable that is older than its key's path.
const SHORT: (&str, [&str; 2]) = ("FOREWARN_LOG", ["log", "filter"]);

/// Adds what the environment gives; answers with warnings.
pub(super) fn read(environment: &[(OsString, OsString)], layered: &mut Layered) -> Vec<String> {
    let mut ours: Vec<(&str, &OsString)> = environment
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?, value)))
        .filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty())
        .collect();
    ours.sort_unstable();
    let mut unknown = Vec::new();
    for (name, value) in ours {
        match find(name, layered) {
            Some(path) => take(name, path, value, layered),
            None if OTHERS.contains(&name) => {}
            None => unknown.push(name),
        }
    }
    // Only now is it known which variables the configuration itself names.
    let named: Vec<String> = layered
        .values()
        .filter(|(path, _)| path.last().is_some_and(|key| key.ends_with("_env")))
        .filter_map(|(_, given)| given.value.as_str().map(str::to_owned))
        .collect();
    unknown.retain(|name| !named.iter().any(|one| one == name));
    unknown.into_iter().filter_map(|name| refuse(name, layered)).collect()
}

/// Adds what flags give.
pub(super) fn read_flags(flags: &[Flag], layered: &mut Layered) {
    for Flag { flag, key, value } in flags {
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        set(path, value, Origin::Flag(flag), layered);
    }
}

/// The variable of a key.
pub(super) fn name(path: &[String]) -> String {
    let upper = |key: &String| key.to_uppercase().replace(['.', '-'], "_");
    format!("{PREFIX}{}", path.iter().map(upper).collect::<Vec<_>>().join("__"))
}

fn take(name: &str, path: Vec<String>, value: &OsString, layered: &mut Layered) {
    let origin = Origin::Env(name.to_owned());
    if let Some(Origin::Env(other)) = layered.get(&path).map(|given| given.origin.clone()) {
        return layered.refuse(origin, format!("{} is given by {other}, too; give one of them", key_text(&path)));
    }
    match value.to_str() {
        Some(text) => set(path, text, origin, layered),
        None => layered.refuse_value(&path, origin, "is not UTF-8; write it as text"),
    }
}

fn set(path: Vec<String>, text: &str, origin: Origin, layered: &mut Layered) {
    let Some(leaf) = Shape::root().leaf(&path) else {
        return layered.refuse(origin, format!("{} is unknown", key_text(&path)));
    };
    match leaf.read(text) {
        Ok(value) => layered.set(path, value, origin),
        Err(problem) => layered.refuse_value(&path, origin, problem),
    }
}

/// The path of the value a variable means.
fn find(name: &str, layered: &Layered) -> Option<Vec<String>> {
    if name == SHORT.0 {
        return Some(SHORT.1.map(str::to_owned).to_vec());
    }
    let mut rest: Vec<&str> = name.strip_prefix(PREFIX)?.split("__").collect();
    let mut path = Vec::new();
    let mut shape = Shape::root();
    loop {
        match &shape.what {
            What::Value(_) => return rest.is_empty().then_some(path),
            What::Table(fields) => {
                let first = rest.first()?;
                let (key, child) = fields.iter().find(|(key, _)| key.to_uppercase() == *first)?;
                path.push(key.clone());
                rest.remove(0);
                shape = child;
            }
            What::Names(_, each) => {
                let (name, length) = named(&rest, &layered.names(&path))?;
                path.push(name);
                rest.drain(..length);
                shape = each;
            }
        }
    }
}

/// The name that the first segments mean, and how many they are: a known one if it looks like that, else the first in
/// small letters.
fn named(segments: &[&str], known: &[String]) -> Option<(String, usize)> {
    let look = |name: &str| name.to_lowercase().replace(['.', '-'], "_");
    let matching = (1..segments.len()).find_map(|length| {
        let wanted = look(&segments[..length].join("__"));
        known.iter().find(|name| look(name) == wanted).map(|name| (name.clone(), length))
    });
    matching.or_else(|| Some((segments.first()?.to_lowercase(), 1)))
}

/// Refuses a variable that looks like a slip, or answers with a warning.
fn refuse(name: &str, layered: &mut Layered) -> Option<String> {
    let known = known(name, layered);
    let origin = Origin::Env(name.to_owned());
    let inside = format!("{name}__");
    if let Some(key) = known.iter().find(|one| one.starts_with(&inside)) {
        layered.refuse(origin, format!("is a table; name a key in it, as in {key}"));
        return None;
    }
    let all = known.iter().map(String::as_str).chain(OTHERS.iter().copied());
    let meant = match name.contains("__") {
        true => nearest_of_all(name, all).map(str::to_owned),
        false => {
            let short: Vec<&str> = all.map(|name| name.trim_start_matches(PREFIX)).collect();
            nearest(name.trim_start_matches(PREFIX), short).map(|short| format!("{PREFIX}{short}"))
        }
    };
    match meant {
        Some(meant) => {
            layered.refuse(origin, format!("is unknown; did you mean {meant}?"));
            None
        }
        None => Some(format!("the variable {name} is unknown and does nothing")),
    }
}

/// The variables of all keys; in tables that the user names, of the names there are and of the one in `name`.
fn known(name: &str, layered: &Layered) -> Vec<String> {
    let segments: Vec<&str> = name.trim_start_matches(PREFIX).split("__").collect();
    let names = |path: &[String]| {
        let mut names = layered.names(path);
        let is_here =
            path.iter().map(|key| key.to_uppercase()).eq(segments.iter().take(path.len()).map(|s| (*s).to_owned()));
        if let (true, Some(own)) = (is_here, segments.get(path.len())) {
            names.push(own.to_lowercase());
        }
        if names.is_empty() { Shape::root().names_for_example(path) } else { names }
    };
    let mut known = vec![SHORT.0.to_owned()];
    Shape::root().leaves(&mut Vec::new(), &names, &mut |path, _| known.push(self::name(path)));
    known
}
