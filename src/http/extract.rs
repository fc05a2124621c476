//! What handlers take: a namespace the caller may use, an id of any bytes, a query, a body of JSON.

use std::{borrow::Cow, ops::Deref, sync::Arc};

use axum::{
    extract::{FromRequest, FromRequestParts, Query, Request},
    http::{HeaderMap, header, request::Parts},
};
use http_body_util::BodyExt as _;
use percent_encoding::percent_decode_str;
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use tokio::time::timeout;
use utoipa::IntoParams;

use crate::api::{Code, Object, id_from_base64};
use crate::config::Scope;
use crate::forewarn::Namespace;
use crate::http::App;
use crate::http::auth::Caller;
use crate::http::error::Problem;
use crate::model::{Handle, Id, Invalid, Name};

/// The part of a path at this place, as its bytes: `/v1/namespaces/NS/deadlines/ID` has NS at 3 and ID at 5.
fn part(parts: &Parts, place: usize) -> Cow<'_, [u8]> {
    parts.uri.path().split('/').nth(place).map(|part| percent_decode_str(part).into()).unwrap_or_default()
}

/// The part of a path at this place, as text.
pub(super) fn text_at(parts: &Parts, place: usize) -> String {
    String::from_utf8_lossy(&part(parts, place)).into_owned()
}

fn caller(parts: &Parts) -> Result<&Caller, Problem> {
    let nobody = || Problem::new(Code::Unauthenticated, "nobody asked who calls");
    parts.extensions.get::<Caller>().ok_or_else(nobody)
}

/// Makes the extractor of a namespace in which the caller has a scope.
macro_rules! namespace {
    ($(#[doc = $doc:literal])+ $type:ident, $scope:ident) => {
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub(super) struct $type {
            namespace: Namespace,
            /// Its name.
            pub(super) name: Name,
        }

        impl FromRequestParts<App> for $type {
            type Rejection = Problem;
            async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
                let caller = caller(parts)?;
                caller.check_scope(Scope::$scope)?;
                let name = Name::new("namespace", text_at(parts, 3))?;
                caller.check(Scope::$scope, &name)?;
                let store = Arc::clone(app.forewarn().store());
                Ok(Self { namespace: Namespace::of(store, name.clone()), name })
            }
        }

        impl Deref for $type {
            type Target = Namespace;
            fn deref(&self) -> &Namespace {
                &self.namespace
            }
        }
    };
}

namespace!(
    /// The namespace of the path, for a caller who may look.
    ToRead, Read
);
namespace!(
    /// The namespace of the path, for a caller who may work with deadlines.
    ToWrite, Write
);
namespace!(
    /// The namespace of the path, for a caller who may change it.
    ToManage, Admin
);

/// Whoever calls.
#[derive(Debug)]
pub(super) struct Anybody(pub(super) Caller);

impl FromRequestParts<App> for Anybody {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        caller(parts).map(|caller| Self(caller.clone()))
    }
}

/// How an id is given that does not fit in a path: with `-` in its place.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it is for the document; the id's own extractor reads it")]
pub(super) struct IdQuery {
    /// With `-` in place of the id: the id in URL-safe base64 (RFC 4648, section 5), for ids that clients fold (`.`, `..`) or that
    /// are not UTF-8.
    id_base64: Option<String>,
    /// With `-` in place of the id: the handle that stands for it, where ids are secrets. The first look-up goes through all ids.
    handle: Option<String>,
}

/// The id of the path: any bytes, percent-encoded, or `-` and `?id_base64=` or `?handle=`.
#[derive(Debug)]
pub(super) struct PathId(pub(super) Id);

impl FromRequestParts<App> for PathId {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let id = part(parts, 5);
        // Read by itself: the handler's own query may hold what it does not know.
        let query = parts.uri.query().unwrap_or_default();
        let given = |name: &str| {
            let text = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
            Some(percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned())
        };
        let (base64, handle) = (given("id_base64"), given("handle"));
        if *id != *b"-" && (base64.is_some() || handle.is_some()) {
            let field = if base64.is_some() { "id_base64" } else { "handle" };
            let problem = format!("is given beside an id in the path; put - in its place: …/deadlines/-?{field}=…");
            return Err(Invalid::new(field, problem).into());
        }
        match (base64, handle) {
            (None, None) => Ok(Self(Id::new(&*id)?)),
            (Some(text), None) => Ok(Self(id_from_base64(&text)?)),
            (None, Some(handle)) => {
                let namespace = app.forewarn().namespace(text_at(parts, 3));
                let found = namespace.find(&handle.parse()?).await?;
                let unknown =
                    || Problem::new(Code::UnknownDeadline, "no id has this handle; list shows those there are");
                found.map(Self).ok_or_else(unknown)
            }
            (Some(_), Some(_)) => {
                Err(Invalid::new("id_base64", "is given together with handle; give one of them").into())
            }
        }
    }
}

