//! The adapter of the port for a daemon's HTTP API: whoever has no way to the store itself works through one.
//!
//! Everything is carried out by the daemon; nothing rests here. What belongs to the store's own place, such as copying it, is
//! refused with where to do it.

mod client;
mod parked;
mod settle;
mod watch;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use reqwest::Method;
use serde::Deserialize;

use crate::api::{
    Action, Answer, Answers, AppliedForm, ApplyBody, BatchBody, BatchEntry, DeadlineForm, DeadlinePage, HistoryForm,
    HistoryPage, IdForm, ModeForm, NamespaceForm, NamespaceList, PauseBody, ResumeBody, read_id, read_instant,
};
use crate::model::{Handle, Id, IdKey, Invalid, LeadTime, Mode, Name, Pause, Renew, Settings, Track, span_ms};
use crate::store::copy::{Bookmark, CopyMark, Exported, Row};
use crate::store::{
    Applied, Change, Checked, Claims, Configured, DeadlineView, Expired, Failing, Feed, Found, HistoryEntry,
    HistoryQuery, ListQuery, Listed, Parked, ParkedPage, ParkedQuery, Preview, Registered, Removed, Renewed, Replaced,
    Requeued, Settled, Shelf, Stats, Store, StoreError, Token, Tracked, Wakeups,
};

use client::{About, Daemon};

/// The store of a daemon, through its HTTP API. A clone is another handle to the same one.
#[derive(Debug, Clone)]
pub struct RemoteStore {
    daemon: Daemon,
}

#[derive(Debug, Deserialize)]
struct Now {
    now: String,
}

impl RemoteStore {
    /// The store of the daemon at `url`, as in `http://127.0.0.1:7878`; `token` if it needs one. Nothing is asked yet.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a URL that cannot be understood.
    pub fn new(url: &str, token: Option<String>) -> Result<Self, StoreError> {
        Ok(Self { daemon: Daemon::new(url, token)? })
    }

    /// The store of the daemon at `url`, if it answers.
    ///
    /// # Errors
    /// As for [`RemoteStore::new`]; [`StoreError::Unavailable`] if nothing answers, [`StoreError::Denied`] without a token that
    /// it accepts.
    pub async fn connect(url: &str, token: Option<String>) -> Result<Self, StoreError> {
        let store = Self::new(url, token)?;
        store.now().await?;
        Ok(store)
    }

    fn url(&self, namespace: &Name, parts: &[&str]) -> reqwest::Url {
        let all: Vec<&str> = ["namespaces", namespace.as_str()].into_iter().chain(parts.iter().copied()).collect();
        self.daemon.url(&all)
    }

    /// The URL of a deadline; its id is in the query, which carries any bytes past everything between.
    fn url_of(&self, namespace: &Name, id: &Id) -> reqwest::Url {
        let mut url = self.url(namespace, &["deadlines", "-"]);
        url.query_pairs_mut().append_pair("id_base64", &id.to_base64());
        url
    }

    async fn batch(
        &self,
        namespace: &Name,
        action: Action,
        mode: ModeForm,
        entries: Vec<BatchEntry>,
    ) -> Result<Vec<Answer>, StoreError> {
        let mut results = Vec::with_capacity(entries.len());
        let url = self.url(namespace, &["deadlines"]);
        for entries in bodies(&entries) {
            let body = BatchBody { action, mode, entries: entries.to_vec() };
            let Answers { results: told } = self.daemon.ask(Method::POST, url.clone(), &body, namespace.into()).await?;
            if told.len() != entries.len() {
                return Err(self.daemon.odd(format!("it gave {} answers to {} entries", told.len(), entries.len())));
            }
            results.extend(told);
        }
        Ok(results)
    }

    fn configured_of(&self, form: NamespaceForm) -> Result<Configured, StoreError> {
        let NamespaceForm { version, settings, routes, paused, id_key, .. } = form;
        let id_key = id_key.as_deref().map(IdKey::from_hex).transpose()?;
        Ok(Configured { version, settings: Settings::try_from(settings)?, routes, paused, id_key })
    }

    /// Reads the id of an entry, which is a secret where its handle stands.
    fn read_id(&self, id: Option<&str>, id_base64: Option<&str>, handle: Option<&str>) -> Result<Id, StoreError> {
        if handle.is_some() {
            let source = "the ids of this namespace are secrets; a token of scope admin is shown them";
            return Err(StoreError::Denied { address: self.daemon.address(), source: source.into() });
        }
        Ok(read_id(id, id_base64)?)
    }

