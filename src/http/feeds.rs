//! Feeds: what is handed out in a namespace, heard once for all who watch it, with a memory for those who come back.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::StreamExt as _;
use tokio::{
    sync::broadcast,
    time::{Instant, sleep, timeout},
};
use tracing::debug;

use crate::engine::Patience;
use crate::model::Name;
use crate::store::{Handed, Store};

/// What watchers hear.
#[derive(Debug, Clone)]
pub(super) enum News {
    /// Something was handed out.
    Handed(Arc<Handed>),
    /// Something may have been missed.
    Gap,
}

/// What names one hand-out: the same at every daemon.
pub(super) fn key_of(handed: &Handed) -> String {
    format!("{}.{}.{}", handed.notice.event_id(), handed.attempt, handed.route)
}

/// The feeds that somebody watches, or has watched lately.
#[derive(Debug)]
pub(super) struct Feeds {
    store: Arc<dyn Store>,
    feeds: Mutex<HashMap<Name, Arc<Feed>>>,
}

/// The feed of one namespace.
#[derive(Debug)]
pub(super) struct Feed {
    memory: Mutex<VecDeque<Arc<Handed>>>,
    news: broadcast::Sender<News>,
}

impl Feeds {
    /// How long a feed is heard on after its last watcher has gone, so that one who comes back has missed nothing.
    const LINGER: Duration = Duration::from_secs(60);

    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, feeds: Mutex::default() }
    }

    /// The feed of a namespace.
    pub(super) fn of(&self, namespace: &Name) -> Arc<Feed> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        // Those whose listeners have ended are held by nobody else.
        feeds.retain(|_, feed| Arc::strong_count(feed) > 1);
        if let Some(feed) = feeds.get(namespace) {
            return Arc::clone(feed);
        }
        let feed = Arc::new(Feed { memory: Mutex::default(), news: broadcast::channel(Feed::MEMORY).0 });
        tokio::spawn(listen(Arc::clone(&self.store), namespace.clone(), Arc::clone(&feed)));
        feeds.insert(namespace.clone(), Arc::clone(&feed));
        feed
    }
}

impl Feed {
    /// How many hand-outs are remembered.
    const MEMORY: usize = 1024;

    /// What comes from now on, after what is remembered since `last`; a gap, if that is not remembered any more.
    pub(super) fn watch(&self, last: Option<&str>) -> (Vec<News>, broadcast::Receiver<News>) {
        let memory = self.memory();
        // Subscribed while the memory is held: nothing falls between the two.
        let news = self.news.subscribe();
        let Some(last) = last else { return (Vec::new(), news) };
        let missed = match memory.iter().rposition(|handed| key_of(handed) == last) {
            Some(at) => memory.iter().skip(at + 1).map(|handed| News::Handed(Arc::clone(handed))).collect(),
            None => vec![News::Gap],
        };
        (missed, news)
    }

    fn tell(&self, handed: Handed) {
        let handed = Arc::new(handed);
        let mut memory = self.memory();
        if memory.len() >= Self::MEMORY {
            memory.pop_front();
        }
        memory.push_back(Arc::clone(&handed));
        // Nobody may be there to hear it.
        drop(self.news.send(News::Handed(handed)));
    }

    fn memory(&self) -> MutexGuard<'_, VecDeque<Arc<Handed>>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listens until nobody has watched for a while, and again whenever it is cut off.
async fn listen(store: Arc<dyn Store>, namespace: Name, feed: Arc<Feed>) {
    const LOOK: Duration = Duration::from_secs(5);
    let (mut patience, mut watched_at, mut was_cut) = (Patience::new(), Instant::now(), false);
    loop {
        if feed.news.receiver_count() > 0 {
            watched_at = Instant::now();
        } else if watched_at.elapsed() > Feeds::LINGER {
            return;
        }
        match store.feed(&namespace).await {
            Ok(mut handed) => {
                if std::mem::take(&mut was_cut) {
                    feed.memory().clear();
                    drop(feed.news.send(News::Gap));
                }
                patience.reset();
                loop {
                    match timeout(LOOK, handed.next()).await {
                        Ok(Some(Ok(handed))) => feed.tell(handed),
                        Ok(Some(Err(error))) => debug!(%namespace, %error, "a hand-out could not be read"),
                        Ok(None) => break,
                        Err(_) => {}
                    }
                    if feed.news.receiver_count() > 0 {
                        watched_at = Instant::now();
                    } else if watched_at.elapsed() > Feeds::LINGER {
                        return;
                    }
                }
            }
            Err(error) => debug!(%namespace, %error, "the feed cannot be heard"),
        }
        was_cut = true;
        sleep(patience.next_delay()).await;
    }
}
