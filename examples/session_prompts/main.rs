//! A web application whose users are asked before their session ends: "You will be logged out at 10:42. Stay?"
//!
//! Run it with a Redis at hand, `cargo run --example session_prompts -- --ttl 20s --remind 10s`, open the address it prints
//! and log in. After ten seconds the page asks; "Stay" gives you twenty more. Do nothing, and ten seconds later you are logged
//! out and what your session had gathered is deleted. Without the two options a session has 30 minutes and asks 5 minutes
//! before its end. `--store URL` or `FOREWARN_STORE` names the Redis.
//!
//! Sessions are what they are in most applications: keys with a time to live, `user_session:<token>`, that every request
//! prolongs. forewarn is told the same. Reminders reach the pages of this process by server-sent events; of several processes
//! each needs them all, and so a route of its own (`Worker::route`).
#![expect(clippy::print_stdout, reason = "an example may talk")]

mod pages;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::Parser;
use forewarn::model::{parse_span, span_ms};
use forewarn::store::Renewed;
use forewarn::{Delivery, Forewarn, LeadTime, Namespace, Outcome, Settings, Worker};
use redis::{AsyncCommands as _, aio::ConnectionManager};
use serde::{Deserialize, Serialize};
use tokio::{net::TcpListener, sync::broadcast};
use tokio_util::sync::CancellationToken;

#[derive(Parser)]
struct Args {
    /// How long a session lasts after the last request
    #[arg(long, default_value = "30m", value_parser = |text: &str| parse_span("ttl", text))]
    ttl: Duration,
    /// How long before its end the user is asked
    #[arg(long, default_value = "5m")]
    remind: LeadTime,
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The Redis in which sessions and deadlines rest
    #[arg(long, env = "FOREWARN_STORE", default_value = "redis://127.0.0.1/")]
    store: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let sessions = Forewarn::connect(&args.store).await?.namespace("session");
    sessions.apply(Settings::default().remind(args.remind)).await?;
    let redis = ConnectionManager::new(redis::Client::open(args.store)?).await?;
    let stop = CancellationToken::new();
    let (news, _) = broadcast::channel(1000);
    let app = Arc::new(App { sessions, redis, ttl: args.ttl, lead: args.remind, news, stop: stop.clone() });

    let (reminding, cleaning) = (Arc::clone(&app), Arc::clone(&app));
    let worker = Worker::builder(&app.sessions)
        .on_reminder(move |notice| remind(Arc::clone(&reminding), notice))
        .on_cleanup(move |notice| clean_up(Arc::clone(&cleaning), notice))
        .build()?;
    let listener = TcpListener::bind(args.listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let serving = axum::serve(listener, pages::router(app)).with_graceful_shutdown(stop.clone().cancelled_owned());
    tokio::try_join!(
        async { worker.run(stop.clone().cancelled_owned()).await.context("the worker cannot start") },
        async { serving.await.context("the server fails") },
        async {
            tokio::signal::ctrl_c().await?;
            stop.cancel();
            Ok(())
        },
    )?;
    Ok(())
}

/// The reminder: whoever has the page open is asked. A second time does no harm.
async fn remind(app: Arc<App>, notice: Delivery) -> anyhow::Result<()> {
    println!("{} will be logged out at {}", notice.payload_json::<User>()?.user, notice.expires_at());
    app.tell(&notice, Happened::Reminder { at_ms: notice.expires_at().timestamp_millis() });
    Ok(())
}

/// The cleanup: deletes what the session has gathered.
async fn clean_up(app: Arc<App>, notice: Delivery) -> anyhow::Result<Outcome> {
    let key = notice.id().to_string();
    let User { user } = notice.payload_json()?;
    // The key is the truth. It lives on if a request prolonged it and this application died before it could say so.
    let left_ms: i64 = app.redis.clone().pttl(&key).await?;
    if let Ok(left @ 1..) = u64::try_from(left_ms) {
        app.sessions.track_in(key, Duration::from_millis(left)).payload(&User { user })?.await?;
        return Ok(Outcome::Superseded);
    }
    let deleted: u64 = app.redis.clone().del(data_key(&key)).await?;
    println!("{user} is logged out");
    app.tell(&notice, Happened::Ended);
    Ok(if deleted == 0 { Outcome::noted("nothing was left") } else { Outcome::Done })
}

/// What all requests share.
struct App {
    sessions: Namespace,
    redis: ConnectionManager,
    ttl: Duration,
    lead: LeadTime,
    news: broadcast::Sender<News>,
    stop: CancellationToken,
}

/// The payload of a deadline, and all that a session's key holds.
#[derive(Serialize, Deserialize)]
struct User {
    user: String,
}

/// Something has happened to a session.
#[derive(Clone)]
struct News {
    key: String,
    happened: Happened,
}

#[derive(Clone, Copy)]
enum Happened {
    Reminder { at_ms: i64 },
    Ended,
}

impl App {
    /// Begins a session; answers with its token.
    async fn log_in(&self, user: String) -> anyhow::Result<String> {
        let token = format!("{:016x}{:016x}", getrandom::u64()?, getrandom::u64()?);
        let key = session_key(&token);
        () = self.redis.clone().pset_ex(&key, &user, u64::try_from(self.ttl.as_millis())?).await?;
        println!("{user} logs in");
        self.sessions.track_in(key, self.ttl).payload(&User { user })?.await?;
        Ok(token)
    }

    /// The user of a session, which lasts its whole time from now on; `None` if it has ended.
    async fn prolong(&self, key: &str) -> anyhow::Result<Option<String>> {
        let mut prolong = redis::cmd("GETEX");
        prolong.arg(key).arg("PX").arg(span_ms(self.ttl));
        let Some(user) = prolong.query_async::<Option<String>>(&mut self.redis.clone()).await? else { return Ok(None) };
        // The key first: it must not outlive its deadline when all goes well.
        match self.sessions.renew_in(key, self.ttl).await? {
            Renewed::Unknown | Renewed::Expired => {
                let context = User { user: user.clone() };
                self.sessions.track_in(key, self.ttl).payload(&context)?.await?;
            }
            _ => {}
        }
        Ok(Some(user))
    }

    /// Ends a session in good order: nothing more is said of it.
    async fn log_out(&self, key: &str) -> anyhow::Result<()> {
        () = self.redis.clone().del(&[key.to_owned(), data_key(key)]).await?;
        self.sessions.remove(key).await?;
        Ok(())
    }

    /// Counts a visit. This is what would be left behind: it has no time to live of its own.
    async fn visit(&self, key: &str) -> anyhow::Result<u64> {
        Ok(self.redis.clone().hincr(data_key(key), "visits", 1).await?)
    }

    /// The reminder that a page has missed because it was not open, or not connected, when that was told.
    async fn missed(&self, key: &str) -> anyhow::Result<Option<Happened>> {
        let expires_at_ms = self.sessions.show(key).await?.and_then(|deadline| deadline.expires_at_ms);
        let Some(at_ms) = expires_at_ms else { return Ok(Some(Happened::Ended)) };
        let left_ms = at_ms - self.sessions.store().now().await?;
        Ok((left_ms <= self.lead.as_millis()).then_some(Happened::Reminder { at_ms }))
    }

    fn tell(&self, notice: &Delivery, happened: Happened) {
        // It fails if no page is open.
        self.news.send(News { key: notice.id().to_string(), happened }).ok();
    }
}

fn session_key(token: &str) -> String {
    format!("user_session:{token}")
}

fn data_key(session_key: &str) -> String {
    format!("data_of:{session_key}")
}
