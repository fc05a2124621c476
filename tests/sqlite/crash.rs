//! Processes killed at random instants under load, two at a time: the file opens again, nothing that was answered is lost,
//! and what is handed out again says by its attempt why.
//!
//! `FOREWARN_KILLS` sets how many are killed.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader},
    path::Path,
    sync::Arc,
    time::Duration,
};

use forewarn::Settings;
use forewarn::model::{Class, Failure, Mode, Track};
use forewarn::store::sqlite::{SqliteOptions, SqliteStore};
use forewarn::store::{Claim, Failing, Removed, Settled, Store, Token, Verdict};

use crate::harness::eventually;
use crate::stage::{Place, configure, id, inner, inner_path, name, say, track};

/// How many processes are killed in the ordinary run.
const KILLS: u32 = 100;
/// How many live at once. All of them end before the next begin, so that each time the file is found as they left it.
const AT_ONCE: u32 = 2;
/// Short, so that what a killed process held comes back while others still run.
const LEASE: Duration = Duration::from_millis(200);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_at_any_instant_loses_nothing_it_was_answered() {
    if let Some(path) = inner_path() {
        return live(&path).await;
    }
    let kills = match std::env::var("FOREWARN_KILLS") {
        Ok(text) => text.parse().unwrap(),
        Err(_) => KILLS,
    };
    let place = Place::new();
    configure(&place.open().await, Settings::default()).await;
    let mut seen = Seen::default();
    for round in 0..kills / AT_ONCE {
        for said in tokio::task::block_in_place(|| kill_some(&place.file())) {
            said.iter().for_each(|line| seen.hear(line).unwrap_or_else(|problem| panic!("round {round}: {problem}")));
        }
        let sound: String = place.connection().query_row("PRAGMA quick_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok", "round {round}");
    }
    let sound: String = place.connection().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    let store = place.open().await;
    eventually("everything to be cleaned up", async || {
        loop {
            let claims = claim(&store, 500).await;
            claims.iter().for_each(|claim| seen.hear(&claimed(claim)).unwrap());
            let tokens: Vec<Token> = claims.iter().map(|claim| claim.token.clone()).collect();
            let settled = store.ack(&name("session"), &name("main"), &tokens).await.unwrap();
            assert_eq!(settled, vec![Settled::Settled; tokens.len()]);
            claims.iter().for_each(|claim| seen.hear(&format!("acked {} {}", claim.notice.id, claim.attempt)).unwrap());
            if claims.is_empty() {
                break;
            }
        }
        let stats = store.stats(&name("session")).await.unwrap();
        (stats.armed + stats.routes[0].pending == 0).then_some(())
    })
    .await;
    seen.check();
    let stats = store.stats(&name("session")).await.unwrap();
    assert_eq!((stats.open, stats.dead, stats.review), (0, 0, 0));
}

