//! What observers hear: hand-outs, as they happen.

use futures::stream::BoxStream;

use crate::model::{Name, Notice};
use crate::store::{Claim, StoreError};

/// What is handed out in a namespace from now on, in the order of each shard.
///
/// The stream ends when the connection behind it is lost; call [`Store::feed`](crate::store::Store::feed) again. What was handed
/// out in between is not heard, nor what an observer is too slow for. An error says what could not be read; the stream may go
/// on.
pub type Feed = BoxStream<'static, Result<Handed, StoreError>>;

/// One hand-out, as an observer hears of it. It is no claim: nothing can be settled with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handed {
    /// The store's clock during the claim, in ms.
    pub at_ms: i64,
    /// The route it was handed out on.
    pub route: Name,
    /// The notice.
    pub notice: Notice,
    /// The number of this attempt: 1 + recorded failures + lapses.
    pub attempt: u32,
    /// When it was due, in ms.
    pub due_at_ms: i64,
    /// Whether a set inside its lead caused it.
    pub on_set: bool,
    /// The payload of the deadline; `None` if it has none.
    pub payload: Option<Vec<u8>>,
}

impl Handed {
    /// What an observer hears of a claim.
    pub(crate) fn new(at_ms: i64, route: &Name, claim: Claim) -> Self {
        let Claim { notice, attempt, due_at_ms, on_set, payload, .. } = claim;
        Self { at_ms, route: route.clone(), notice, attempt, due_at_ms, on_set, payload }
    }
}
