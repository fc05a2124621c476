//! Who calls and what they may do: bearer tokens (RFC 6750) with scopes, and callers without one where that is allowed.
//!
//! Tokens are kept as SHA-256 digests: they are random, so a fast digest is as good as a slow one.

use std::{
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock},
};

use axum::http::{HeaderMap, header};
use subtle::{Choice, ConstantTimeEq};

use crate::api::Code;
use crate::config::{Scope, Token, TokenHash};
use crate::forewarn::Namespace;
use crate::http::App;
use crate::http::error::Problem;
use crate::model::{IdMask, Name};
use crate::store::StoreError;

/// The tokens that are accepted; may be changed while requests are served.
#[derive(Debug, Clone, Default)]
pub struct Keyring {
    keys: Arc<RwLock<Arc<[Arc<Token>]>>>,
}

impl Keyring {
    /// Accepts these tokens.
    pub fn new(keys: Vec<Token>) -> Self {
        Self { keys: Arc::new(RwLock::new(keys.into_iter().map(Arc::new).collect())) }
    }

    /// Accepts these tokens, and no others from now on.
    pub fn replace(&self, keys: Vec<Token>) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys.into_iter().map(Arc::new).collect();
    }

    fn keys(&self) -> Arc<[Arc<Token>]> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether there are none; then nobody needs one.
    pub fn is_empty(&self) -> bool {
        self.keys().is_empty()
    }

    /// The bearer of a token. Takes as long for a wrong one as for a right one, whichever it is.
    fn bearer(&self, token: &str) -> Option<Caller> {
        let hash = TokenHash::of(token.as_bytes());
        let mut found = None;
        for key in self.keys().iter() {
            let is_it: Choice = key.hash.as_bytes().ct_eq(hash.as_bytes());
            if bool::from(is_it) {
                found = Some(Caller(Some(Arc::clone(key))));
            }
        }
        found
    }
}

/// Who calls: the bearer of a token, or somebody where no tokens are needed. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller(Option<Arc<Token>>);

impl Caller {
    /// Somebody where no tokens are needed.
    const ANYBODY: Self = Self(None);

    fn scope(&self) -> Scope {
        self.0.as_ref().map_or(Scope::Admin, |token| token.scope)
    }

    fn name(&self) -> &str {
        self.0.as_ref().map_or("anybody", |token| &token.name)
    }

    /// Whether it may do this anywhere.
    pub(super) fn check_scope(&self, needed: Scope) -> Result<(), Problem> {
        if self.scope() >= needed {
            return Ok(());
        }
        let word = |scope| match scope {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Admin => "admin",
        };
        let (name, has, needs) = (self.name(), word(self.scope()), word(needed));
        let detail = format!("token \"{name}\" has scope {has}, this needs {needs}; use another, or widen its scopes");
        Err(Problem::new(Code::Forbidden, detail))
    }

    /// Whether it may do this in a namespace.
    pub(super) fn check(&self, needed: Scope, namespace: &Name) -> Result<(), Problem> {
        self.check_scope(needed)?;
        if self.sees(namespace) {
            return Ok(());
        }
        let detail =
            format!("token \"{}\" is not for namespace \"{namespace}\"; add it to its namespaces", self.name());
        Err(Problem::new(Code::Forbidden, detail))
    }

    /// Whether a namespace is among its own.
    pub(super) fn sees(&self, namespace: &Name) -> bool {
        self.0.as_ref().and_then(|token| token.namespaces.as_ref()).is_none_or(|own| own.contains(namespace))
    }

    /// How it is shown the ids of a namespace.
    pub(super) async fn mask(&self, namespace: &Namespace) -> Result<IdMask, StoreError> {
        if self.is_admin() { Ok(IdMask::none()) } else { namespace.id_mask().await }
    }

    /// Whether it is given ids whole, at the latest by a claim.
    pub(super) fn is_given_ids(&self) -> bool {
        self.scope() >= Scope::Write
    }

    /// Whether it is shown ids that are secrets.
    pub(super) fn is_admin(&self) -> bool {
        self.scope() == Scope::Admin
    }
}

/// Who calls.
pub(super) fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
    if app.keyring().is_empty() {
        check_host(app, headers)?;
        return Ok(Caller::ANYBODY);
    }
    let Some(header) = headers.get(header::AUTHORIZATION) else {
        let detail = "this daemon needs a token; send Authorization: Bearer TOKEN";
        return Err(Problem::new(Code::Unauthenticated, detail));
    };
    let token = header.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    token.and_then(|token| app.keyring().bearer(token)).ok_or_else(|| {
        Problem::new(Code::Unauthenticated, "the token is not known; it may have been rotated. Send a present one")
    })
}

/// A page in somebody's browser can make requests to this machine by a name of its own that it has resolve to a loopback
/// address. Where no token protects the API, only names of this machine are answered.
pub(super) fn check_host(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    if !app.is_local() || !app.keyring().is_empty() {
        return Ok(());
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if is_loopback_name(host) {
        return Ok(());
    }
    let detail = "this daemon listens on a loopback address and needs no token, so it answers only to 127.0.0.1, [::1] and \
                  localhost; use one of those names, or configure a token";
    Err(Problem::new(Code::Forbidden, detail))
}

fn is_loopback_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(token: &str, scope: Scope, namespaces: Option<&[&str]>) -> Token {
        let namespaces = namespaces.map(|names| names.iter().map(|name| name.parse().unwrap()).collect());
        Token { name: format!("key of {token}"), hash: TokenHash::of(token.as_bytes()), scope, namespaces }
    }

    #[test]
    fn a_token_opens_what_its_scope_and_namespaces_say() {
        let keyring = Keyring::new(vec![key("r", Scope::Read, Some(&["a"])), key("w", Scope::Write, None)]);
        let (a, b) = ("a".parse().unwrap(), "b".parse().unwrap());
        let reader = keyring.bearer("r").unwrap();
        assert!(reader.check(Scope::Read, &a).is_ok());
        assert_eq!(reader.check(Scope::Read, &b).unwrap_err().told().code, Code::Forbidden);
        assert_eq!(reader.check(Scope::Write, &a).unwrap_err().told().code, Code::Forbidden);
        let writer = keyring.bearer("w").unwrap();
        assert!(writer.check(Scope::Read, &b).is_ok() && writer.check(Scope::Write, &a).is_ok());
        assert!(writer.check(Scope::Admin, &a).is_err() && !writer.is_admin());
        assert_eq!(keyring.bearer("x"), None);
        assert_eq!(keyring.bearer(""), None);
    }

    #[test]
    fn a_rotated_token_is_forgotten_at_once() {
        let keyring = Keyring::new(vec![key("old", Scope::Admin, None)]);
        assert!(!keyring.is_empty());
        keyring.clone().replace(vec![key("new", Scope::Admin, None)]);
        assert!(keyring.bearer("old").is_none() && keyring.bearer("new").is_some());
    }

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:7878", "127.9.9.9", "[::1]:7878", "[::1]"] {
            assert!(is_loopback_name(host), "{host}");
        }
        for host in ["", "example.com", "localhost.example.com:80", "10.0.0.1", "[::2]:80", "127.0.0.1.example.com"] {
            assert!(!is_loopback_name(host), "{host}");
        }
    }
}
