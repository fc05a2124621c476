//! One namespace under virtual time, with short calls for what readable examples do.
//!
//! Instants are milliseconds after the beginning; ids are text. What is claimed is told in words: `10m a`, `expired a`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use forewarn::model::{
    Class, ExpiresAt, Failure, Id, Kind, LeadTime, Mode, Name, Pause, Renew, Route, Settings, Track, format_span,
};
use forewarn::store::{
    Change, Checked, Claim, Claims, DeadlineView, Expired, Failing, Next, Parked, ParkedQuery, Removed, Renewed,
    Replaced, Settled, Shelf, Store, StoreError, Token, Tracked, Verdict,
};

use crate::ground::{Entry, Ground, Keyspace, Peer};
use crate::harness;
use crate::operation::START;

/// A minute in milliseconds.
pub(crate) const MINUTE: i64 = 60_000;
/// How long claims of a scene are leased.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// A namespace and the clock it lives by.
pub(crate) struct Scene {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) peer: Box<dyn Peer>,
    pub(crate) name: Name,
    clock: Arc<AtomicI64>,
}

pub(crate) fn id(text: impl AsRef<[u8]>) -> Id {
    Id::new(text.as_ref()).expect("a good id")
}

pub(crate) fn route(text: &str) -> Name {
    Name::new("route", text).expect("a good name")
}

pub(crate) fn lead(text: &str) -> LeadTime {
    text.parse().expect("a good lead")
}

/// Settings with these leads and the defaults.
pub(crate) fn reminding(leads: &[&str]) -> Settings {
    leads.iter().fold(Settings::default(), |settings, text| settings.remind(lead(text)))
}

fn expiry(at: i64) -> ExpiresAt {
    ExpiresAt::from_millis(START + at).expect("a good expiry")
}

/// A notice in words.
pub(crate) fn said(notice: &forewarn::model::Notice) -> String {
    match notice.kind {
        Kind::Reminder(lead) => format!("{} {}", format_span(lead.as_duration()), notice.id),
        Kind::Cleanup(reason) => format!("{} {}", reason.as_str(), notice.id),
    }
}

/// What was claimed, in words, sorted.
pub(crate) fn words(claims: &[Claim]) -> Vec<String> {
    let mut words: Vec<String> = claims.iter().map(|claim| said(&claim.notice)).collect();
    words.sort();
    words
}

/// The tokens of claims.
pub(crate) fn tokens(claims: &[Claim]) -> Vec<Token> {
    claims.iter().map(|claim| claim.token.clone()).collect()
}

impl Scene {
    /// A new namespace with these settings.
    pub(crate) async fn open(ground: impl Into<Ground<'_>>, settings: Settings) -> Self {
        Self::with_routes(ground, settings, &[]).await
    }

    /// The same with these routes, written as `NAME`, `NAME:reminders` or `NAME:cleanups`.
    pub(crate) async fn with_routes(ground: impl Into<Ground<'_>>, settings: Settings, routes: &[&str]) -> Self {
        let scene = Self::bare(ground).await;
        scene.configure(settings, routes).await;
        scene
    }

    /// A name without settings.
    pub(crate) async fn bare(ground: impl Into<Ground<'_>>) -> Self {
        Self::of(ground.into().peer().await, harness::namespace()).await
    }

    /// A name without settings, the store of this peer.
    pub(crate) async fn of(peer: Box<dyn Peer>, name: String) -> Self {
        let clock = Arc::new(AtomicI64::new(START));
        let store = peer.open(&clock).await;
        let name = Name::new("namespace", name).expect("a good name");
        Self { store, peer, name, clock }
    }

    /// The same namespace and clock on another store.
    pub(crate) async fn beside(&self) -> Self {
        let store = self.peer.open(&self.clock).await;
        Self { store, peer: self.peer.again(), name: self.name.clone(), clock: Arc::clone(&self.clock) }
    }

    pub(crate) async fn configure(&self, settings: Settings, routes: &[&str]) {
        let mut change = Change::settings(settings);
        change.routes = routes.iter().map(|text| text.parse::<Route>().expect("a good route")).collect();
        self.store.configure(&self.name, &change).await.expect("good settings");
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.load(Ordering::SeqCst) - START
    }

