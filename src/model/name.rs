//! The grammar shared by the names of namespaces, routes and key prefixes.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::model::Invalid;

/// The name of a namespace, a route or a key prefix: `[a-z0-9][a-z0-9_.-]{0,63}`. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(utoipa::ToSchema), schema(value_type = String))]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

impl Name {
    /// Checks and takes a name; `field` is what the error calls it (`namespace`, `route`, `prefix`).
    ///
    /// # Errors
    /// Refuses what does not match `[a-z0-9][a-z0-9_.-]{0,63}`.
    pub fn new(field: &'static str, text: impl AsRef<str>) -> Result<Self, Invalid> {
        let text = text.as_ref();
        let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b"_.-".contains(&c);
        let bytes = text.as_bytes();
        let starts_well = bytes.first().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        if starts_well && bytes.len() <= 64 && bytes.iter().all(|c| inner(*c)) {
            Ok(Self(text.into()))
        } else {
            let shown = text.escape_debug();
            Err(Invalid::new(
                field,
                format!(
                    "\"{shown}\": use 1 to 64 of a-z, 0-9, \"_\", \".\" and \"-\", starting with a letter or a digit"
                ),
            ))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::new("name", text)
    }
}

impl TryFrom<String> for Name {
    type Error = Invalid;
    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::new("name", text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_documented_grammar() {
        for good in ["a", "0", "session", "up-load_2.x", &"a".repeat(64)] {
            assert!(Name::new("namespace", good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "A", "a b", "a{b}", "é", &"a".repeat(65)] {
            let error = Name::new("namespace", bad).unwrap_err();
            assert!(error.to_string().starts_with("namespace \""), "{error}");
        }
    }
}
