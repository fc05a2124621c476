//! The Redis adapter of the port: one ZSET of expiries and sweep cursors, worked on by atomic scripts.
//!
//! Owns the layout of the keys and the decoding of replies. Works with Redis 7.0 and Valkey 7.2 or newer. Knows one
//! server; a namespace may nevertheless be split into shards.

mod ask;
mod catch_up;
mod claim;
mod codec;
mod connection;
mod copy;
mod deadline;
mod feed;
mod gather;
mod hand_out;
mod history;
mod keyed;
mod keys;
mod parked;
mod scope;
mod scripts;
mod settings;
mod settle;
mod view;
mod wake;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use crate::model::{Id, Invalid, Mode, Name, Pause, Renew, Track};
use crate::store::copy::{Bookmark, CopyMark, Exported, Row};
use crate::store::{
    Applied, Change, Checked, Claims, Configured, DeadlineView, Expired, Failing, Feed, HistoryEntry, HistoryQuery,
    ListQuery, Listed, Parked, ParkedPage, ParkedQuery, Preview, Registered, Removed, Renewed, Replaced, Requeued,
    Settled, Shelf, Stats, Store, StoreError, Token, Tracked, Wakeups,
};

use codec::Reader;
use connection::Connection;
use deadline::payload_len;
use gather::Gatherer;
use scope::Scope;

/// How to open a [`RedisStore`], beside its URL.
#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// The first part of every key. Default: `fw`, or what the URL's `prefix` says.
    pub prefix: Option<Name>,
    /// The instant (ms) every script takes for now, instead of the server's clock: for tests under virtual time.
    pub manual_clock: Option<Arc<AtomicI64>>,
    /// The longest time a worker sleeps before it claims again. Default: 1 s.
    pub max_poll: Duration,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self { prefix: None, manual_clock: None, max_poll: Duration::from_secs(1) }
    }
}

/// A store on one Redis or Valkey server. A clone is another handle to the same one.
#[derive(Debug, Clone)]
pub struct RedisStore(Arc<Shared>);

/// What the handles of one store share.
#[derive(Debug)]
struct Shared {
    connection: Connection,
    prefix: Name,
    manual_clock: Option<Arc<AtomicI64>>,
    max_poll: Duration,
    scopes: Mutex<HashMap<Name, Arc<Scope>>>,
    /// Where the next claim begins among the shards.
    turn: AtomicUsize,
    nows: Arc<Gatherer<(), (), i64>>,
    tracks: Arc<Gatherer<(Name, Mode), Track, Tracked>>,
    renews: Arc<Gatherer<Name, Renew, Renewed>>,
    removes: Arc<Gatherer<Name, Id, Result<Removed, Invalid>>>,
    shows: Arc<Gatherer<Name, Id, Option<DeadlineView>>>,
}

impl RedisStore {
    /// Connects to the server at `url` and checks that it is new enough.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a URL that cannot be understood, [`StoreError::Unavailable`] if nothing answers.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::open(url, RedisOptions::default()).await
    }

    /// Connects with options.
    ///
    /// # Errors
    /// As for [`RedisStore::connect`].
    pub async fn open(url: &str, options: RedisOptions) -> Result<Self, StoreError> {
        let (url, url_prefix) = take_prefix(url)?;
        let prefix = match options.prefix.or(url_prefix) {
            Some(prefix) => prefix,
            None => Name::new("prefix", "fw")?,
        };
        let connection = Connection::open(&url).await?;
        settings::check_server(&connection).await?;
        let RedisOptions { manual_clock, max_poll, .. } = options;
        Ok(Self(Arc::new(Shared {
            connection,
            prefix,
            manual_clock,
            max_poll,
            scopes: Mutex::default(),
            turn: AtomicUsize::default(),
            nows: Arc::default(),
            tracks: Arc::default(),
            renews: Arc::default(),
            removes: Arc::default(),
            shows: Arc::default(),
        })))
    }

    fn manual_now(&self) -> Option<i64> {
        self.0.manual_clock.as_ref().map(|clock| clock.load(Ordering::SeqCst))
    }

    fn reader<'a>(&'a self, namespace: &'a Name) -> Reader<'a> {
        Reader::new(&self.0.connection, namespace)
    }
}

/// The parameters of a URL that the client understands.
const CLIENT_PARAMETERS: [&str; 4] = ["protocol", "db", "user", "pass"];