    /// Sets the clock to this many milliseconds after the beginning.
    pub(crate) fn at(&self, ms: i64) {
        self.clock.store(START + ms, Ordering::SeqCst);
    }

    pub(crate) fn pass(&self, ms: i64) {
        self.at(self.now() + ms);
    }

    pub(crate) async fn track_as(&self, mode: Mode, text: &str, at: i64, payload: Option<&str>) -> Tracked {
        let payload = payload.map(|text| text.as_bytes().to_vec());
        let entry = Track { id: id(text), expires_at: expiry(at), payload };
        self.store.track(&self.name, mode, &[entry]).await.expect("an answer").remove(0)
    }

    pub(crate) async fn track(&self, text: &str, at: i64) -> Tracked {
        self.track_as(Mode::Upsert, text, at, None).await
    }

    pub(crate) async fn renew_with(&self, text: &str, at: i64, payload: Option<&str>) -> Renewed {
        let payload = payload.map(|text| text.as_bytes().to_vec());
        let entry = Renew { id: id(text), expires_at: expiry(at), payload };
        self.store.renew(&self.name, &[entry]).await.expect("an answer").remove(0)
    }

    pub(crate) async fn renew(&self, text: &str, at: i64) -> Renewed {
        self.renew_with(text, at, None).await
    }

    pub(crate) async fn replace(&self, mode: Mode, new: &str, at: i64, payload: Option<&str>, old: &str) -> Replaced {
        let payload = payload.map(|text| text.as_bytes().to_vec());
        let entry = Track { id: id(new), expires_at: expiry(at), payload };
        self.store.replace(&self.name, mode, &entry, &id(old)).await.expect("an answer")
    }

    pub(crate) async fn remove(&self, text: &str) -> Removed {
        self.store.remove(&self.name, &[id(text)]).await.expect("an answer").remove(0)
    }

    pub(crate) async fn expire(&self, text: &str) -> Expired {
        self.store.expire(&self.name, &[id(text)]).await.expect("an answer").remove(0)
    }

    pub(crate) async fn show(&self, text: &str) -> Option<DeadlineView> {
        self.store.show(&self.name, &id(text)).await.expect("an answer")
    }

    pub(crate) async fn payload(&self, text: &str) -> Option<String> {
        let payload = self.show(text).await.and_then(|view| view.payload);
        payload.map(|bytes| String::from_utf8(bytes).expect("text"))
    }

    pub(crate) async fn claim_some(&self, name: &str, limit: u32) -> Claims {
        self.store.claim(&self.name, &route(name), limit, LEASE).await.expect("a claim")
    }

    /// Claims everything due for a route.
    pub(crate) async fn claim_on(&self, name: &str) -> Vec<Claim> {
        let mut claims = Vec::new();
        loop {
            let more = self.claim_some(name, 500).await;
            claims.extend(more.claims);
            if more.next != Next::Backlog {
                return claims;
            }
        }
    }

    pub(crate) async fn claim(&self) -> Vec<Claim> {
        self.claim_on("main").await
    }

    /// What is due on a route, claimed and told in words.
    pub(crate) async fn heard_on(&self, name: &str) -> Vec<String> {
        words(&self.claim_on(name).await)
    }

    pub(crate) async fn heard(&self) -> Vec<String> {
        self.heard_on("main").await
    }

    /// Claims and acks everything due; told in words.
    pub(crate) async fn handled_on(&self, name: &str) -> Vec<String> {
        let claims = self.claim_on(name).await;
        self.ack_on(name, &claims).await;
        words(&claims)
    }

    pub(crate) async fn handled(&self) -> Vec<String> {
        self.handled_on("main").await
    }

    pub(crate) async fn ack_on(&self, name: &str, claims: &[Claim]) -> Vec<Settled> {
        self.store.ack(&self.name, &route(name), &tokens(claims)).await.expect("an answer")
    }

    pub(crate) async fn ack(&self, claims: &[Claim]) -> Vec<Settled> {
        self.ack_on("main", claims).await
    }

