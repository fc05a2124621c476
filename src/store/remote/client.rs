//! Requests to a daemon and what their answers mean: problems become errors of the store.

use std::{fmt, time::Duration};

use reqwest::{Client, Method, Response, StatusCode, Url, header, header::HeaderValue};
use serde::{Serialize, de::DeserializeOwned};

use crate::api::{Code, Problem};
use crate::model::{Invalid, Name};
use crate::store::StoreError;

/// A client of one daemon.
#[derive(Clone)]
pub(super) struct Daemon {
    http: Client,
    base: Url,
    /// The header that carries the token; no log shows it.
    authorization: Option<HeaderValue>,
}

/// What a call is about, for errors that name it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct About<'a> {
    pub(super) namespace: Option<&'a Name>,
    pub(super) route: Option<&'a Name>,
}

impl<'a> From<&'a Name> for About<'a> {
    fn from(namespace: &'a Name) -> Self {
        Self { namespace: Some(namespace), route: None }
    }
}

impl Daemon {
    /// The longest time a call may take; the daemon's own time-outs are shorter.
    const TIMEOUT: Duration = Duration::from_secs(20);

    /// How long a stream may be silent: three of the daemon's heartbeats.
    const SILENCE: Duration = Duration::from_secs(30);

    /// A client of the daemon at `url`.
    pub(super) fn new(url: &str, token: Option<String>) -> Result<Self, StoreError> {
        let wrong = |problem: &str| Invalid::new("server", format!("{problem}; give it as in http://127.0.0.1:7878"));
        let mut base: Url = url.parse().map_err(|_| wrong("is no URL"))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(wrong("is no http:// or https:// URL").into());
        }
        if base.password().is_some() || !base.username().is_empty() {
            return Err(wrong("holds a name or a password; give the token in FOREWARN_TOKEN").into());
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(wrong("has a query").into());
        }
        let path = base.path().trim_end_matches('/').to_owned();
        base.set_path(&path);
        // The same provider as everywhere; that somebody else was quicker is no harm.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = Client::builder().timeout(Self::TIMEOUT).read_timeout(Self::SILENCE);
        let http = http.connect_timeout(Duration::from_secs(5)).build();
        let http = http.map_err(|e| Invalid::new("server", format!("cannot be spoken to: {e}")))?;
        Ok(Self { http, base, authorization: token.map(authorization).transpose()? })
    }

    /// Where it is.
    pub(super) fn address(&self) -> String {
        self.base.as_str().trim_end_matches('/').to_owned()
    }

    /// The URL of a path: its parts, percent-encoded as needed.
    pub(super) fn url(&self, parts: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("v1").extend(parts);
        }
        url
    }

    /// A request; nothing is sent yet.
    pub(super) fn request(&self, method: Method, url: Url) -> reqwest::RequestBuilder {
        let request = self.http.request(method, url);
        match &self.authorization {
            Some(authorization) => request.header(header::AUTHORIZATION, authorization),
            None => request,
        }
    }

    /// Reads.
    pub(super) async fn get<T: DeserializeOwned>(&self, url: Url, about: About<'_>) -> Result<T, StoreError> {
        let response = self.send(self.request(Method::GET, url), about).await?;
        self.read(response).await
    }

    /// Reads what may not be there.
    pub(super) async fn find<T: DeserializeOwned>(&self, url: Url, about: About<'_>) -> Result<Option<T>, StoreError> {
        let response = self.request(Method::GET, url).send().await.map_err(|error| self.unreachable(error))?;
        if response.status().is_success() {
            return self.read(response).await.map(Some);
        }
        match self.problem(response).await {
            Ok(problem) if problem.code == Code::UnknownDeadline => Ok(None),
            Ok(problem) => Err(self.error(problem, about)),
            Err(error) => Err(error),
        }
    }

    /// Asks with a body, and reads the answer.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        url: Url,
        body: &impl Serialize,
        about: About<'_>,
    ) -> Result<T, StoreError> {
        let response = self.send(self.request(method, url).json(body), about).await?;
        self.read(response).await
    }

    /// Sends a request; an answer that is a problem is an error.
    pub(super) async fn send(
        &self,
        request: reqwest::RequestBuilder,
        about: About<'_>,
    ) -> Result<Response, StoreError> {
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let problem = self.problem(response).await?;
        Err(self.error(problem, about))
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T, StoreError> {
        let bytes = response.bytes().await.map_err(|error| self.unreachable(error))?;
        serde_json::from_slice(&bytes).map_err(|error| self.odd(format!("its answer is not understood: {error}")))
    }

    async fn problem(&self, response: Response) -> Result<Problem, StoreError> {
        let status = response.status();
        let problem = response.bytes().await.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        problem.ok_or_else(|| match status {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => {
                self.unavailable(status.to_string())
            }
            _ => self.odd(format!("it answered {status}; is a forewarn daemon there?")),
        })
    }

    fn error(&self, problem: Problem, about: About<'_>) -> StoreError {
        let Problem { code, detail, field, route, .. } = problem;
        let route = route.and_then(|route| Name::new("route", route).ok()).or_else(|| about.route.cloned());
        match (code, about.namespace, route) {
            (Code::Invalid, ..) => {
                let field = field.unwrap_or_else(|| "request".to_owned());
                let rest = detail.strip_prefix(&field).map(|rest| rest.trim_start().to_owned());
                Invalid::new(field, rest.unwrap_or(detail)).into()
            }
            (Code::UnknownNamespace, Some(namespace), _) => StoreError::Unconfigured { namespace: namespace.clone() },
            (Code::UnknownRoute, Some(namespace), Some(route)) => {
                StoreError::NoRoute { namespace: namespace.clone(), route }
            }
            (Code::TooLarge, ..) => Invalid::new("request", format!("is too large for the daemon: {detail}")).into(),
            (Code::KeyBacked, Some(namespace), _) => StoreError::KeyBacked { namespace: namespace.clone() },
            (Code::Conflict, Some(namespace), _) => {
                let said = format!("settings of namespace \"{namespace}\" were not applied: ");
                let reason = detail.strip_prefix(&said).map(str::to_owned).unwrap_or(detail);
                StoreError::Conflict { namespace: namespace.clone(), reason }
            }
            (Code::StoreFull, ..) => StoreError::Full { address: self.address() },
            (Code::Unauthenticated | Code::Forbidden, ..) => {
                StoreError::Denied { address: self.address(), source: detail.into() }
            }
            (Code::StoreUnavailable | Code::Stopping | Code::TooMany | Code::TooSlow, ..) => self.unavailable(detail),
            _ => self.odd(detail),
        }
    }

    fn unavailable(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
        StoreError::Unavailable { address: self.address(), source: source.into() }
    }

    /// Without the URL: ids stand in it, which may be secrets.
    fn unreachable(&self, error: reqwest::Error) -> StoreError {
        self.unavailable(error.without_url())
    }

    /// The error for an answer that makes no sense.
    pub(super) fn odd(&self, problem: impl Into<String>) -> StoreError {
        StoreError::Unexpected { address: self.address(), problem: problem.into() }
    }
}

fn authorization(token: String) -> Result<HeaderValue, Invalid> {
    let value = HeaderValue::try_from(format!("Bearer {}", token.trim()));
    let mut value = value.map_err(|_| Invalid::new("token", "holds characters that no token has; give it as it is"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Without the token.
impl fmt::Debug for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemon").field("address", &self.address()).finish_non_exhaustive()
    }
}
