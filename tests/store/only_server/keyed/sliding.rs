//! A key that is prolonged again and again while nobody tells the store (B6), seen from outside: what its own expiry
//! crosses is said at that instant, once, and nothing else ever is.

use forewarn::Settings;
use forewarn::model::Kind as NoticeKind;
use forewarn::store::{Claim, Next};
use proptest::{collection::vec, prelude::*, test_runner::TestRunner};

use super::Keys;
use crate::harness::{Kind, Server};
use crate::histories::share;
use crate::operation::{FAR, START};
use crate::scene::reminding;

/// The owner comes back so much later, and the key lives for so long from then.
type Slide = (i64, i64);

/// How a key is watched.
struct Watch {
    leads: [i64; 2],
    grace: i64,
    /// Between two looks of the worker.
    step: i64,
    /// How long a renewal may stay unseen. 0: keys are looked at when a lead comes up, and never otherwise.
    interval: i64,
}

impl Keys {
    async fn claims(&self) -> Result<Vec<Claim>, String> {
        let mut claims = Vec::new();
        for _ in 0..10 {
            let more = self.scene.claim_some("main", 500).await;
            claims.extend(more.claims);
            if more.next != Next::Backlog {
                return Ok(claims);
            }
        }
        Err("the backlog does not end".to_owned())
    }
}

impl Watch {
    fn settings(&self) -> Settings {
        let [small, large] = self.leads.map(|lead| format!("{lead}ms"));
        let mut settings = reminding(&[&large, &small]).grace(std::time::Duration::from_millis(self.grace as u64));
        if self.interval > 0 {
            settings.recheck_interval = std::time::Duration::from_millis(self.interval as u64);
        }
        settings
    }

    /// Plays one key from its first to its last instant.
    async fn play(&self, server: &Server, slides: &[Slide]) -> Result<(), String> {
        let mut keys = Keys::open(server, self.settings()).await;
        let mut coming = slides.iter();
        let (mut now, mut set_at, mut e) = (0, 0, slides[0].1);
        // A worker has looked before: what is armed inside a lead is silent (W3.6).
        keys.claims().await?;
        keys.arm("a", e).await;
        let mut next = coming.next().and_then(|_| coming.next());
        while now <= e + self.grace + self.step {
            keys.at(now).await;
            if self.interval > 0 {
                keys.resync().await;
            }
            let claims = keys.claims().await.map_err(|what| format!("{what} at {now}; e = {e}, set at {set_at}"))?;
            keys.scene.ack(&claims).await;
            self.check(now, set_at, e, &claims).map_err(|what| format!("{what} at {now}; e = {e}, set at {set_at}"))?;
            // The owner comes right after the worker has looked: the worst instant.
            if let Some((_, ttl)) = next.filter(|(after, _)| set_at + after <= now) {
                if now <= e {
                    (set_at, e) = (now, e.max(now + ttl));
                    keys.slide("a", e).await;
                }
                next = coming.next();
            }
            now += self.step;
        }
        Ok(())
    }

    fn check(&self, now: i64, set_at: i64, e: i64, claims: &[Claim]) -> Result<(), String> {
        let [small, large] = self.leads;
        let rest = e - now;
        let lead = if rest == large || rest == small { Some(rest) } else { None };
        let is_sure = self.interval == 0 || set_at + self.interval < now;
        let is_over = now > e + self.grace && now - self.step <= e + self.grace;
        let told: Vec<String> = claims.iter().map(|claim| claim.notice.kind.to_stored()).collect();
        for claim in claims {
            if claim.notice.expires_at_ms != START + FAR + e {
                return Err(format!("{:?} is none of its key", claim.notice));
            }
            let fits = match claim.notice.kind {
                NoticeKind::Reminder(said) => lead == Some(said.as_millis()),
                NoticeKind::Cleanup(_) => is_over,
            };
            if !fits || claims.len() > 1 {
                return Err(format!("{told:?} is said"));
            }
        }
        if told.is_empty() && (is_over || is_sure && lead.is_some()) {
            return Err("nothing is said".to_owned());
        }
        Ok(())
    }

    /// Plays `count` keys; fails with the shortest that goes wrong.
    fn check_all(&self, slides: impl Strategy<Value = Vec<Slide>>, count: u32) {
        let server = Server::shared(Kind::Redis);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let config = proptest::test_runner::Config { cases: count, failure_persistence: None, ..Default::default() };
        let outcome = TestRunner::new(config).run(&slides, |slides| {
            runtime
                .block_on(self.play(server, &slides))
                .map_err(|what| TestCaseError::fail(format!("{what}: {slides:?}")))
        });
        outcome.unwrap();
    }
}

#[test]
fn renewals_of_long_lived_keys_need_not_be_told() {
    for grace in [0, 3] {
        let watch = Watch { leads: [4, 10], grace, step: 1, interval: 0 };
        // Longer than the largest lead and the longest gap between two looks: from lead to lead, and to the cleanup.
        let shortest = 10 + 6.max(4 + grace + 1) + 1;
        watch.check_all(vec((1i64..25, shortest..30), 1..6), share(1));
    }
}

#[test]
fn renewals_of_short_lived_keys_are_found_within_the_interval() {
    for grace in [0, 30, 3000] {
        let watch = Watch { leads: [400, 1000], grace, step: 50, interval: 100 };
        let slides = vec((1i64..25, 3i64..30), 1..8);
        let slides = slides.prop_map(|slides| slides.into_iter().map(|(after, ttl)| (after * 50, ttl * 50)).collect());
        watch.check_all(slides, share(1));
    }
}
