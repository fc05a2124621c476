//! The port `Store`: where deadlines rest. Its words and outcomes are the same for every adapter.
//!
//! Every verb takes a batch and answers for each entry in the order given. Expected outcomes are values; an error
//! means that the whole call could not be carried out. A call that failed with [`StoreError::Unavailable`] may have
//! been carried out nevertheless; every verb may be called again.

pub mod copy;
mod error;
mod feed;
mod history;
mod notation;
mod plan;
mod recurrence;
pub mod redis;
#[cfg(feature = "daemon")]
pub mod remote;
mod reply;
mod request;
pub mod sqlite;
mod view;

use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::stream::BoxStream;

use crate::model::{Handle, Id, Mode, Name, Pause, Renew, Track};

use copy::{Bookmark, CopyMark, Exported, Row};

pub use error::StoreError;
pub use feed::{Feed, Handed};
pub use history::{Ending, HistoryEntry, HistoryQuery};
pub use reply::{
    Applied, Checked, Claim, Claims, Configured, DropReason, Dropped, Expired, Found, Next, Parked, ParkedPage,
    Preview, Registered, Removed, Renewed, Replaced, Requeued, Settled, Token, Tracked,
};
pub use request::{Change, Failing, ListQuery, ParkedQuery, Shelf, Verdict};
pub use view::{Counters, DeadlineView, DeliveryState, DeliveryView, Listed, RouteStats, Stats};

/// The instants (store's clock, ms) at which something became due earlier than a sleeping worker knew.
///
/// The stream ends when the connection behind it is lost; call [`Store::wakeups`] again.
pub type Wakeups = BoxStream<'static, i64>;