/// Takes the parameter `prefix` out of a URL and refuses those that nobody understands.
fn take_prefix(url: &str) -> Result<(String, Option<Name>), StoreError> {
    let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), None)) };
    // A fragment belongs to the client, too.
    let (query, fragment) = query.split_once('#').map_or((query, None), |(query, fragment)| (query, Some(fragment)));
    let (mut prefix, mut others) = (None, Vec::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=').unwrap_or((pair, "")) {
            ("prefix", _) if prefix.is_some() => {
                return Err(Invalid::new("prefix", "is given twice in the store's URL; give it once").into());
            }
            ("prefix", name) => prefix = Some(Name::new("prefix", name)?),
            (known, _) if CLIENT_PARAMETERS.contains(&known) => others.push(pair),
            (unknown, _) => {
                let unknown = unknown.escape_debug();
                return Err(Invalid::new(
                    "store",
                    format!("has the unknown parameter \"{unknown}\"; known are prefix and protocol"),
                )
                .into());
            }
        }
    }
    let mut rest = base.to_owned();
    if !others.is_empty() {
        rest = format!("{rest}?{}", others.join("&"));
    }
    if let Some(fragment) = fragment {
        rest = format!("{rest}#{fragment}");
    }
    Ok((rest, prefix))
}

#[async_trait]
impl Store for RedisStore {
    async fn now(&self) -> Result<i64, StoreError> {
        if let Some(now_ms) = self.manual_now() {
            return Ok(now_ms);
        }
        let store = self.clone();
        let read = move |callers: Vec<()>| {
            let store = store.clone();
            async move { Ok(vec![store.read_now().await?; callers.len()]) }
        };
        self.0.nows.ask((), (), 0, read).await
    }

    async fn namespaces(&self) -> Result<Vec<Registered>, StoreError> {
        self.read_namespaces().await
    }

    async fn configured(&self, namespace: &Name) -> Result<Arc<Configured>, StoreError> {
        Ok(Arc::clone(&self.reload(namespace).await?.configured))
    }

    async fn configure(&self, namespace: &Name, change: &Change) -> Result<Applied, StoreError> {
        self.apply_change(namespace, change).await
    }

    async fn preview(&self, namespace: &Name, change: &Change) -> Result<Preview, StoreError> {
        self.preview_change(namespace, change).await
    }

    async fn forget(&self, namespace: &Name) -> Result<bool, StoreError> {
        self.delete_namespace(namespace).await
    }

    async fn pause(&self, namespace: &Name, pause: &Pause) -> Result<(), StoreError> {
        self.set_pause(namespace, pause).await
    }

    async fn track(&self, namespace: &Name, mode: Mode, entries: &[Track]) -> Result<Vec<Tracked>, StoreError> {
        let [entry] = entries else { return self.track_all(namespace, mode, entries).await };
        let (store, name) = (self.clone(), namespace.clone());
        let send = move |entries: Vec<Track>| {
            let (store, name) = (store.clone(), name.clone());
            async move { store.track_all(&name, mode, &entries).await }
        };
        Ok(vec![
            self.0
                .tracks
                .ask((namespace.clone(), mode), entry.clone(), payload_len(entry.payload.as_deref()), send)
                .await?,
        ])
    }

    async fn replace(&self, namespace: &Name, mode: Mode, new: &Track, old: &Id) -> Result<Replaced, StoreError> {
        self.replace_one(namespace, mode, new, old).await
    }

    async fn renew(&self, namespace: &Name, entries: &[Renew]) -> Result<Vec<Renewed>, StoreError> {
        let [entry] = entries else { return self.renew_all(namespace, entries).await };
        let (store, name) = (self.clone(), namespace.clone());
        let send = move |entries: Vec<Renew>| {
            let (store, name) = (store.clone(), name.clone());
            async move { store.renew_all(&name, &entries).await }
        };
        Ok(vec![
            self.0.renews.ask(namespace.clone(), entry.clone(), payload_len(entry.payload.as_deref()), send).await?,
        ])
    }

