//! A session that is reminded of its end, stays, is reminded again and ends: the whole library in one page.
//!
//! Run it with `cargo run --example session`: it uses a file in the temporary directory, or the store that `FOREWARN_STORE`
//! names, as in `redis://127.0.0.1`. It deletes its namespace at the end.
#![expect(clippy::print_stdout, reason = "an example may talk")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use forewarn::{Delivery, Forewarn, Settings, Worker};
use tokio_util::sync::CancellationToken;

const SESSION: &str = "user_session:wang2024";
const LIFE: Duration = Duration::from_secs(3);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let file = std::env::temp_dir().join("forewarn-example.db");
    let url = std::env::var("FOREWARN_STORE").unwrap_or_else(|_| format!("sqlite:{}", file.display()));
    let forewarn = Forewarn::connect(&url).await?;

    // One namespace for all that expires in the same way: here, a reminder two seconds before the end.
    let sessions = forewarn.namespace("example-session");
    sessions.apply(Settings::default().remind("2s".parse()?)).await?;

    // The store's clock decides, so it counts the three seconds.
    let context = serde_json::json!({ "user": 7 });
    sessions.track_in(SESSION, LIFE).payload(&context)?.await?;

    let (stayed, has_stayed) = (sessions.clone(), Arc::new(AtomicBool::new(false)));
    let on_reminder = move |notice: Delivery| {
        let (sessions, has_stayed) = (stayed.clone(), Arc::clone(&has_stayed));
        async move {
            println!("{} expires at {}", notice.id(), notice.expires_at());
            // The user stays once, and then is gone.
            if !has_stayed.swap(true, Ordering::Relaxed) {
                println!("the user stays: {:?}", sessions.renew_in(SESSION, LIFE).await?);
            }
            anyhow::Ok(())
        }
    };
    let stop = CancellationToken::new();
    let ended = stop.clone();
    let on_cleanup = move |notice: Delivery| {
        let ended = ended.clone();
        async move {
            println!("{} has expired; its payload was {:?}", notice.id(), notice.payload_json::<serde_json::Value>());
            ended.cancel();
        }
    };
    let report =
        Worker::builder(&sessions).on_reminder(on_reminder).on_cleanup(on_cleanup).run(stop.cancelled_owned()).await?;
    println!("{} notices handled", report.totals.done);

    sessions.forget().await?;
    Ok(())
}
