//! Tokens: who may do what with which namespaces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::TokenHash;
use crate::model::Name;

/// What a token may do; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Look.
    Read,
    /// Track, renew, remove, claim.
    Write,
    /// Everything, such as settings and pauses.
    Admin,
}

/// One token of the API. Its secret is known only by its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is called in logs.
    pub name: String,
    /// The hash of its secret.
    pub hash: TokenHash,
    /// The most it may do.
    pub scope: Scope,
    /// The namespaces it may use; `None` means all.
    pub namespaces: Option<Vec<Name>>,
}

impl Token {
    /// Whether it may do what needs `scope` with a namespace; without one, with the daemon as a whole.
    ///
    /// A token for some namespaces may do nothing with the daemon as a whole but look.
    pub fn allows(&self, scope: Scope, namespace: Option<&Name>) -> bool {
        let is_here = match (&self.namespaces, namespace) {
            (None, _) => true,
            (Some(namespaces), Some(namespace)) => namespaces.contains(namespace),
            (Some(_), None) => scope == Scope::Read,
        };
        is_here && scope <= self.scope
    }
}
