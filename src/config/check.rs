//! From the form to checked settings: what no type can say. Every problem is noted at its place.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::api::SpanText;
use crate::config::form::{ConfigForm, LimitsForm, NamespaceForm, TokenForm};
use crate::config::given::Layered;
use crate::config::secret::{check_token, from_origin, read_file, with_password};
use crate::config::{
    Config, Layers, Limits, Listen, Log, NamespaceConfig, Origin, Scope, StorePlace, Tls, Token, TokenHash,
    default_store,
};
use crate::model::{Name, Settings};
use crate::store::Change;

/// The settings; `None` if something is missing without which there are none. Problems go to `layered`.
pub(super) fn config(
    form: &ConfigForm,
    layers: &Layers,
    layered: &mut Layered,
    warnings: &mut Vec<String>,
) -> Option<Config> {
    let mut check = Check { layers, layered };
    let store = check.store(form);
    let listen = Listen::parse(&form.listen);
    let listen = check.noted(&["listen"], listen);
    let tls = check.tls(form);
    let stop_timeout = check.span(&["stop_timeout"], &form.stop_timeout);
    let limits = check.limits(&form.limits);
    let tokens = check.tokens(form);
    let namespaces =
        form.namespace.iter().filter_map(|(name, one)| check.namespace(name, one, form.revision)).collect();
    let config = Config {
        store: store?,
        listen: listen?,
        insecure: form.insecure,
        tls,
        log: Log { format: form.log.format, filter: form.log.filter.clone() },
        stop_timeout,
        limits,
        tokens,
        namespaces,
    };
    check.reach(&config, !form.token.is_empty(), warnings);
    Some(config)
}

struct Check<'c> {
    layers: &'c Layers,
    layered: &'c mut Layered,
}

