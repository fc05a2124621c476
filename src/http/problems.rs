//! Which problems a handler may answer with, for the OpenAPI document: those that all share, said once.

use std::collections::BTreeMap;

use utoipa::{
    IntoResponses,
    openapi::{Content, RefOr, Response, ResponseBuilder, schema::Ref},
};

/// What any request may be answered.
#[derive(Debug)]
pub(super) struct Common;

/// What a request with a body may be answered.
#[derive(Debug)]
pub(super) struct Writing;

const COMMON: &[(u16, &str)] = &[
    (400, "The request cannot be understood"),
    (401, "A token is needed, or the given one is not known"),
    (403, "The token does not allow this"),
    (404, "The namespace, route, id or notice is not known"),
    (422, "A value is not acceptable: see `field`"),
    (429, "More at once than allowed: see `Retry-After`"),
    (431, "The header is too large"),
    (503, "The store is unavailable, or the daemon is stopping: see `Retry-After`"),
];

const WRITING: &[(u16, &str)] = &[
    (408, "The body did not arrive in time"),
    (409, "It conflicts with what is in force"),
    (413, "The body is too large"),
    (415, "The body is not JSON by its content type"),
];

impl IntoResponses for Common {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        responses(COMMON)
    }
}

impl IntoResponses for Writing {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut all = responses(COMMON);
        all.extend(responses(WRITING));
        all
    }
}

fn responses(statuses: &[(u16, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let response = |(status, description): &(u16, &str)| {
        let content = Content::new(Some(Ref::from_schema_name("Problem")));
        let response = ResponseBuilder::new().description(*description);
        // That one is answered before anything is known of the request, without a body.
        let response = if *status == 431 { response } else { response.content("application/problem+json", content) };
        (status.to_string(), response.build().into())
    };
    statuses.iter().map(response).collect()
}
