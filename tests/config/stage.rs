//! A directory with a configuration, and layers that see nothing of the tester's own machine.

use std::{
    fmt::Debug,
    path::{Path, PathBuf},
};

use forewarn::config::{Config, ConfigError, Flag, Layers, Loaded, Origin, Value};
use tempfile::TempDir;

/// A directory of the test's own.
pub(crate) struct Stage {
    directory: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file and answers with its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Layers with this file.
    pub(crate) fn layers(&self, text: &str) -> Layers {
        Layers { file: Some(self.write("forewarn.toml", text)), ..layers() }
    }
}

/// Layers without a file, of a user whose home is empty.
pub(crate) fn layers() -> Layers {
    Layers { home: Some(PathBuf::from("/nonexistent")), ..Layers::default() }
}

pub(crate) fn with_env(mut layers: Layers, variables: &[(&str, &str)]) -> Layers {
    layers.env.extend(variables.iter().map(|(name, value)| (name.into(), value.into())));
    layers
}

pub(crate) fn with_flag(mut layers: Layers, flag: &'static str, key: &'static str, value: &str) -> Layers {
    layers.flags.push(Flag { flag, key, value: value.to_owned() });
    layers
}

/// What a file of this text makes.
pub(crate) fn config(text: &str) -> Config {
    Stage::new().layers(text).load().unwrap().config
}

/// The lines of what is wrong; the directory of the file is left out.
#[track_caller]
pub(crate) fn problems(loaded: Result<Loaded, ConfigError>) -> Vec<String> {
    let error = loaded.expect_err("something is wrong");
    error
        .problems
        .iter()
        .map(|problem| match &problem.origin {
            Origin::File(path, line) => format!("{}:{line}: {}", path.file_name().unwrap().display(), problem.text),
            _ => problem.to_string(),
        })
        .collect()
}

/// The value of a key.
#[track_caller]
pub(crate) fn value<'l>(loaded: &'l Loaded, key: &str) -> &'l Value {
    loaded.values.iter().find(|value| value.key == key).unwrap_or_else(|| panic!("no {key}"))
}

/// That nothing shown of these holds the secret.
#[track_caller]
pub(crate) fn keeps(secret: &str, shown: &[&dyn Debug]) {
    for one in shown {
        assert!(!format!("{one:?}").contains(secret), "{one:?}");
    }
}

pub(crate) fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
