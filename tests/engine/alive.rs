//! A key that slides: as long as somebody renews it nothing is said, whoever observes that or not.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use forewarn::{Delivery, ExpiresAt, Settings};
use redis::{AsyncCommands as _, aio::MultiplexedConnection};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::harness::{Inbox, Server};
use crate::stage::{Running, Stage, lead};

/// How long a key lives after each renewal.
const TTL_MS: i64 = 5_000;

/// What a handler heard: the id, the lead (0: the cleanup), when it was to expire, and how much of that was left.
type Heard = (String, i64, i64, i64);

/// Who renews the key, and who else knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    /// The program alone, with `PEXPIRE`.
    Key,
    /// The program, which writes the score each time as well.
    Score,
    /// The library, on behalf of the program.
    Renew,
}

struct Sliding {
    stage: Stage,
    connection: MultiplexedConnection,
    ids: BTreeMap<By, String>,
    renewed_at: Instant,
}

impl Sliding {
    async fn open(server: &Server) -> Self {
        let stage = Stage::unconfigured_with_keys(server).await;
        let name = stage.namespace.name().unwrap().as_str().to_owned();
        let settings = Settings::default().remind(lead(2_000)).remind(lead(10_000));
        let settings = settings.key_backed(true).keys(format!("{name}:*").parse().unwrap()).manage_keys(true);
        stage.namespace.apply(settings).await.unwrap();
        let ids = [By::Key, By::Score, By::Renew].map(|by| (by, format!("{name}:{by:?}"))).into();
        Self { stage, connection: server.connection().await, ids, renewed_at: Instant::now() }
    }

    /// A session begins: the key, and its score beside it.
    async fn begin(&mut self) {
        let expires_at_ms = self.stage.now().await + TTL_MS;
        let exp = self.exp();
        for id in self.ids.values() {
            let mut pipe = redis::pipe();
            pipe.atomic().cmd("SET").arg(id).arg("data").arg("PXAT").arg(expires_at_ms).ignore();
            pipe.zadd(&exp, id, expires_at_ms).ignore();
            let () = pipe.query_async(&mut self.connection).await.unwrap();
        }
    }

    async fn renew(&mut self) {
        let expires_at_ms = self.stage.now().await + TTL_MS;
        let exp = self.exp();
        for (by, id) in &self.ids {
            match by {
                By::Key => {
                    let is_there: bool = self.connection.pexpire(id, TTL_MS).await.unwrap();
                    assert!(is_there, "{id} is gone; renewed {:?} ago", self.renewed_at.elapsed());
                }
                By::Score => {
                    let mut pipe = redis::pipe();
                    pipe.atomic().pexpire_at(id, expires_at_ms).ignore().zadd(&exp, id, expires_at_ms).ignore();
                    let () = pipe.query_async(&mut self.connection).await.unwrap();
                }
                By::Renew => {
                    let expires_at = ExpiresAt::from_millis(expires_at_ms).unwrap();
                    self.stage.namespace.renew(id.as_str(), expires_at).await.unwrap();
                }
            }
        }
        self.renewed_at = Instant::now();
    }

    /// When the keys expire, by themselves.
    async fn expiries(&mut self) -> BTreeMap<String, i64> {
        let mut expiries = BTreeMap::new();
        for id in self.ids.values() {
            let expires_at_ms: i64 = self.connection.pexpire_time(id).await.unwrap();
            expiries.insert(id.clone(), expires_at_ms);
        }
        expiries
    }

    fn exp(&self) -> String {
        format!("{{fw:{}:0}}:exp", self.stage.namespace.name().unwrap())
    }
}

#[tokio::test]
async fn a_key_renewed_for_a_minute_is_silent_and_then_reminded_once_and_cleaned_once() {
    let server = Server::start();
    let mut sliding = Sliding::open(&server).await;
    let heard = Arc::new(Inbox::<Heard>::new());
    let handler = {
        let heard = Arc::clone(&heard);
        move |delivery: Delivery| {
            let event = serde_json::to_value(delivery.event()).unwrap();
            let number = |field: &str| event["data"][field].as_i64().unwrap();
            let lead_ms = event["data"]["lead_ms"].as_i64().unwrap_or(0);
            heard.push((
                delivery.id().to_string(),
                lead_ms,
                delivery.expires_at().timestamp_millis(),
                number("remaining_ms"),
            ));
            async {}
        }
    };
    let running = Running::start(sliding.stage.builder().on_reminder(handler.clone()).on_cleanup(handler)).await;
    // Ids that nobody knew before the first claim speak because they are found.
    sliding.stage.store.called("claim", 2).await;

    sliding.begin().await;
    let mut ticks = interval(Duration::from_millis(100));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for _ in 0..600 {
        ticks.tick().await;
        sliding.renew().await;
    }
    let expiries = sliding.expiries().await;
    assert_eq!(heard.items(), [], "while it slides");

    let mut heard = heard.wait_until("a reminder and a cleanup of each", |heard| heard.len() >= 6).await;
    // Whatever else there may be to say would be due by now.
    let stats = sliding.stage.settled().await;
    assert_eq!((stats.handed_out, stats.acked, stats.lapsed), (6, 6, 0), "{stats:?}");
    heard.sort_by_key(|(id, lead_ms, ..)| (id.clone(), -lead_ms));
    let told: Vec<(String, i64, i64)> = heard.iter().map(|(id, lead_ms, at, _)| (id.clone(), *lead_ms, *at)).collect();
    let both = |(id, at): (&String, &i64)| [(id.clone(), 2_000, *at), (id.clone(), 0, *at)];
    assert_eq!(told, expiries.iter().flat_map(both).collect::<Vec<_>>());
    for (id, lead_ms, _, remaining_ms) in heard {
        assert!(remaining_ms <= lead_ms, "{id} spoke {remaining_ms} ms before its end, and its lead is {lead_ms} ms");
    }
    running.stop().await;
}
