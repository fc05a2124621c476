//! What came due while nobody could hear of it: afterwards every cleanup is made, and of the reminders that passed only the
//! tightest that is still true is sent.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use forewarn::store::redis::RedisStore;
use forewarn::{Delivery, ExpiresAt, Forewarn, Settings, Worker};
use tokio::time::{Instant, sleep_until};

use crate::book::Book;
use crate::harness::{Inbox, Kind, Server, eventually};
use crate::proxy::Proxy;
use crate::stage::{Running, Stage, lead};

/// The leads, smallest first. The gap is longer than what lies between the first two, and shorter than each.
const LEADS_MS: [i64; 3] = [3_100, 3_400, 60_000];
const BEFORE_GAP_MS: i64 = 300;
const GAP_MS: i64 = 700;
/// In how much time after a gap workers have made up for it: their pauses are 1.6 s at most after such a gap.
const CATCH_UP_MS: i64 = 2_200;
const DEADLINES: usize = 1_000;

/// A hand-out: whose, and which lead (0: the cleanup).
type HandOut = (String, i64);

/// The store's clock by this machine's timer: it goes on while the store is away.
struct Clock {
    now_ms: i64,
    asked_at: Instant,
    answered_at: Instant,
}

impl Clock {
    async fn of(stage: &Stage) -> Self {
        let asked_at = Instant::now();
        let now_ms = stage.now().await;
        Self { now_ms, asked_at, answered_at: Instant::now() }
    }

    /// It is not later than this.
    fn latest(&self) -> i64 {
        self.now_ms + i64::try_from(self.asked_at.elapsed().as_millis()).unwrap() + 1
    }

    /// It is not earlier than this.
    fn earliest(&self) -> i64 {
        self.now_ms + i64::try_from(self.answered_at.elapsed().as_millis()).unwrap()
    }

    async fn until(&self, ms: i64) {
        sleep_until(self.answered_at + Duration::from_millis(u64::try_from(ms - self.now_ms).unwrap())).await;
    }
}

/// A namespace whose deadlines pass their leads and end before, in and after a gap.
struct Drill {
    stage: Stage,
    book: Arc<Book>,
    told: Arc<Inbox<HandOut>>,
    workers: Vec<Running>,
    expiries: BTreeMap<String, i64>,
    clock: Clock,
}

impl Drill {
    /// Two workers that reach the store by this URL, and all deadlines armed.
    async fn begin(server: &Server, url: &str) -> Self {
        let settings = Settings::default().lease(Duration::from_secs(2));
        let stage = Stage::on(server, LEADS_MS.iter().fold(settings, |settings, ms| settings.remind(lead(*ms)))).await;
        let (book, told) = (Book::new(), Arc::new(Inbox::new()));
        let handler = {
            let (handler, told) = (book.handler(), Arc::clone(&told));
            move |delivery: Delivery| {
                let event = serde_json::to_value(delivery.event()).unwrap();
                told.push((delivery.id().to_string(), event["data"]["lead_ms"].as_i64().unwrap_or(0)));
                handler(delivery)
            }
        };
        let mut workers = Vec::new();
        for _ in 0..2 {
            let forewarn = Forewarn::with_store(Arc::new(RedisStore::connect(url).await.unwrap()));
            let namespace = forewarn.namespace(stage.namespace.name().unwrap().as_str());
            let builder = Worker::builder(&namespace).on_reminder(handler.clone()).on_cleanup(handler.clone());
            workers.push(Running::start(builder).await);
        }
        let clock = Clock::of(&stage).await;
        // One half ends from now on, the other passes the longest lead from now on.
        let mut expiries = BTreeMap::new();
        let mut zadd = redis::cmd("ZADD");
        zadd.arg(format!("{{fw:{}:0}}:exp", stage.namespace.name().unwrap()));
        for i in 0..DEADLINES {
            let later_ms = i64::try_from(i * 4).unwrap();
            let at = clock.now_ms + 200 + if i % 2 == 0 { later_ms } else { later_ms / 2 + LEADS_MS[2] };
            zadd.arg(at).arg(format!("id {i}"));
            expiries.insert(format!("id {i}"), at);
        }
        let _: usize = zadd.query_async(&mut server.connection().await).await.unwrap();
        // What a raw client writes wakes nobody, but this does.
        let soon = ExpiresAt::from_millis(clock.now_ms + 200).unwrap();
        stage.namespace.track("first", soon).await.unwrap();
        expiries.insert("first".to_owned(), soon.as_millis());
        Self { stage, book, told, workers, expiries, clock }
    }

