//! Why a worker could not start.

use crate::model::{Invalid, Name};
use crate::store::StoreError;

/// Why a worker could not start. Once it runs, it ends only when told to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The worker was built with something that cannot work.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store refused at the start: most often the namespace was never configured.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The route delivers a kind of notice for which the worker has no handler.
    #[error(
        "route \"{route}\" of namespace \"{namespace}\" delivers {kind}s, and the worker has no on_{kind} handler; \
         add the handler, or work on a route of your own, as in .route(\"{own}\")"
    )]
    NoHandler {
        /// The namespace.
        namespace: Name,
        /// The route.
        route: Name,
        /// `reminder` or `cleanup`.
        kind: &'static str,
        /// A route name to suggest.
        own: &'static str,
    },
}
