//! The layers and what they make together: checked settings, every value with its origin, warnings.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value as Json;

use crate::config::form::ConfigForm;
use crate::config::given::{Layered, key_text};
use crate::config::secret::{MASK, from_origin, masked_url};
use crate::config::shape::{Leaf, Secret, Shape};
use crate::config::value::toml_text;
use crate::config::{Config, ConfigError, Origin, Problem, check, default_config, env as variables, file};

/// Where values come from; a later layer is the stronger one: file, environment, flags.
///
/// Shows of variables and flags only the names: their values may be secrets.
#[derive(Clone, Default)]
pub struct Layers {
    /// The file; `None` means the one that `FOREWARN_CONFIG` names, else the first that exists of [`default_config`].
    pub file: Option<PathBuf>,
    /// The environment, with what is of no interest here, too.
    pub env: Vec<(OsString, OsString)>,
    /// What was given as flags.
    pub flags: Vec<Flag>,
    /// The user's home directory; `None` if there is none.
    pub home: Option<PathBuf>,
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, env, flags, home } = self;
        let env: Vec<_> = env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Layers")
            .field("file", file)
            .field("env", &env)
            .field("flags", flags)
            .field("home", home)
            .finish()
    }
}

/// A value given as a flag. Shows only its names.
#[derive(Clone, PartialEq, Eq)]
pub struct Flag {
    /// The flag as it is written: `--listen`.
    pub flag: &'static str,
    /// The key it gives, as in `limits.max_body`.
    pub key: &'static str,
    /// The value as text.
    pub value: String,
}

impl fmt::Debug for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flag").field("flag", &self.flag).field("key", &self.key).finish_non_exhaustive()
    }
}

/// What the layers make.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// Every value in force, in the order of the example.
    pub values: Vec<Value>,
    /// What is odd and no mistake.
    pub warnings: Vec<String>,
    /// The file that was read, if one was.
    pub file: Option<PathBuf>,
}

/// One value in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// The key, as in `limits.max_body`.
    pub key: String,
    /// The value; null if there is none. Secrets are masked.
    pub value: Json,
    /// Where it was given.
    pub origin: Origin,
}

impl Value {
    /// The value as TOML writes it; empty if there is none.
    pub fn text(&self) -> String {
        toml_text(&self.value)
    }
}

impl Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let origin = match &self.origin {
            Origin::Default => serde_json::json!({"from": "default"}),
            Origin::File(path, line) => serde_json::json!({"from": "file", "file": path, "line": line}),
            Origin::Env(name) => serde_json::json!({"from": "environment", "variable": name}),
            Origin::Flag(flag) => serde_json::json!({"from": "flag", "flag": flag}),
        };
        serde_json::json!({"key": self.key, "value": self.value, "origin": origin}).serialize(serializer)
    }
}

impl Layers {
    /// The environment and the home directory of this process, without file and flags.
    pub fn of_process() -> Self {
        Self { file: None, env: env::vars_os().collect(), flags: Vec::new(), home: env::home_dir() }
    }

    /// Reads and checks all layers.
    ///
    /// # Errors
    /// Everything that is wrong, at once.
    pub fn load(&self) -> Result<Loaded, ConfigError> {
        let (mut layered, mut warnings, file) = self.gather();
        // What could not be read is absent from the form, and told already.
        let form: ConfigForm = serde_json::from_value(layered.document()).map_err(|error| ConfigError {
            problems: vec![Problem { origin: Origin::Default, text: error.to_string() }],
        })?;
        let config = check::config(&form, self, &mut layered, &mut warnings);
        match config {
            Some(config) if layered.problems.is_empty() => {
                Ok(Loaded { values: values(&layered, &config), config, warnings, file })
            }
            _ => Err(layered.into_error()),
        }
    }

    /// All that is given, not yet checked as a whole; warnings; the file that was read.
    fn gather(&self) -> (Layered, Vec<String>, Option<PathBuf>) {
        let mut layered = Layered::default();
        let file = self.find_file();
        if let Some(path) = &file {
            match std::fs::read_to_string(path) {
                Ok(text) => file::read(path, &text, &mut layered),
                Err(error) => {
                    layered.refuse(Origin::Default, format!("the file {} cannot be read: {error}", path.display()));
                }
            }
        }
        let warnings = variables::read(&self.env, &mut layered);
        variables::read_flags(&self.flags, &mut layered);
        (layered, warnings, file)
    }

    /// The file, and those that values name, whether they are there or not.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let (layered, _, file) = self.gather();
        let named = layered.values().filter(|(path, _)| path.last().is_some_and(|key| key.ends_with("_file")));
        let named = named.filter_map(|(_, given)| Some(from_origin(given.value.as_str()?, &given.origin)));
        file.into_iter().chain(named).collect()
    }

    /// The file that is read, if one is.
    pub fn find_file(&self) -> Option<PathBuf> {
        let named = || self.variable("FOREWARN_CONFIG").map(PathBuf::from);
        let config_home = self.variable("XDG_CONFIG_HOME").map(Path::new);
        let found = || default_config(config_home, self.home.as_deref()).into_iter().find(|path| path.exists());
        self.file.clone().or_else(named).or_else(found)
    }

    /// A variable of the environment that is not empty.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.env.iter().find(|(found, value)| found == name && !value.is_empty());
        found.map(|(_, value)| value.as_os_str())
    }
}

/// Every value in force.
fn values(layered: &Layered, config: &Config) -> Vec<Value> {
    let mut values = Vec::new();
    let names = |path: &[String]| layered.names(path);
    Shape::root().leaves(&mut Vec::new(), &names, &mut |path, leaf| {
        let (value, origin) = match layered.get(path) {
            Some(given) => (given.value.clone(), given.origin.clone()),
            None => (default_of(path, leaf, layered, config), inherited(path, layered)),
        };
        values.push(Value { key: key_text(path), value: masked(leaf, value), origin });
    });
    values
}

/// What is in force where nothing was given.
fn default_of(path: &[String], leaf: &Leaf, layered: &Layered, config: &Config) -> Json {
    match path {
        [key] if key == "store" => config.store.to_string().into(),
        [table, _, key] if table == "namespace" && key == "revision" => {
            layered.get(std::slice::from_ref(key)).map_or(Json::Null, |given| given.value.clone())
        }
        _ => leaf.default.clone(),
    }
}

fn inherited(path: &[String], layered: &Layered) -> Origin {
    match path {
        [table, _, key] if table == "namespace" && key == "revision" => layered.origin(std::slice::from_ref(key)),
        _ => Origin::Default,
    }
}

fn masked(leaf: &Leaf, value: Json) -> Json {
    match (leaf.secret, &value) {
        (Secret::No, _) | (_, Json::Null) => value,
        (Secret::Url, Json::String(url)) => masked_url(url).into(),
        _ => MASK.into(),
    }
}