/// The handle of the path.
#[derive(Debug)]
pub(super) struct PathHandle(pub(super) Handle);

impl FromRequestParts<App> for PathHandle {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        Ok(Self(text_at(parts, 5).parse()?))
    }
}

/// A query, with errors that name the field.
#[derive(Debug)]
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Asked<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(rejection) => {
                // The field and what is wrong with it stand in the cause.
                let cause = std::error::Error::source(&rejection).map(ToString::to_string);
                let text = cause.unwrap_or_else(|| rejection.body_text());
                let is_field = |field: &&str| field.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
                let unknown = text
                    .strip_prefix("unknown field `")
                    .or_else(|| text.split_once(": unknown field `").map(|(_, it)| it));
                let (field, problem) = match (unknown, text.split_once(": ").filter(|(field, _)| is_field(field))) {
                    (Some(rest), _) => (rest.split('`').next().unwrap_or("query"), text.as_str()),
                    (None, Some(parts)) => parts,
                    (None, None) => ("query", text.as_str()),
                };
                Err(Invalid::new(field.to_owned(), format!("is not acceptable: {problem}")).into())
            }
        }
    }
}

/// A body of JSON.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

/// A body of JSON that may be left out.
#[derive(Debug)]
pub(super) struct MaybeBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        check_content_type(request.headers())?;
        Ok(Self(parse(&read(request, app).await?)?))
    }
}

impl<T: DeserializeOwned + Default> FromRequest<App> for MaybeBody<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let is_json = check_content_type(request.headers());
        let bytes = read(request, app).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        is_json?;
        Ok(Self(parse(&bytes)?))
    }
}

/// A page in somebody's browser may send other types to this machine without asking; JSON it may not.
fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" || essence.starts_with("application/") && essence.ends_with("+json") {
        return Ok(());
    }
    Err(Problem::new(Code::UnsupportedMediaType, "send the body as JSON, with Content-Type: application/json"))
}

/// How much of a body that is too large is taken and thrown away: a client that is cut off while it sends never hears why.
const WASTE: usize = 8 << 20;

async fn read(request: Request, app: &App) -> Result<Vec<u8>, Problem> {
    let limits = app.limits();
    let too_large = || {
        let detail = format!("the body has more than {} bytes; send less, or raise limits.max_body", limits.max_body);
        Problem::new(Code::TooLarge, detail)
    };
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let length: usize = length.unwrap_or(0);
    let most = usize::try_from(limits.max_body).unwrap_or(usize::MAX);
    // Who asks first has sent nothing yet.
    let asks_first = request.headers().contains_key(header::EXPECT);
    if length > most.saturating_add(WASTE) || length > most && asks_first {
        return Err(too_large());
    }
    match timeout(limits.request_timeout, collect(request.into_body(), length.min(most), most)).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => Err(too_large()),
        Ok(Err(error)) => Err(Problem::new(Code::Malformed, format!("the body did not arrive whole: {error}"))),
        Err(_) => Err(Problem::new(Code::TooSlow, "the body did not arrive in time; send it faster")),
    }
}

/// The whole body; nothing if it is larger than `most`.
async fn collect(mut body: axum::body::Body, expected: usize, most: usize) -> Result<Option<Vec<u8>>, axum::Error> {
    let (mut bytes, mut seen) = (Vec::with_capacity(expected.min(64 << 10)), 0_usize);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        seen = seen.saturating_add(data.len());
        if seen <= most {
            bytes.extend_from_slice(&data);
        } else if seen > most.saturating_add(WASTE) {
            break;
        } else {
            bytes = Vec::new();
        }
    }
    Ok((seen <= most).then_some(bytes))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // To say what is wrong, and where, costs time, so it is looked for only if something is.
    let Object(read) = serde_json::from_slice(bytes).or_else(|error| {
        // What is of the wrong kind may be no JSON further on.
        let further = || serde_json::from_slice::<IgnoredAny>(bytes).err();
        if let Some(error) = if error.is_data() { further() } else { Some(error) } {
            return Err(Problem::new(Code::Malformed, format!("the body is no JSON: {error}")));
        }
        let mut json = serde_json::Deserializer::from_slice(bytes);
        serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            let field = if path == "." { "body".to_owned() } else { path };
            Problem::from(Invalid::new(field, format!("is not acceptable: {}", error.inner())))
        })
    })?;
    Ok(read)
}
