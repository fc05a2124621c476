//! Problems as answers: `application/problem+json` with its status, and `Retry-After` where waiting helps.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::api;

/// A problem that ends a request.
#[derive(Debug)]
pub(super) struct Problem(Box<api::Problem>);

impl<T: Into<api::Problem>> From<T> for Problem {
    fn from(problem: T) -> Self {
        Self(Box::new(problem.into()))
    }
}

impl Problem {
    /// A problem of this kind.
    pub(super) fn new(code: api::Code, detail: impl Into<String>) -> Self {
        api::Problem::new(code, detail).into()
    }

    /// What is told.
    #[cfg(test)]
    pub(super) fn told(&self) -> &api::Problem {
        &self.0
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = self.0.retry_after_ms.map(|ms| ms.div_ceil(1000).max(1));
        let mut response = (status, Json(&*self.0)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"forewarn\""));
        }
        response
    }
}
