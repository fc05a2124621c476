//! The values that were given, each with where it was, and what is wrong with them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
};

use serde_json::{Map, Value as Json};

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Nobody gave it.
    Default,
    /// A file, and the line in it.
    File(PathBuf, usize),
    /// An environment variable.
    Env(String),
    /// A flag of the command.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Env(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it is; [`Origin::Default`] if it is nowhere in particular.
    pub origin: Origin,
    /// The key with what is wrong and the fix.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Default => f.write_str(&self.text),
            origin => write!(f, "{origin}: {}", self.text),
        }
    }
}

/// A configuration that cannot be used, with everything that is wrong with it: one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// What is wrong, in the order of file, environment and flags; never empty.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ConfigError {}

/// A value and where it was given.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) value: Json,
    pub(super) origin: Origin,
}

/// All that was given, by path; a later layer replaces what an earlier one gave.
#[derive(Debug, Default)]
pub(super) struct Layered {
    values: BTreeMap<Vec<String>, Given>,
    /// The names of tables that were given, also without anything in them.
    tables: BTreeMap<Vec<String>, Origin>,
    /// Values that were given and could not be taken.
    refused: BTreeSet<Vec<String>>,
    pub(super) problems: Vec<Problem>,
}

impl Layered {
    pub(super) fn set(&mut self, path: Vec<String>, value: Json, origin: Origin) {
        self.values.insert(path, Given { value, origin });
    }

    pub(super) fn set_table(&mut self, path: Vec<String>, origin: Origin) {
        self.tables.entry(path).or_insert(origin);
    }

    /// Notes a problem at a place.
    pub(super) fn refuse(&mut self, origin: Origin, text: impl Into<String>) {
        self.problems.push(Problem { origin, text: text.into() });
    }

    /// Notes a value that cannot be taken; `text` follows the key.
    pub(super) fn refuse_value(&mut self, path: &[String], origin: Origin, text: impl fmt::Display) {
        self.refuse(origin, format!("{} {text}", key_text(path)));
        self.refused.insert(path.to_vec());
    }

    /// Whether a value was given there and refused: what is wrong is not missing, too.
    pub(super) fn is_refused(&self, path: &[&str]) -> bool {
        self.refused.iter().any(|refused| refused == path)
    }

    /// What is wrong, in the order of file, environment and flags.
    pub(super) fn into_error(mut self) -> ConfigError {
        self.problems.sort_by_key(|problem| match problem.origin {
            Origin::File(_, line) => (0, line),
            Origin::Env(_) => (1, 0),
            Origin::Flag(_) => (2, 0),
            Origin::Default => (3, 0),
        });
        ConfigError { problems: self.problems }
    }

    /// Notes a problem with a value that was taken; `text` follows the key.
    pub(super) fn refuse_key(&mut self, path: &[&str], text: impl fmt::Display) {
        let path: Vec<String> = path.iter().map(|&part| part.to_owned()).collect();
        let text = format!("{} {text}", key_text(&path));
        let origin = self.origin(&path);
        self.refuse(origin, text);
    }

    pub(super) fn get(&self, path: &[String]) -> Option<&Given> {
        self.values.get(path)
    }

    /// Where a value was given; of a table, where the first thing in it was.
    pub(super) fn origin(&self, path: &[String]) -> Origin {
        let below = self.values.range(path.to_vec()..).next().filter(|(found, _)| found.starts_with(path));
        let value = self.values.get(path).or(below.map(|(_, given)| given)).map(|given| &given.origin);
        self.tables.get(path).or(value).cloned().unwrap_or(Origin::Default)
    }

    /// The names given under a path.
    pub(super) fn names(&self, path: &[String]) -> Vec<String> {
        let paths = self.values.keys().chain(self.tables.keys());
        let mut names: Vec<String> =
            paths.filter(|found| found.starts_with(path)).filter_map(|found| found.get(path.len()).cloned()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// All paths with their values.
    pub(super) fn values(&self) -> impl Iterator<Item = (&[String], &Given)> {
        self.values.iter().map(|(path, given)| (&**path, given))
    }

    /// Everything as one document.
    pub(super) fn document(&self) -> Json {
        let mut document = Json::Object(Map::new());
        let tables = self.tables.keys().map(|path| (path, Json::Object(Map::new())));
        let values = self.values.iter().map(|(path, given)| (path, given.value.clone()));
        for (path, value) in tables.chain(values) {
            let mut place = &mut document;
            for key in path {
                place = &mut place[key.as_str()];
            }
            *place = value;
        }
        document
    }
}

/// A path as TOML writes a dotted key.
pub(super) fn key_text(path: &[String]) -> String {
    let is_bare = |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let quoted = |key: &String| if is_bare(key) { key.clone() } else { format!("\"{}\"", key.escape_debug()) };
    path.iter().map(quoted).collect::<Vec<_>>().join(".")
}