impl Check<'_> {
    /// Notes the problem, if it is one.
    fn noted<T>(&mut self, path: &[&str], result: Result<T, impl fmt::Display>) -> Option<T> {
        result.map_err(|problem| self.layered.refuse_key(path, problem)).ok()
    }

    /// A duration; its text was checked when it was read.
    fn span(&mut self, path: &[&str], span: &SpanText) -> Duration {
        self.noted(path, span.read("")).unwrap_or_default()
    }

    /// The same where nothing can work with none.
    fn time(&mut self, path: &[&str], span: &SpanText) -> Duration {
        let span = self.span(path, span);
        if span.is_zero() {
            self.layered.refuse_key(path, "is 0s; give a time in which something can happen, as in 10s");
        }
        span
    }

    /// A path as it was given: a relative one in a file is meant from where the file is.
    fn path(&self, path: &[&str], text: &str) -> PathBuf {
        let path: Vec<String> = path.iter().map(|&key| key.to_owned()).collect();
        from_origin(text, &self.layered.origin(&path))
    }

    fn store(&mut self, form: &ConfigForm) -> Option<StorePlace> {
        let url = form.store.as_deref().filter(|url| !url.is_empty());
        if let Some(file) = &form.store_password_file {
            const KEY: &[&str] = &["store_password_file"];
            let password = read_file(&self.path(KEY, file));
            let password = self.noted(KEY, password)?;
            let url = with_password(url.unwrap_or_default(), &password);
            return self.noted(KEY, url).map(StorePlace::Url);
        }
        if url.is_some_and(|url| url.starts_with("http://") || url.starts_with("https://")) {
            let problem = "is the URL of a daemon; give that of the store, which begins with sqlite:, redis://, rediss:// or redis+unix://";
            return self.noted(&["store"], Err(problem));
        }
        if let Some(url) = url {
            return Some(StorePlace::Url(url.to_owned()));
        }
        let data_home = self.layers.variable("XDG_DATA_HOME").map(Path::new);
        match default_store(data_home, self.layers.home.as_deref()) {
            Ok(path) => Some(StorePlace::File(path)),
            Err(invalid) => {
                self.layered.refuse(Origin::Default, invalid.to_string());
                None
            }
        }
    }

    fn tls(&mut self, form: &ConfigForm) -> Option<Tls> {
        let (cert, key) = (["tls", "cert_file"], ["tls", "key_file"]);
        if self.layered.is_refused(&cert) || self.layered.is_refused(&key) {
            return None;
        }
        match (&form.tls.cert_file, &form.tls.key_file) {
            (Some(cert_file), Some(key_file)) => {
                Some(Tls { cert_file: self.path(&cert, cert_file), key_file: self.path(&key, key_file) })
            }
            (Some(_), None) => {
                self.layered.refuse_key(&cert, "is given without tls.key_file; give both or neither");
                None
            }
            (None, Some(_)) => {
                self.layered.refuse_key(&key, "is given without tls.cert_file; give both or neither");
                None
            }
            (None, None) => None,
        }
    }

    fn limits(&mut self, form: &LimitsForm) -> Limits {
        Limits {
            max_body: form.max_body,
            max_header: form.max_header,
            request_timeout: self.time(&["limits", "request_timeout"], &form.request_timeout),
            header_timeout: self.time(&["limits", "header_timeout"], &form.header_timeout),
            max_connections: form.max_connections,
            max_requests: form.max_requests,
            max_waiting: form.max_waiting,
        }
    }

    fn tokens(&mut self, form: &ConfigForm) -> Vec<Token> {
        let mut tokens: Vec<Token> = Vec::new();
        for (name, one) in &form.token {
            let Some(token) = self.token(name, one) else { continue };
            match tokens.iter().find(|other| other.hash == token.hash) {
                Some(other) => {
                    let text = format!("has the same secret as token {}; give each its own", other.name);
                    self.layered.refuse_key(&["token", name], text);
                }
                None => tokens.push(token),
            }
        }
        tokens
    }

    fn token(&mut self, name: &str, form: &TokenForm) -> Option<Token> {
        let checked = Name::new("name", name);
        self.noted(&["token", name], checked)?;
        let hash = self.token_hash(name, form);
        let scope = form.scopes.iter().max().copied();
        if scope.is_none() {
            self.layered.refuse_key(&["token", name, "scopes"], "is empty; give read, write or admin");
        }
        let namespaces = form.namespaces.as_ref().map(|names| {
            let checked = names.iter().map(|one| Name::new("has the name", one)).collect::<Result<Vec<_>, _>>();
            self.noted(&["token", name, "namespaces"], checked).unwrap_or_default()
        });
        Some(Token { name: name.to_owned(), hash: hash?, scope: scope.unwrap_or(Scope::Read), namespaces })
    }

    fn token_hash(&mut self, name: &str, form: &TokenForm) -> Option<TokenHash> {
        let given = [&form.hash, &form.secret_env, &form.secret_file].into_iter().flatten().count();
        let keys = ["hash", "secret_env", "secret_file"];
        if keys.iter().any(|key| self.layered.is_refused(&["token", name, key])) {
            return None;
        }
        if given != 1 {
            let how_many = if given == 0 { "none" } else { "more than one" };
            let text = format!("has {how_many} of hash, secret_env and secret_file; give one of them");
            self.layered.refuse_key(&["token", name], text);
            return None;
        }
        if let Some(hash) = &form.hash {
            let hash = TokenHash::parse(hash).ok_or("is no hash; write sha256: and 64 hex digits");
            return self.noted(&["token", name, "hash"], hash);
        }
        let (key, secret) = match (&form.secret_env, &form.secret_file) {
            (Some(variable), _) => ("secret_env", self.secret_of(variable)),
            (None, Some(file)) => ("secret_file", read_file(&self.path(&["token", name, "secret_file"], file))),
            (None, None) => return None,
        };
        let secret = secret.and_then(|secret| match check_token(&secret) {
            Ok(()) => Ok(secret),
            Err(problem) => Err(problem.to_owned()),
        });
        self.noted(&["token", name, key], secret).map(|secret| TokenHash::of(secret.as_bytes()))
    }

    fn secret_of(&self, variable: &str) -> Result<String, String> {
        let value = self.layers.variable(variable).and_then(|value| value.to_str()).map(str::trim);
        let missing = || format!("names the variable \"{}\", which is not set", variable.escape_debug());
        value.map(str::to_owned).ok_or_else(missing)
    }

    fn namespace(&mut self, name: &str, form: &NamespaceForm, revision: Option<u64>) -> Option<NamespaceConfig> {
        let checked = Name::new("name", name);
        let checked = self.noted(&["namespace", name], checked)?;
        let routes = form.routes.iter().flatten().map(|text| text.parse()).collect::<Result<Vec<_>, _>>();
        let routes = self.noted(
            &["namespace", name, "routes"],
            routes.map_err(|invalid: crate::model::Invalid| format!("has the {invalid}")),
        );
        let settings = Settings::try_from(form.settings.clone()).and_then(|mut settings| {
            settings.revision = settings.revision.or(revision);
            settings.check().map(|()| settings)
        });
        let settings = match settings {
            Ok(settings) => settings,
            Err(invalid) => {
                // The error begins with its field, which is the last part of the key.
                let text = invalid.to_string();
                let text = text.strip_prefix(invalid.field()).unwrap_or(&text).trim_start().to_owned();
                self.layered.refuse_key(&["namespace", name, invalid.field()], text);
                return None;
            }
        };
        let change = Change {
            settings: Some(settings),
            first_start: form.first_start,
            routes: routes?,
            drop_routes: Vec::new(),
            id_key: None,
        };
        Some(NamespaceConfig { name: checked, change })
    }

    /// Who can reach the listener.
    fn reach(&mut self, config: &Config, has_tokens: bool, warnings: &mut Vec<String>) {
        if config.listen.is_loopback() {
            return;
        }
        if !has_tokens && !config.insecure {
            self.layered.refuse_key(
                &["listen"],
                format!(
                    "is {}, which other machines can reach, and there is no token; add a [token.NAME], listen on \
                     127.0.0.1, or set insecure (--insecure) to let everybody in",
                    config.listen
                ),
            );
        }
        if has_tokens && config.tls.is_none() {
            warnings.push(format!(
                "tokens travel to {} in plain text; set [tls], or let only a proxy with TLS reach it",
                config.listen
            ));
        }
    }
}