/// Where deadlines rest and notices are claimed.
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// The store's clock, in milliseconds since the epoch.
    async fn now(&self) -> Result<i64, StoreError>;

    /// All namespaces that were ever configured and not forgotten, by name.
    async fn namespaces(&self) -> Result<Vec<Registered>, StoreError>;

    /// The settings of a namespace as they stand in the store, read afresh.
    ///
    /// # Errors
    /// [`StoreError::Unconfigured`] if there are none.
    async fn configured(&self, namespace: &Name) -> Result<Arc<Configured>, StoreError>;

    /// Creates or changes a namespace: its settings, routes or both, in one step for each shard.
    async fn configure(&self, namespace: &Name, change: &Change) -> Result<Applied, StoreError>;

    /// What a change would do at once, without doing it.
    async fn preview(&self, namespace: &Name, change: &Change) -> Result<Preview, StoreError>;

    /// Deletes a namespace with everything in it; answers whether there was one. A worker that still runs on it would
    /// create it again.
    async fn forget(&self, namespace: &Name) -> Result<bool, StoreError>;

    /// Pauses or resumes a namespace or one of its routes.
    async fn pause(&self, namespace: &Name, pause: &Pause) -> Result<(), StoreError>;

    /// Tracks deadlines.
    async fn track(&self, namespace: &Name, mode: Mode, entries: &[Track]) -> Result<Vec<Tracked>, StoreError>;

    /// Tracks `new` in place of `old`: a session whose id rotates. In one step if both ids share a shard.
    async fn replace(&self, namespace: &Name, mode: Mode, new: &Track, old: &Id) -> Result<Replaced, StoreError>;

    /// Moves armed deadlines; never creates one.
    async fn renew(&self, namespace: &Name, entries: &[Renew]) -> Result<Vec<Renewed>, StoreError>;

    /// Removes deadlines and voids what waits of them.
    async fn remove(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Removed>, StoreError>;

    /// Ends deadlines now: disarms them and opens their cleanups.
    async fn expire(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Expired>, StoreError>;

    /// The id behind a handle, if whoever answers has a shorter way to it than through all that is stored.
    async fn find(&self, _namespace: &Name, _handle: &Handle) -> Result<Found, StoreError> {
        Ok(Found::NoShortWay)
    }

    /// Everything known of one id; `None` if nothing is.
    async fn show(&self, namespace: &Name, id: &Id) -> Result<Option<DeadlineView>, StoreError>;

    /// Armed deadlines by expiry, then id.
    async fn list(&self, namespace: &Name, query: &ListQuery) -> Result<Vec<Listed>, StoreError>;

    /// Takes up to `limit` due notices (500 at most) for `route`, for `lease`. With limit 0 it takes nothing and only looks.
    async fn claim(&self, namespace: &Name, route: &Name, limit: u32, lease: Duration) -> Result<Claims, StoreError>;

    /// Checks claims once more before their handlers run; what is no longer valid is dropped.
    async fn recheck(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Checked>, StoreError>;

    /// Settles claims as done.
    async fn ack(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, StoreError>;

    /// Records failures: each is retried later, or parked.
    async fn fail(&self, namespace: &Name, route: &Name, failing: &[Failing]) -> Result<Vec<Settled>, StoreError>;

    /// Makes leases end `lease` from now; never earlier than they would have.
    async fn extend(
        &self,
        namespace: &Name,
        route: &Name,
        tokens: &[Token],
        lease: Duration,
    ) -> Result<Vec<Settled>, StoreError>;

    /// Gives claims back unhandled: ready at once for another worker, no attempt burnt.
    async fn release(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, StoreError>;

    /// Dead letters or reviews, oldest first.
    async fn parked(&self, namespace: &Name, shelf: Shelf, query: &ParkedQuery) -> Result<ParkedPage, StoreError>;

    /// Puts parked notices back to be delivered again.
    async fn requeue(&self, namespace: &Name, shelf: Shelf, keys: &[Parked]) -> Result<Vec<Requeued>, StoreError>;

    /// Deletes parked notices; answers for each whether it was there.
    async fn discard(&self, namespace: &Name, shelf: Shelf, keys: &[Parked]) -> Result<Vec<bool>, StoreError>;

    /// How much of what there is.
    async fn stats(&self, namespace: &Name) -> Result<Stats, StoreError>;

    /// One page of everything a namespace holds, in a form that every store understands. A page without a next one is the
    /// last.
    async fn export(&self, namespace: &Name, after: Option<&Bookmark>, limit: u32) -> Result<Exported, StoreError>;

    /// Writes rows of another store, then where their copy stands; without a mark there is none any more. In one step for each
    /// shard, the mark last. A mark without rows may come before the namespace is configured.
    async fn import(&self, namespace: &Name, rows: &[Row], mark: Option<&CopyMark>) -> Result<(), StoreError>;

    /// Where the copy stands that this namespace comes from; `None` if it comes from none.
    async fn copy_mark(&self, namespace: &Name) -> Result<Option<CopyMark>, StoreError>;

    /// Whether this kind of store has a place for such a row.
    fn can_hold(&self, row: &Row) -> bool;

    /// Where the store is, without secrets: the same for every connection to it by the same address.
    fn place(&self) -> String;

    /// What is remembered of notices that have ended, newest first; nothing unless the settings have a `history`.
    async fn history(&self, namespace: &Name, query: &HistoryQuery) -> Result<Vec<HistoryEntry>, StoreError>;

    /// Looks again at the keys of key-backed ids inside the largest lead, if that is due; answers after what time to call
    /// again. Any number of workers may call; one pass an interval is made for all.
    async fn resync(&self, namespace: &Name) -> Result<Duration, StoreError>;

    /// Listens for events that become due earlier than a sleeping worker knew. Subscribe before the first claim.
    async fn wakeups(&self, namespace: &Name) -> Result<Wakeups, StoreError>;

    /// Observes what is handed out from now on, by any claim of any process on any route, and claims nothing itself.
    ///
    /// # Errors
    /// [`StoreError::Unconfigured`] if the namespace has no settings, [`StoreError::Denied`] if the user may not listen.
    async fn feed(&self, namespace: &Name) -> Result<Feed, StoreError>;
}
