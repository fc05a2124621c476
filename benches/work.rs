//! Work through a worker whose handler does nothing, up to a given number of notices.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;
use forewarn::model::Name;
use forewarn::store::Store;
use forewarn::{Delivery, Forewarn, Worker};
use tokio_util::sync::CancellationToken;

/// Runs a worker until its handlers have seen `count` cleanups and it has settled them.
pub(crate) async fn drain_by_worker(
    store: Arc<dyn Store>,
    namespace: &Name,
    concurrency: usize,
    batch: u32,
    count: usize,
) -> Result<()> {
    let (seen, enough) = (AtomicUsize::new(0), CancellationToken::new());
    let stop = enough.clone().cancelled_owned();
    let sessions = Forewarn::with_store(store).namespace(namespace.as_str());
    let handler = move |_: Delivery| {
        if seen.fetch_add(1, Ordering::Relaxed) + 1 == count {
            enough.cancel();
        }
        std::future::ready(())
    };
    let worker = Worker::builder(&sessions).concurrency(concurrency).batch(batch);
    worker.on_reminder(|_| async {}).on_cleanup(handler).run(stop).await?;
    Ok(())
}