    async fn remove(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Removed>, StoreError> {
        let [id] = ids else { return self.remove_all(namespace, ids).await };
        let (store, name) = (self.clone(), namespace.clone());
        let send = move |ids: Vec<Id>| {
            let (store, name) = (store.clone(), name.clone());
            async move { store.remove_each(&name, &ids).await }
        };
        Ok(vec![self.0.removes.ask(namespace.clone(), id.clone(), 0, send).await??])
    }

    async fn expire(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Expired>, StoreError> {
        self.expire_all(namespace, ids).await
    }

    async fn show(&self, namespace: &Name, id: &Id) -> Result<Option<DeadlineView>, StoreError> {
        let (store, name) = (self.clone(), namespace.clone());
        let send = move |ids: Vec<Id>| {
            let (store, name) = (store.clone(), name.clone());
            async move { store.view_each(&name, &ids).await }
        };
        // What it holds is not known before it is read.
        let most = self.scope(namespace).await?.settings().max_payload;
        let bytes = usize::try_from(most).unwrap_or(usize::MAX);
        self.0.shows.ask(namespace.clone(), id.clone(), bytes, send).await
    }

    async fn list(&self, namespace: &Name, query: &ListQuery) -> Result<Vec<Listed>, StoreError> {
        self.list_armed(namespace, query).await
    }

    async fn claim(&self, namespace: &Name, route: &Name, limit: u32, lease: Duration) -> Result<Claims, StoreError> {
        self.claim_due(namespace, route, limit, lease).await
    }

    async fn recheck(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Checked>, StoreError> {
        self.recheck_all(namespace, route, tokens).await
    }

    async fn ack(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, StoreError> {
        self.ack_all(namespace, route, tokens).await
    }

    async fn fail(&self, namespace: &Name, route: &Name, failing: &[Failing]) -> Result<Vec<Settled>, StoreError> {
        self.fail_all(namespace, route, failing).await
    }

    async fn extend(
        &self,
        namespace: &Name,
        route: &Name,
        tokens: &[Token],
        lease: Duration,
    ) -> Result<Vec<Settled>, StoreError> {
        self.extend_all(namespace, route, tokens, lease).await
    }

    async fn release(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, StoreError> {
        self.release_all(namespace, route, tokens).await
    }

    async fn parked(&self, namespace: &Name, shelf: Shelf, query: &ParkedQuery) -> Result<ParkedPage, StoreError> {
        self.read_parked(namespace, shelf, query).await
    }

    async fn requeue(&self, namespace: &Name, shelf: Shelf, parked: &[Parked]) -> Result<Vec<Requeued>, StoreError> {
        self.requeue_all(namespace, shelf, parked).await
    }

    async fn discard(&self, namespace: &Name, shelf: Shelf, parked: &[Parked]) -> Result<Vec<bool>, StoreError> {
        self.discard_all(namespace, shelf, parked).await
    }

    async fn stats(&self, namespace: &Name) -> Result<Stats, StoreError> {
        self.count_all(namespace).await
    }

    async fn export(&self, namespace: &Name, after: Option<&Bookmark>, limit: u32) -> Result<Exported, StoreError> {
        self.export_page(namespace, after, limit).await
    }

    async fn import(&self, namespace: &Name, rows: &[Row], mark: Option<&CopyMark>) -> Result<(), StoreError> {
        self.import_page(namespace, rows, mark).await
    }

    async fn copy_mark(&self, namespace: &Name) -> Result<Option<CopyMark>, StoreError> {
        self.read_copy_mark(namespace).await
    }

    fn can_hold(&self, _row: &Row) -> bool {
        true
    }

    fn place(&self) -> String {
        let place = self.0.connection.place();
        format!("{place}{}prefix={}", if place.contains('?') { '&' } else { '?' }, self.0.prefix)
    }

    async fn history(&self, namespace: &Name, query: &HistoryQuery) -> Result<Vec<HistoryEntry>, StoreError> {
        self.read_history(namespace, query).await
    }

    async fn resync(&self, namespace: &Name) -> Result<Duration, StoreError> {
        self.resync_all(namespace).await
    }

    async fn wakeups(&self, namespace: &Name) -> Result<Wakeups, StoreError> {
        self.listen(namespace).await
    }

    async fn feed(&self, namespace: &Name) -> Result<Feed, StoreError> {
        self.observe(namespace).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_is_taken_out_of_the_url() {
        let taken = |url| take_prefix(url).unwrap();
        assert_eq!(taken("redis://h/0"), ("redis://h/0".to_owned(), None));
        let prefix = Some(Name::new("prefix", "app").unwrap());
        assert_eq!(taken("redis://h/0?prefix=app"), ("redis://h/0".to_owned(), prefix.clone()));
        assert_eq!(taken("redis://h?protocol=resp3&prefix=app"), ("redis://h?protocol=resp3".to_owned(), prefix));
        assert!(take_prefix("redis://h?prefix=A").unwrap_err().to_string().starts_with("prefix \"A\""));
        assert!(take_prefix("redis://h?prefix=a&prefix=b").is_err());
        assert_eq!(taken("rediss://h?prefix=app#insecure").0, "rediss://h#insecure");
        let unknown = take_prefix("redis://h?prefx=a").unwrap_err().to_string();
        assert_eq!(unknown, "store has the unknown parameter \"prefx\"; known are prefix and protocol");
    }
}
