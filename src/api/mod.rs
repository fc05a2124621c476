//! The forms of the HTTP API, as its server and its client write them; the configuration file uses the same words.

mod settings;

pub use settings::{SettingsForm, SpanText};
