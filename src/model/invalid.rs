//! The one error of bad input: which field, what is wrong with it, how to mend it.

use std::{borrow::Cow, convert::Infallible, fmt};

/// Input that was refused: names the field, the value and the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    field: Cow<'static, str>,
    problem: String,
}

impl Invalid {
    /// Makes the error for `field`; `problem` says what is wrong and what to give instead.
    pub fn new(field: impl Into<Cow<'static, str>>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    /// The field that was refused, as it is called in flags, JSON and configuration.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What is wrong with it, and the fix.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.problem)
    }
}

impl std::error::Error for Invalid {}

/// For conversions that cannot fail, so that checked values pass where unchecked ones are taken.
impl From<Infallible> for Invalid {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
