//! A session that is reminded of its end, stays, is reminded again and ends: the whole library in one page.
//!
//! Run it with `FOREWARN_STORE=redis://127.0.0.1 cargo run --example session`.
#![expect(clippy::print_stdout, reason = "an example may talk")]

use std::time::Duration;

use chrono::TimeDelta;
use forewarn::{Forewarn, LeadTime, Settings, engine::Delivery, engine::Worker};
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::var("FOREWARN_STORE").unwrap_or_else(|_| "redis://127.0.0.1/".to_owned());
    let forewarn = Forewarn::connect(&url).await?;

    // One namespace for all that expires in the same way: here, a reminder two seconds before the end.
    let sessions = forewarn.namespace("example-session");
    sessions.apply(Settings::default().remind(LeadTime::try_from(Duration::from_secs(2))?)).await?;

    // The store's clock decides, so it is the one to count from.
    let now = forewarn::model::to_datetime(forewarn.store().now().await?);
    let expires_at = now + TimeDelta::seconds(3);
    sessions.track("user_session:wang2024", expires_at).payload(&json!({"user": 7}))?.await?;

    let (stop, stayed) = (CancellationToken::new(), sessions.clone());
    let on_reminder = move |notice: Delivery| {
        let sessions = stayed.clone();
        async move {
            println!("{} expires at {}", notice.id(), notice.expires_at());
            // The user stays once, for three more seconds, and then is gone.
            if notice.expires_at() == expires_at {
                let renewed = sessions.renew("user_session:wang2024", expires_at + TimeDelta::seconds(3)).await?;
                println!("the user stays: {renewed:?}");
            }
            anyhow::Ok(())
        }
    };
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
    Ok(())
}