    pub(crate) async fn recheck(&self, claims: &[Claim]) -> Vec<Checked> {
        self.store.recheck(&self.name, &route("main"), &tokens(claims)).await.expect("an answer")
    }

    pub(crate) async fn extend(&self, claims: &[Claim], lease: i64) -> Vec<Settled> {
        let lease = Duration::from_millis(lease.unsigned_abs());
        self.store.extend(&self.name, &route("main"), &tokens(claims), lease).await.expect("an answer")
    }

    pub(crate) async fn release(&self, claims: &[Claim]) -> Vec<Settled> {
        self.store.release(&self.name, &route("main"), &tokens(claims)).await.expect("an answer")
    }

    pub(crate) async fn fail_on(&self, name: &str, claims: &[Claim], verdict: Verdict) -> Vec<Settled> {
        let failing: Vec<Failing> = claims.iter().map(|claim| failing(claim, verdict, 8)).collect();
        self.store.fail(&self.name, &route(name), &failing).await.expect("an answer")
    }

    pub(crate) async fn fail(&self, claims: &[Claim], verdict: Verdict) -> Vec<Settled> {
        self.fail_on("main", claims, verdict).await
    }

    pub(crate) async fn parked(&self, shelf: Shelf) -> Vec<Parked> {
        self.store.parked(&self.name, shelf, &ParkedQuery::default()).await.expect("a page").entries
    }

    /// Pauses or resumes reminders, cleanups or both; `name`: of one route.
    pub(crate) async fn pause(&self, name: Option<&str>, reminders: bool, cleanups: bool, paused: bool) {
        let pause = Pause { route: name.map(route), reminders, cleanups, paused, rate: None };
        self.store.pause(&self.name, &pause).await.expect("a pause");
    }

    /// Resumes with a rate.
    pub(crate) async fn resume(&self, name: Option<&str>, reminders: bool, cleanups: bool, rate: u32) {
        let rate = std::num::NonZeroU32::new(rate);
        let pause = Pause { route: name.map(route), reminders, cleanups, paused: false, rate };
        self.store.pause(&self.name, &pause).await.expect("a resume");
    }

    /// Arms an id past the store, until this many milliseconds after the beginning.
    pub(crate) async fn raw_set(&mut self, text: &str, at: i64) {
        self.write(text, Entry::Armed((START + at).to_string())).await;
    }

    /// Disarms an id past the store.
    pub(crate) async fn raw_remove(&mut self, text: &str) {
        self.write(text, Entry::Disarmed).await;
    }

    /// Makes an id recur.
    pub(crate) async fn recur(&mut self, text: &str, period: &str) {
        self.write(text, Entry::Every(period.to_owned())).await;
    }

    /// Writes about an id of a namespace with one shard.
    pub(crate) async fn write(&mut self, text: &str, entry: Entry) {
        self.peer.write(&self.name, 1, text.as_bytes(), entry).await;
    }

    /// All that is written down for the namespace.
    pub(crate) async fn keyspace(&mut self) -> Keyspace {
        self.peer.keyspace(&self.name).await
    }

    /// What is left of the namespace beside settings, cursors and counters.
    pub(crate) async fn leftovers(&mut self) -> Vec<String> {
        self.peer.leftovers(&self.name).await
    }
}

/// A claim that failed for want of time.
pub(crate) fn failing(claim: &Claim, verdict: Verdict, max_failures: u32) -> Failing {
    Failing {
        token: claim.token.clone(),
        verdict,
        failure: Failure::new(Class::Timeout, "no answer from the mail server"),
        max_failures,
        due_at_ms: claim.due_at_ms,
        on_set: claim.on_set,
    }
}

/// When the next thing is due, in milliseconds after the beginning.
pub(crate) fn due_at(next: Next) -> Option<i64> {
    match next {
        Next::At { due_at_ms, .. } => due_at_ms.map(|at| at - START),
        other => panic!("no instant: {other:?}"),
    }
}

/// A refused call, as the user reads it.
pub(crate) fn problem<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> String {
    outcome.expect_err("a refusal").to_string()
}
