//! Namespaces share the tables of a file. None notices another one, though both hold the same ids.

use std::{collections::BTreeMap, fmt::Debug, sync::atomic::AtomicI64, time::Duration};

use forewarn::model::{Class, ExpiresAt, Failure, LeadTime, Mode, Name, Pause, Renew, Route, Settings, Track};
use forewarn::store::sqlite::SqliteStore;
use forewarn::store::{Change, Claim, Failing, ListQuery, ParkedQuery, Shelf, Store as _, Token, Verdict};
use rusqlite::types::Value;

use crate::stage::{LEASE, Place, START, id, name, track, turn};

/// What fills a namespace: something in every table, and something due of each class.
const BEGINNING: [Step; 18] = [
    Step::Leads(&[600, 100]),
    Step::Track(Mode::Upsert, "abcdefghijk", -10),
    Step::Track(Mode::Upsert, "lmnop", 1_000),
    Step::Track(Mode::Upsert, "q", 500),
    Step::Every("ab"),
    Step::Mark,
    Step::Claim("main", 7),
    Step::Settle("main", "fail"),
    Step::Turn(401),
    Step::Renew("l", 450),
    Step::Claim("main", 8),
    Step::Settle("main", "dead"),
    Step::Claim("mail", 9),
    Step::Settle("mail", "review"),
    Step::Expire("p"),
    Step::Claim("main", 2),
    Step::Turn(410),
    Step::Track(Mode::Upsert, "r", 505),
];

/// What happens to the one namespace afterwards: every verb.
const LIFE: [Step; 37] = [
    Step::Look,
    Step::Preview(&[700, 100]),
    Step::Track(Mode::Upsert, "am", 1_500),
    Step::Track(Mode::Create, "mr", 1_500),
    Step::Track(Mode::ExtendOnly, "n", 900),
    Step::Renew("cno", 2_000),
    Step::Replace("x", "o"),
    Step::Remove("dq"),
    Step::Expire("em"),
    Step::Claim("main", 3),
    Step::Settle("main", "recheck"),
    Step::Settle("main", "extend"),
    Step::Settle("main", "release"),
    Step::Settle("main", "ack"),
    Step::Look,
    Step::Requeue(Shelf::Dead),
    Step::Discard(Shelf::Review),
    Step::Turn(950),
    Step::Pause("mail", true),
    Step::Claim("mail", 5),
    Step::Pause("mail", false),
    Step::Claim("mail", 50),
    Step::Settle("mail", "fail"),
    Step::Turn(70_000),
    Step::Claim("main", 50),
    Step::Settle("main", "ack"),
    Step::Look,
    Step::Leads(&[800]),
    Step::Add("audit"),
    Step::Track(Mode::Upsert, "stuv", 70_500),
    Step::Claim("audit", 50),
    Step::Drop("mail"),
    Step::Turn(200_000),
    Step::Claim("main", 50),
    Step::Settle("main", "ack"),
    Step::Look,
    Step::Forget,
];

#[tokio::test]
async fn namespaces_in_one_file_that_hold_the_same_ids_do_not_notice_each_other() {
    let (alone, said_alone) = play_all(&[]).await;
    assert!(alone.is_empty());
    // On either side of it in the tables.
    let (neighbours, said) = play_all(&["first", "last"]).await;
    for (step, (alone, beside)) in said_alone.iter().zip(&said).enumerate() {
        assert_eq!(alone, beside, "step {step}: a neighbour made a difference");
    }
    assert_eq!(said.len(), said_alone.len());
    let tables: usize = neighbours.iter().map(|tables| tables.values().filter(|rows| !rows.is_empty()).count()).sum();
    assert_eq!(tables, 2 * 14, "every table has something of each neighbour: {neighbours:?}");
}

/// Plays the life of one namespace, with the beginning of neighbours before and after its own. Answers what the neighbours
/// hold, which must not change meanwhile, and all that was answered.
async fn play_all(neighbours: &[&str]) -> (Vec<Tables>, Vec<String>) {
    let place = Place::new();
    let (store, clock) = place.open_still().await;
    let live =
        |text: &str| Life { place: &place, store: &store, clock: &clock, namespace: name(text), held: Vec::new() };
    let (mut own, mut said) = (live("own"), Vec::new());
    for text in neighbours.iter().take(1) {
        live(text).begin(&mut Vec::new()).await;
    }
    own.begin(&mut said).await;
    for text in neighbours.iter().skip(1) {
        live(text).begin(&mut Vec::new()).await;
    }
    let held = || neighbours.iter().map(|text| tables(&place.connection(), text)).collect::<Vec<_>>();
    let before = held();
    for step in LIFE {
        said.push(own.play(step).await);
        assert_eq!(held(), before, "{step:?} changed a neighbour");
    }
    (before, said)
}

