//! Claims on their way to a caller: given back if the caller goes away before they have left.

use std::{convert::Infallible, mem, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use futures::stream;
use serde::Serialize;
use tokio_util::task::TaskTracker;
use tracing::warn;

use crate::api::Code;
use crate::http::error::Problem;
use crate::model::Name;
use crate::store::{Claims, Store, Token};

/// Claims that nobody has got yet. Dropped, they are given back.
#[derive(Debug)]
pub(super) struct Hold {
    store: Arc<dyn Store>,
    namespace: Name,
    route: Name,
    tokens: Vec<Token>,
    tasks: TaskTracker,
}

impl Hold {
    /// Holds what was claimed.
    pub(super) fn new(
        store: Arc<dyn Store>,
        namespace: Name,
        route: Name,
        claims: &Claims,
        tasks: TaskTracker,
    ) -> Self {
        let tokens = claims.claims.iter().map(|claim| claim.token.clone()).collect();
        Self { store, namespace, route, tokens, tasks }
    }

    /// The answer that hands them over: they are the caller's once it is on its way.
    pub(super) fn answer(mut self, form: &impl Serialize) -> Response {
        let Ok(json) = serde_json::to_vec(form) else {
            return Problem::new(Code::StoreTrouble, "the claims cannot be written as JSON").into_response();
        };
        let length = HeaderValue::from(json.len());
        // Asked for when it is about to be written; a connection that is gone never asks.
        let body = stream::once(async move {
            self.tokens.clear();
            Ok::<_, Infallible>(json)
        });
        let headers =
            [(header::CONTENT_TYPE, HeaderValue::from_static("application/json")), (header::CONTENT_LENGTH, length)];
        (headers, Body::from_stream(body)).into_response()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let tokens = mem::take(&mut self.tokens);
        if tokens.is_empty() {
            return;
        }
        let (store, namespace, route) = (Arc::clone(&self.store), self.namespace.clone(), self.route.clone());
        let release = async move {
            let releasing = store.release(&namespace, &route, &tokens);
            match tokio::time::timeout(Duration::from_secs(5), releasing).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    warn!(%namespace, %route, claims = tokens.len(), %error, "claims nobody waited for stay leased");
                }
                Err(_) => warn!(%namespace, %route, claims = tokens.len(), "claims nobody waited for stay leased"),
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(self.tasks.spawn_on(release, &runtime)),
            Err(_) => warn!(namespace = %self.namespace, "claims nobody waited for stay leased: the daemon has ended"),
        }
    }
}