/// Lets some processes live on the file, kills each at an instant of its own, and answers what they said.
fn kill_some(path: &Path) -> Vec<Vec<String>> {
    std::thread::scope(|scope| {
        let killed: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(|| kill_one(path))).collect();
        killed.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn kill_one(path: &Path) -> Vec<String> {
    let mut child =
        inner("crash::a_process_killed_at_any_instant_loses_nothing_it_was_answered", path).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // Most are killed under load, some while they open the file or have just done so.
    let after = if fastrand::u8(0..8) == 0 {
        fastrand::u64(0..40)
    } else {
        assert_eq!(lines.next().unwrap().unwrap(), "begun.");
        fastrand::u64(0..250)
    };
    let reader = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>());
    std::thread::park_timeout(Duration::from_millis(after));
    child.kill().unwrap();
    child.wait().unwrap();
    let mut said = reader.join().unwrap();
    // The last line may be cut off; it is kept only if it is whole.
    said.retain(|line| line.ends_with('.'));
    said
}

/// What the killed processes said, and what must be true for it. In which order they said it does not matter.
#[derive(Default)]
struct Seen {
    tracked: BTreeSet<String>,
    /// Removed, or perhaps so: it was asked for, and no answer was heard.
    removed: BTreeSet<String>,
    /// Acked, or perhaps so.
    acking: BTreeSet<String>,
    /// At which attempt the ack was answered.
    acked: BTreeMap<String, u32>,
    /// The attempts it was handed out with.
    claimed: BTreeMap<String, BTreeSet<u32>>,
}

impl Seen {
    fn hear(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.trim_end_matches('.').split(' ').collect();
        match words[..] {
            ["tracked", id] => drop(self.tracked.insert(id.to_owned())),
            ["removing", id] => drop(self.removed.insert(id.to_owned())),
            ["acking", id] => drop(self.acking.insert(id.to_owned())),
            ["acked", id, attempt] => {
                if self.acked.insert(id.to_owned(), attempt.parse().unwrap()).is_some() {
                    return Err(format!("two acks of {id} were answered"));
                }
            }
            ["claimed", id, attempt] => {
                let attempts = self.claimed.entry(id.to_owned()).or_default();
                if !attempts.insert(attempt.parse().unwrap()) {
                    return Err(format!("{id} was handed out twice with attempt {attempt}"));
                }
            }
            ["begun"] => {}
            _ => return Err(format!("unheard of: {line}")),
        }
        Ok(())
    }

    /// After all is settled.
    fn check(&self) {
        let settled =
            |id: &&String| self.acked.contains_key(*id) || self.acking.contains(*id) || self.removed.contains(*id);
        let lost: Vec<_> = self.tracked.iter().filter(|id| !settled(id)).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        for (id, at) in &self.acked {
            let last = self.claimed.get(id).and_then(|attempts| attempts.last());
            assert_eq!(last, Some(at), "{id} was handed out again after its ack was answered");
        }
        assert!(self.tracked.len() > 100 && self.acked.len() > 100, "too little happened");
    }
}

fn claimed(claim: &Claim) -> String {
    format!("claimed {} {}.", claim.notice.id, claim.attempt)
}

async fn claim(store: &dyn Store, limit: u32) -> Vec<Claim> {
    store.claim(&name("session"), &name("main"), limit, LEASE).await.unwrap().claims
}

/// The life of a process that is going to be killed: it tracks, removes, claims and settles, and says all it was answered.
async fn live(path: &Path) {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path, SqliteOptions::default()).await.unwrap());
    say(format_args!("begun."));
    tokio::join!(
        tokio::spawn(keep_tracking(Arc::clone(&store), "a")),
        tokio::spawn(keep_tracking(Arc::clone(&store), "b")),
        tokio::spawn(keep_working(Arc::clone(&store))),
        tokio::spawn(keep_working(store)),
    )
    .0
    .unwrap();
}

async fn keep_tracking(store: Arc<dyn Store>, prefix: &str) {
    let session = name("session");
    for number in 0.. {
        let now = store.now().await.unwrap();
        let ids: Vec<String> =
            (0..5).map(|place| format!("{}-{prefix}-{number}-{place}", std::process::id())).collect();
        let entry = |id: &String| Track { payload: Some(vec![b'x'; 200]), ..track(id, now + fastrand::i64(0..300)) };
        let batch: Vec<Track> = ids.iter().map(entry).collect();
        store.track(&session, Mode::Upsert, &batch).await.unwrap();
        ids.iter().for_each(|id| say(format_args!("tracked {id}.")));
        if number % 3 == 0 {
            say(format_args!("removing {}.", ids[0]));
            let removed = store.remove(&session, &[id(&ids[0])]).await.unwrap();
            assert_ne!(removed, [Removed::Unknown]);
        }
        tokio::task::yield_now().await;
    }
}

async fn keep_working(store: Arc<dyn Store>) {
    let (session, main) = (name("session"), name("main"));
    loop {
        let claims = claim(store.as_ref(), 20).await;
        claims.iter().for_each(|claim| say(format_args!("{}", claimed(claim))));
        for (place, claim) in claims.into_iter().enumerate() {
            let (id, attempt) = (claim.notice.id.to_string(), claim.attempt);
            if place % 7 == 0 && claim.attempt < 4 {
                let failing = Failing {
                    token: claim.token,
                    verdict: Verdict::RetryAfter(Duration::from_millis(20)),
                    failure: Failure::new(Class::Timeout, "the test says so"),
                    max_failures: 100,
                    due_at_ms: claim.due_at_ms,
                    on_set: claim.on_set,
                };
                store.fail(&session, &main, &[failing]).await.unwrap();
                continue;
            }
            say(format_args!("acking {id}."));
            if store.ack(&session, &main, &[claim.token]).await.unwrap() == [Settled::Settled] {
                say(format_args!("acked {id} {attempt}."));
            }
        }
        tokio::task::yield_now().await;
    }
}
