//! The demo's plot: three sessions, what they do, and every line printed when it happens.

use std::time::Duration;

use forewarn::{
    ExpiresAt, Namespace, StoreError,
    model::{Kind, format_span, span_ms},
};
use serde_json::json;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    super::output::print,
    LIFE, PATIENCE,
    cast::{Cast, Heard},
    report::{Row, rows},
};

/// When ben logs out.
const LOGOUT: Duration = Duration::from_secs(1);

/// Plays the story and compares. Ends when all that is expected has been heard, and what must stay silent had its time
/// to speak; at the latest when patience is over.
pub(super) async fn play(
    namespace: &Namespace,
    cast: &Cast,
    mut heard: mpsc::Receiver<Heard>,
) -> anyhow::Result<Vec<Row>> {
    let begin = Instant::now();
    let began_ms = namespace.store().now().await?;
    let mut teller = Teller { namespace, began_ms, told_ms: began_ms };
    let until = teller.expiry(LIFE).await?;
    for (id, user) in cast.ids().into_iter().zip(1..) {
        namespace.track(id, until).payload(&json!({ "user": user }))?.await?;
        teller.tell(&format!("{id} begins, expires in {}", format_span(LIFE))).await?;
    }
    let mut log: Vec<Heard> = Vec::new();
    let mut logged_out = false;
    let (logout_at, quiet_at, end) = (begin + LOGOUT, begin + LIFE + LOGOUT, begin + PATIENCE);
    loop {
        let complete = rows(cast, &log).iter().all(Row::is_as_expected) && Instant::now() >= quiet_at;
        if complete || Instant::now() >= end {
            return Ok(rows(cast, &log));
        }
        tokio::select! {
            () = sleep_until(logout_at), if !logged_out => {
                namespace.remove(cast.ben).await?;
                teller.tell(&format!("{} logs out", cast.ben)).await?;
                logged_out = true;
            }
            next = timeout_at(if Instant::now() < quiet_at { quiet_at } else { end }, heard.recv()) => {
                match next {
                    Ok(Some(next)) => {
                        teller.hear(cast, &next, &log).await?;
                        log.push(next);
                    }
                    // The worker has ended; its report says why.
                    Ok(None) => return Ok(rows(cast, &log)),
                    // Nothing heard is nothing to tell; the loop looks at the time.
                    Err(_) => {}
                }
            }
        }
    }
}

struct Teller<'a> {
    namespace: &'a Namespace,
    began_ms: i64,
    told_ms: i64,
}

impl Teller<'_> {
    async fn expiry(&self, life: Duration) -> Result<ExpiresAt, StoreError> {
        Ok(ExpiresAt::from_millis(self.namespace.store().now().await? + span_ms(life))?)
    }

    async fn tell(&mut self, what: &str) -> anyhow::Result<()> {
        let now_ms = self.namespace.store().now().await?;
        Ok(self.tell_at(now_ms, what)?)
    }

    fn tell_at(&mut self, at_ms: i64, what: &str) -> std::io::Result<()> {
        // What waited in the queue while anna answered is told a moment late; a story does not go back in time.
        self.told_ms = self.told_ms.max(at_ms);
        let ms = self.told_ms - self.began_ms;
        print(format_args!("{:>3}.{:03} s  {what}", ms / 1000, ms % 1000))
    }

    /// Tells what was heard, and lets anna answer.
    async fn hear(&mut self, cast: &Cast, heard: &Heard, before: &[Heard]) -> anyhow::Result<()> {
        let what = heard.what();
        let note = match (heard.kind, heard.attempt) {
            (Kind::Cleanup(_), 1) => ": fails, the file server does not answer; to be retried",
            (Kind::Cleanup(_), _) => ": succeeds",
            _ => "",
        };
        self.tell_at(heard.at_ms, &format!("{}: {what}{note}", heard.id))?;
        if heard.id != cast.anna {
            return Ok(());
        }
        if before.iter().any(|earlier| earlier.id == cast.anna) {
            self.namespace.remove(cast.anna).await?;
            self.tell(&format!("{} logs out", cast.anna)).await
        } else {
            let until = self.expiry(LIFE).await?;
            self.namespace.renew(cast.anna, until).await?;
            self.tell(&format!("{} stays: renewed, expires in {}", cast.anna, format_span(LIFE))).await
        }
    }
}