    /// A gap begins and ends; then waits for the end of the deadlines, and judges.
    async fn goes_through(self, begin: impl FnOnce(), end: impl FnOnce()) {
        let Self { stage, book, told, workers, expiries, clock } = self;
        clock.until(clock.now_ms + BEFORE_GAP_MS).await;
        begin();
        let begun_at = clock.latest();
        clock.until(begun_at + GAP_MS).await;
        let (ended_at, before) = (clock.earliest(), told.items());
        end();
        let back_at = clock.latest();

        let ends = |at: i64| at < clock.now_ms + LEADS_MS[2];
        let ending = expiries.values().filter(|at| ends(**at)).count();
        let cleaned = |told: &[HandOut]| told.iter().filter(|(_, lead_ms)| *lead_ms == 0).count();
        told.wait_until("all cleanups", |told| cleaned(told) >= ending).await;
        for (id, _) in expiries.iter().filter(|(_, at)| !ends(**at)) {
            // The first call over a connection that was cut meanwhile tells so.
            eventually("the removal", async || stage.namespace.remove(id.as_str()).await.ok()).await;
        }
        let counters = stage.settled().await;
        assert_eq!((counters.dead, counters.failed), (0, 0), "{counters:?}");
        let told = told.items();
        for (id, at) in &expiries {
            let cleanups = told.iter().filter(|hand_out| (&hand_out.0, hand_out.1) == (id, 0)).count();
            assert_eq!(cleanups > 0, ends(*at), "{cleanups} cleanups of {id}");
        }
        judge(&expiries, (begun_at, ended_at, back_at), &before, &told);
        let mut lost = 0;
        for worker in workers {
            lost += worker.stop().await.totals.lost;
        }
        book.is_sound(lost);
    }
}

/// Compares the reminders that were told before the end of the gap, and in all, with those that had to be.
fn judge(expiries: &BTreeMap<String, i64>, gap: (i64, i64, i64), before: &[HandOut], all: &[HandOut]) {
    let times = |told: &[HandOut], id: &String, lead_ms: i64| {
        told.iter().filter(|hand_out| (&hand_out.0, hand_out.1) == (id, lead_ms)).count()
    };
    let (begun_at, ended_at, back_at) = gap;
    let in_gap = |at: i64| begun_at < at && at <= ended_at;
    let (mut coalesced, mut owed, mut cleaned) = (0, 0, 0);
    for (id, &expires_at) in expiries {
        cleaned += usize::from(in_gap(expires_at));
        for (lead_ms, tighter_ms) in LEADS_MS.into_iter().zip([0, LEADS_MS[0], LEADS_MS[1]]) {
            let (passed_at, void_at) = (expires_at - lead_ms, expires_at - tighter_ms);
            let (early, late) = (times(before, id, lead_ms), times(all, id, lead_ms));
            if void_at <= ended_at {
                assert_eq!(late, early, "{lead_ms} ms before {id} was over when the gap ended");
                coalesced += usize::from(in_gap(passed_at) && tighter_ms > 0);
            }
            if in_gap(passed_at) && back_at + CATCH_UP_MS < void_at {
                assert_eq!((early, late.min(1)), (0, 1), "{lead_ms} ms before {id} was passed in the gap, and is true");
                owed += 1;
            }
        }
    }
    // The drill has its point only if it was in time.
    assert!(coalesced > 30 && owed > 150 && cleaned > 50, "{coalesced} coalesced, {owed} owed, {cleaned} cleaned");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_disconnected_while_things_expire_make_up_for_all_of_it() {
    let server = Server::start();
    let proxy = Proxy::before(&server).await;
    let drill = Drill::begin(&server, &proxy.url()).await;
    drill.goes_through(|| proxy.cut(), || proxy.mend()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_while_things_expire_has_lost_nothing_when_it_is_back() {
    // What has been answered is on disk.
    let server = Server::start_with(Kind::Redis, &["--appendonly", "yes", "--appendfsync", "always"]);
    let drill = Drill::begin(&server, &server.url()).await;
    drill.goes_through(|| server.kill(), || server.restart()).await;
}