/// The rows of a namespace, by table.
type Tables = BTreeMap<String, Vec<Vec<Value>>>;

fn tables(connection: &rusqlite::Connection, namespace: &str) -> Tables {
    let key: i64 =
        connection.query_row("SELECT key FROM namespace WHERE name = ?1", [namespace], |row| row.get(0)).unwrap();
    let mut names = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let rows = |table: &str| -> Vec<Vec<Value>> {
        let (column, key) = match table {
            "namespace" => ("key", Value::from(key)),
            "copy" => ("name", Value::from(namespace.to_owned())),
            _ => ("namespace", Value::from(key)),
        };
        let mut rows = connection.prepare(&format!("SELECT * FROM {table} WHERE {column} = ?1")).unwrap();
        let width = rows.column_count();
        let row = |row: &rusqlite::Row<'_>| (0..width).map(|at| row.get(at)).collect();
        rows.query_map([key], row).unwrap().map(Result::unwrap).collect()
    };
    names.into_iter().map(|table| (table.clone(), rows(&table))).collect()
}

/// One thing that happens to a namespace. Instants are milliseconds after the beginning; each letter is an id.
#[derive(Clone, Copy, Debug)]
enum Step {
    Leads(&'static [i64]),
    Preview(&'static [i64]),
    Add(&'static str),
    Drop(&'static str),
    Pause(&'static str, bool),
    Track(Mode, &'static str, i64),
    Renew(&'static str, i64),
    Replace(&'static str, &'static str),
    Remove(&'static str),
    Expire(&'static str),
    Every(&'static str),
    /// It is being copied.
    Mark,
    Claim(&'static str, u32),
    /// What is held on a route is settled so; each other one of it if it is a claim's end.
    Settle(&'static str, &'static str),
    Requeue(Shelf),
    Discard(Shelf),
    Turn(i64),
    Look,
    Forget,
}

/// A namespace of a file and what its workers hold.
struct Life<'a> {
    place: &'a Place,
    store: &'a SqliteStore,
    clock: &'a AtomicI64,
    namespace: Name,
    held: Vec<Held>,
}

/// A claim of a route's worker.
#[derive(Clone)]
struct Held {
    route: &'static str,
    token: Token,
    due_at_ms: i64,
}

/// The ids that the letters of a text are.
fn ids(text: &str) -> Vec<forewarn::Id> {
    text.chars().map(|letter| id(&letter.to_string())).collect()
}

fn failing(held: &Held, verdict: Verdict) -> Failing {
    Failing {
        token: held.token.clone(),
        verdict,
        failure: Failure::new(Class::Timeout, "the test says so"),
        max_failures: 8,
        due_at_ms: held.due_at_ms,
        on_set: false,
    }
}

fn leads_of(leads: &[i64]) -> Settings {
    leads.iter().fold(Settings::default(), |settings, ms| settings.remind(LeadTime::from_millis(*ms).unwrap()))
}

fn told(answer: impl Debug) -> String {
    format!("{answer:?}")
}

impl Life<'_> {
    async fn begin(&mut self, said: &mut Vec<String>) {
        turn(self.clock, 0);
        for step in BEGINNING {
            said.push(self.play(step).await);
        }
    }

    async fn play(&mut self, step: Step) -> String {
        let (store, ns) = (self.store, &self.namespace);
        match step {
            Step::Turn(ms) => {
                turn(self.clock, ms);
                String::new()
            }
            Step::Leads(leads) => {
                let mut change = Change::settings(leads_of(leads));
                change.routes = vec![Route::all(name("main")), Route::all(name("mail"))];
                let applied = store.configure(ns, &change).await.unwrap();
                told((applied.created, applied.changed))
            }
            Step::Preview(leads) => told(store.preview(ns, &Change::settings(leads_of(leads))).await.unwrap()),
            Step::Add(route) => {
                told(store.configure(ns, &Change::add_route(Route::all(name(route)))).await.unwrap().changed)
            }
            Step::Drop(route) => {
                let change = Change { drop_routes: vec![name(route)], ..Change::default() };
                told(store.configure(ns, &change).await.unwrap().changed)
            }
            Step::Pause(route, paused) => {
                let pause = Pause { route: Some(name(route)), reminders: true, cleanups: true, paused, rate: None };
                store.pause(ns, &pause).await.unwrap();
                String::new()
            }
            Step::Track(mode, text, at) => {
                let payload = Some(format!("due at {at}").into_bytes());
                let entry = |letter: char| Track { payload: payload.clone(), ..track(&letter.to_string(), START + at) };
                let entries: Vec<Track> = text.chars().map(entry).collect();
                told(store.track(ns, mode, &entries).await.unwrap())
            }
            Step::Renew(text, at) => {
                let expires_at = ExpiresAt::from_millis(START + at).unwrap();
                let entries: Vec<Renew> =
                    ids(text).into_iter().map(|id| Renew { id, expires_at, payload: None }).collect();
                told(store.renew(ns, &entries).await.unwrap())
            }
            Step::Replace(new, old) => {
                told(store.replace(ns, Mode::Upsert, &track(new, START + 3_000), &id(old)).await.unwrap())
            }
            Step::Remove(text) => told(store.remove(ns, &ids(text)).await.unwrap()),
            Step::Expire(text) => told(store.expire(ns, &ids(text)).await.unwrap()),
            Step::Every(text) => {
                let row =
                    "INSERT INTO every (namespace, id, period) SELECT key, ?2, '60000' FROM namespace WHERE name = ?1";
                let connection = self.place.connection();
                for id in ids(text) {
                    connection.execute(row, (ns.as_str(), id.as_bytes())).unwrap();
                }
                String::new()
            }
            Step::Mark => {
                let row = "INSERT INTO copy (name, mark) VALUES (?1, '{}')";
                told(self.place.connection().execute(row, [ns.as_str()]).unwrap())
            }
            Step::Claim(route, limit) => {
                let claims = store.claim(ns, &name(route), limit, LEASE).await.unwrap();
                let told = told(&claims);
                let held = |claim: Claim| Held { route, token: claim.token, due_at_ms: claim.due_at_ms };
                self.held.extend(claims.claims.into_iter().map(held));
                told
            }
            Step::Settle(route, verb) => self.settle(route, verb).await,
            Step::Requeue(shelf) => {
                let parked = store.parked(ns, shelf, &ParkedQuery::default()).await.unwrap().entries;
                told(store.requeue(ns, shelf, &parked[..parked.len() / 2]).await.unwrap())
            }
            Step::Discard(shelf) => {
                let parked = store.parked(ns, shelf, &ParkedQuery::default()).await.unwrap().entries;
                told(store.discard(ns, shelf, &parked[..parked.len() / 2]).await.unwrap())
            }
            Step::Look => self.look().await,
            Step::Forget => told(store.forget(ns).await.unwrap()),
        }
    }

    async fn settle(&mut self, on: &'static str, verb: &str) -> String {
        let (store, ns, route) = (self.store, &self.namespace, name(on));
        let mine: Vec<Held> = self.held.iter().filter(|held| held.route == on).cloned().collect();
        // What ends a claim is done to the first half, so that there is always something in flight.
        let ends = !["recheck", "extend"].contains(&verb);
        let taken = if ends { &mine[..mine.len().div_ceil(2)] } else { &mine[..] };
        let tokens: Vec<Token> = taken.iter().map(|held| held.token.clone()).collect();
        if ends {
            self.held.retain(|held| held.route != on || !tokens.contains(&held.token));
        }
        let failing = |verdict| -> Vec<Failing> { taken.iter().map(|held| failing(held, verdict)).collect() };
        match verb {
            "recheck" => told(store.recheck(ns, &route, &tokens).await.unwrap()),
            "extend" => told(store.extend(ns, &route, &tokens, LEASE * 2).await.unwrap()),
            "release" => told(store.release(ns, &route, &tokens).await.unwrap()),
            "ack" => told(store.ack(ns, &route, &tokens).await.unwrap()),
            "fail" => {
                let verdict = Verdict::RetryAfter(Duration::from_secs(30));
                told(store.fail(ns, &route, &failing(verdict)).await.unwrap())
            }
            "dead" => told(store.fail(ns, &route, &failing(Verdict::Dead)).await.unwrap()),
            _ => told(store.fail(ns, &route, &failing(Verdict::Review)).await.unwrap()),
        }
    }

    /// All that can be looked at.
    async fn look(&self) -> String {
        let (store, ns) = (self.store, &self.namespace);
        let mut seen = vec![
            told(store.stats(ns).await.unwrap()),
            told(store.list(ns, &ListQuery::default()).await.unwrap()),
            told(store.parked(ns, Shelf::Dead, &ParkedQuery::default()).await.unwrap()),
            told(store.parked(ns, Shelf::Review, &ParkedQuery::default()).await.unwrap()),
        ];
        for letter in 'a'..='z' {
            seen.push(told(store.show(ns, &id(&letter.to_string())).await.unwrap()));
        }
        let mut after = None;
        loop {
            let page = store.export(ns, after.as_ref(), 10).await.unwrap();
            seen.push(told(&page.rows));
            after = page.next;
            if after.is_none() {
                return seen.join("\n");
            }
        }
    }
}