    /// Why a verb is not for a daemon's clients.
    fn elsewhere(&self) -> StoreError {
        let problem = "is a daemon; copy the store itself, by its own URL";
        Invalid::new("store", format!("{} {problem}", self.daemon.address())).into()
    }
}

/// Batches that a daemon takes in one body.
fn bodies(entries: &[BatchEntry]) -> Vec<&[BatchEntry]> {
    let size = |entry: &BatchEntry| {
        let json = entry.payload.as_ref().map_or(0, |json| json.get().len());
        json + entry.payload_base64.as_ref().map_or(0, String::len)
    };
    let (mut bodies, mut from, mut bytes) = (Vec::new(), 0, 0);
    for (at, entry) in entries.iter().enumerate() {
        bytes += size(entry);
        if at > from && (at - from >= crate::api::MAX_BATCH || bytes > MAX_PAYLOADS) {
            bodies.push(&entries[from..at]);
            (from, bytes) = (at, size(entry));
        }
    }
    bodies.extend((from < entries.len()).then(|| &entries[from..]));
    bodies
}

/// The most payload of one body; a daemon takes 4 MiB unless it is told otherwise, and ids need their place, too.
const MAX_PAYLOADS: usize = 1024 * 1024;

fn optional<T>(answer: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(StoreError::Unconfigured { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[async_trait]
impl Store for RemoteStore {
    async fn now(&self) -> Result<i64, StoreError> {
        let Now { now } = self.daemon.get(self.daemon.url(&["time"]), About::default()).await?;
        Ok(read_instant(&now)?)
    }

    async fn namespaces(&self) -> Result<Vec<Registered>, StoreError> {
        let list: NamespaceList = self.daemon.get(self.daemon.url(&["namespaces"]), About::default()).await?;
        Ok(list.namespaces)
    }

    async fn configured(&self, namespace: &Name) -> Result<Arc<Configured>, StoreError> {
        let form = self.daemon.get(self.url(namespace, &[]), namespace.into()).await?;
        self.configured_of(form).map(Arc::new)
    }

    async fn configure(&self, namespace: &Name, change: &Change) -> Result<Applied, StoreError> {
        let (url, body) = (self.url(namespace, &[]), ApplyBody::from(change));
        let applied: AppliedForm = self.daemon.ask(Method::PUT, url, &body, namespace.into()).await?;
        let form = applied.namespace.ok_or_else(|| self.daemon.odd("it does not say what is in force"))?;
        let configured = Arc::new(self.configured_of(form)?);
        Ok(Applied { created: applied.created, changed: applied.changed, configured })
    }

    async fn preview(&self, namespace: &Name, change: &Change) -> Result<Preview, StoreError> {
        let mut url = self.url(namespace, &[]);
        url.query_pairs_mut().append_pair("dry_run", "true");
        let seen: AppliedForm = self.daemon.ask(Method::PUT, url, &ApplyBody::from(change), namespace.into()).await?;
        let count = |one: crate::api::LeadCount| Ok((LeadTime::from_millis(one.lead_ms)?, one.count));
        Ok(Preview {
            created: seen.created,
            changed: seen.changed,
            reminders: seen.reminders.unwrap_or_default().into_iter().map(count).collect::<Result<_, Invalid>>()?,
            cleanups: seen.cleanups.unwrap_or_default(),
        })
    }

    async fn forget(&self, namespace: &Name) -> Result<bool, StoreError> {
        let mut url = self.url(namespace, &[]);
        url.query_pairs_mut().append_pair("force", "true");
        let deleted = self.daemon.send(self.daemon.request(Method::DELETE, url), namespace.into()).await;
        optional(deleted).map(|deleted| deleted.is_some())
    }

    async fn pause(&self, namespace: &Name, pause: &Pause) -> Result<(), StoreError> {
        if !pause.reminders && !pause.cleanups {
            // For the API neither means both; here it is nothing, of what has to be there all the same.
            let configured = self.configured(namespace).await?;
            let is_there = |route: &Name| configured.routes.iter().any(|known| known.name == *route);
            return match &pause.route {
                Some(route) if !is_there(route) => {
                    Err(StoreError::NoRoute { namespace: namespace.clone(), route: route.clone() })
                }
                _ => Ok(()),
            };
        }
        let about = About { route: pause.route.as_ref(), ..namespace.into() };
        let request = |verb| self.daemon.request(Method::POST, self.url(namespace, &[verb]));
        let request = match pause.paused {
            true => request("pause").json(&PauseBody::from(pause)),
            false => request("resume").json(&ResumeBody::from(pause)),
        };
        self.daemon.send(request, about).await.map(drop)
    }

    async fn track(&self, namespace: &Name, mode: Mode, entries: &[Track]) -> Result<Vec<Tracked>, StoreError> {
        let entries = entries.iter().map(BatchEntry::track).collect();
        let answers = self.batch(namespace, Action::Track, mode.into(), entries).await?;
        answers.into_iter().map(Answer::into_tracked).collect()
    }

    async fn replace(&self, namespace: &Name, mode: Mode, new: &Track, old: &Id) -> Result<Replaced, StoreError> {
        let entry = BatchEntry { replaces_base64: Some(old.to_base64()), ..BatchEntry::track(new) };
        let answer = self.batch(namespace, Action::Track, mode.into(), vec![entry]).await?.pop();
        let answer = answer.ok_or_else(|| self.daemon.odd("it gave no answer"))?;
        // Without it, it was refused before anything was looked at.
        match answer.replaced {
            Some(replaced) => Ok(Replaced { tracked: answer.into_tracked()?, replaced }),
            None => match answer.into_tracked()? {
                Tracked::Rejected(invalid) if invalid.field() == "replaces" => Err(invalid.into()),
                tracked => Ok(Replaced { tracked, replaced: false }),
            },
        }
    }

    async fn renew(&self, namespace: &Name, entries: &[Renew]) -> Result<Vec<Renewed>, StoreError> {
        let entries = entries.iter().map(BatchEntry::from).collect();
        let answers = self.batch(namespace, Action::Renew, ModeForm::default(), entries).await?;
        answers.into_iter().map(Answer::into_renewed).collect()
    }

    async fn remove(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Removed>, StoreError> {
        let entries = ids.iter().map(BatchEntry::of).collect();
        let answers = self.batch(namespace, Action::Remove, ModeForm::default(), entries).await?;
        answers.into_iter().map(Answer::into_removed).collect()
    }

    async fn expire(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Expired>, StoreError> {
        let entries = ids.iter().map(BatchEntry::of).collect();
        let answers = self.batch(namespace, Action::Expire, ModeForm::default(), entries).await?;
        answers.into_iter().map(Answer::into_expired).collect()
    }

    async fn show(&self, namespace: &Name, id: &Id) -> Result<Option<DeadlineView>, StoreError> {
        let found = self.daemon.find::<DeadlineForm>(self.url_of(namespace, id), namespace.into()).await?;
        Ok(found.map(|form| form.read(namespace, id)).transpose()?)
    }

    async fn find(&self, namespace: &Name, handle: &Handle) -> Result<Found, StoreError> {
        let url = self.url(namespace, &["handles", &handle.to_string()]);
        match self.daemon.find::<IdForm>(url, namespace.into()).await? {
            Some(form) => Ok(Found::Id(read_id(form.id.as_deref(), form.id_base64.as_deref())?)),
            None => Ok(Found::Nowhere),
        }
    }

    async fn list(&self, namespace: &Name, query: &ListQuery) -> Result<Vec<Listed>, StoreError> {
        let ListQuery { within, after, limit } = query;
        let limit = if *limit == 0 { 100 } else { *limit };
        let mut listed = Vec::new();
        let mut after = after.clone();
        while u32::try_from(listed.len()).is_ok_and(|len| len < limit) {
            let page = (limit - u32::try_from(listed.len()).unwrap_or(limit)).min(1000);
            let mut url = self.url(namespace, &["deadlines"]);
            url.query_pairs_mut().append_pair("limit", &page.to_string());
            if let Some(within) = within {
                url.query_pairs_mut().append_pair("within", &format!("{}ms", span_ms(*within)));
            }
            if let Some((ms, id)) = &after {
                url.query_pairs_mut().append_pair("cursor", &format!("{ms}:{}", id.to_base64()));
            }
            let DeadlinePage { deadlines, next } = self.daemon.get(url, namespace.into()).await?;
            for form in deadlines {
                let id = self.read_id(form.id.as_deref(), form.id_base64.as_deref(), form.handle.as_deref())?;
                listed.push(Listed { id, expires_at_ms: read_instant(&form.expires_at)? });
            }
            after = listed.last().map(|last| (last.expires_at_ms, last.id.clone()));
            if next.is_none() {
                break;
            }
        }
        Ok(listed)
    }

    async fn claim(&self, namespace: &Name, route: &Name, limit: u32, lease: Duration) -> Result<Claims, StoreError> {
        self.claim_once(namespace, route, limit, lease).await
    }

    async fn recheck(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Checked>, StoreError> {
        let answers = self.by_tokens(namespace, route, "check", tokens, None).await?;
        self.read_each(&answers, |answer| answer.read_checked())
    }

    async fn ack(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, StoreError> {
        let answers = self.by_tokens(namespace, route, "ack", tokens, None).await?;
        self.read_each(&answers, |answer| answer.read())
    }

    async fn fail(&self, namespace: &Name, route: &Name, failing: &[Failing]) -> Result<Vec<Settled>, StoreError> {
        self.fail_each(namespace, route, failing).await
    }

    async fn extend(
        &self,
        namespace: &Name,
        route: &Name,
        tokens: &[Token],
        lease: Duration,
    ) -> Result<Vec<Settled>, StoreError> {
        let answers = self.by_tokens(namespace, route, "extend", tokens, Some(lease)).await?;
        self.read_each(&answers, |answer| answer.read())
    }

    async fn release(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, StoreError> {
        let answers = self.by_tokens(namespace, route, "release", tokens, None).await?;
        self.read_each(&answers, |answer| answer.read())
    }

    async fn parked(&self, namespace: &Name, shelf: Shelf, query: &ParkedQuery) -> Result<ParkedPage, StoreError> {
        self.parked_pages(namespace, shelf, query.clone()).await
    }

    async fn requeue(&self, namespace: &Name, shelf: Shelf, keys: &[Parked]) -> Result<Vec<Requeued>, StoreError> {
        self.requeue_each(namespace, shelf, keys).await
    }

    async fn discard(&self, namespace: &Name, shelf: Shelf, keys: &[Parked]) -> Result<Vec<bool>, StoreError> {
        self.discard_each(namespace, shelf, keys).await
    }

    async fn stats(&self, namespace: &Name) -> Result<Stats, StoreError> {
        self.daemon.get(self.url(namespace, &["stats"]), namespace.into()).await
    }

    async fn export(&self, _: &Name, _: Option<&Bookmark>, _: u32) -> Result<Exported, StoreError> {
        Err(self.elsewhere())
    }

    async fn import(&self, _: &Name, _: &[Row], _: Option<&CopyMark>) -> Result<(), StoreError> {
        Err(self.elsewhere())
    }

    async fn copy_mark(&self, _: &Name) -> Result<Option<CopyMark>, StoreError> {
        Err(self.elsewhere())
    }

    fn can_hold(&self, _: &Row) -> bool {
        false
    }

    fn place(&self) -> String {
        self.daemon.address()
    }

    async fn history(&self, namespace: &Name, query: &HistoryQuery) -> Result<Vec<HistoryEntry>, StoreError> {
        let mut url = self.url(namespace, &["history"]);
        url.query_pairs_mut().append_pair("limit", &query.limit().to_string());
        if let Some(id) = &query.id {
            url.query_pairs_mut().append_pair("id_base64", &id.to_base64());
        }
        let HistoryPage { entries } = self.daemon.get(url, namespace.into()).await?;
        let read = |form: HistoryForm| {
            let id = match &form.notice {
                Some(_) => Some(self.read_id(form.id.as_deref(), form.id_base64.as_deref(), form.handle.as_deref())?),
                None => None,
            };
            Ok(form.read(namespace, id)?)
        };
        entries.into_iter().map(read).collect()
    }

    async fn resync(&self, _: &Name) -> Result<Duration, StoreError> {
        // The daemon sees to it.
        Ok(Duration::from_secs(3600))
    }

    async fn wakeups(&self, namespace: &Name) -> Result<Wakeups, StoreError> {
        self.hear_wakeups(namespace).await
    }

    async fn feed(&self, namespace: &Name) -> Result<Feed, StoreError> {
        self.hear_hand_outs(namespace).await
    }
}
