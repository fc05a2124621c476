//! Feeds: what is handed out in a namespace, heard once for all who watch it, with a memory for those who come back.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::StreamExt as _;
use tokio::{
    sync::{broadcast, watch},
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
struct Feed {
    memory: Mutex<Memory>,
    news: broadcast::Sender<News>,
    /// Whether the store is listened to just now.
    is_heard: watch::Sender<bool>,
}

/// What a watcher gets.
#[derive(Debug)]
pub(super) struct Watch {
    /// What was missed.
    pub(super) missed: Vec<News>,
    /// What comes.
    pub(super) news: broadcast::Receiver<News>,
    is_heard: watch::Receiver<bool>,
}

impl Watch {
    /// Waits until the store is listened to; answers whether it is, in this time.
    pub(super) async fn begun(&mut self, patience: Duration) -> bool {
        timeout(patience, self.is_heard.wait_for(|is_heard| *is_heard)).await.is_ok_and(|heard| heard.is_ok())
    }
}

/// What is remembered of a feed.
#[derive(Debug, Default)]
struct Memory {
    handed: VecDeque<Arc<Handed>>,
    /// Nobody listens any more.
    is_over: bool,
}

impl Feeds {
    /// How long a feed is heard on after its last watcher has gone, so that one who comes back has missed nothing.
    const LINGER: Duration = Duration::from_secs(60);

    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, feeds: Mutex::default() }
    }

    /// What comes from now on in a namespace, after what is remembered since `last`; a gap, if that is not remembered any more.
    pub(super) fn watch(&self, namespace: &Name, last: Option<&str>) -> Watch {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.retain(|_, feed| !feed.memory().is_over);
        loop {
            let feed = feeds.entry(namespace.clone()).or_insert_with(|| {
                let (news, is_heard) = (broadcast::channel(Feed::MEMORY).0, watch::Sender::new(false));
                let feed = Arc::new(Feed { memory: Mutex::default(), news, is_heard });
                tokio::spawn(listen(Arc::clone(&self.store), namespace.clone(), Arc::clone(&feed)));
                feed
            });
            match feed.watch(last) {
                Some(watching) => return watching,
                // It has ended just now.
                None => drop(feeds.remove(namespace)),
            }
        }
    }
}

impl Feed {
    /// How many hand-outs are remembered.
    const MEMORY: usize = 1024;

    /// `None` if nobody listens any more.
    fn watch(&self, last: Option<&str>) -> Option<Watch> {
        let memory = self.memory();
        if memory.is_over {
            return None;
        }
        // Subscribed while the memory is held: nothing falls between the two.
        let news = self.news.subscribe();
        let is_heard = self.is_heard.subscribe();
        let Some(last) = last else { return Some(Watch { missed: Vec::new(), news, is_heard }) };
        let missed = match memory.handed.iter().rposition(|handed| key_of(handed) == last) {
            Some(at) => memory.handed.iter().skip(at + 1).map(|handed| News::Handed(Arc::clone(handed))).collect(),
            None => vec![News::Gap],
        };
        Some(Watch { missed, news, is_heard })
    }

    fn tell(&self, handed: Handed) {
        let handed = Arc::new(handed);
        let mut memory = self.memory();
        if memory.handed.len() >= Self::MEMORY {
            memory.handed.pop_front();
        }
        memory.handed.push_back(Arc::clone(&handed));
        // Nobody may be there to hear it.
        drop(self.news.send(News::Handed(handed)));
    }

    /// What comes next does not follow upon what is remembered.
    fn tell_of_gap(&self) {
        self.memory().handed.clear();
        drop(self.news.send(News::Gap));
    }

    /// Ends it, if nobody watches.
    fn end(&self) -> bool {
        let mut memory = self.memory();
        memory.is_over = self.news.receiver_count() == 0;
        memory.is_over
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listens until nobody has watched for a while, and again whenever it is cut off.
async fn listen(store: Arc<dyn Store>, namespace: Name, feed: Arc<Feed>) {
    let (mut patience, mut was_cut) = (Patience::new(), false);
    let mut watched_at = Instant::now();
    let mut is_over = || {
        if feed.news.receiver_count() > 0 {
            watched_at = Instant::now();
        }
        watched_at.elapsed() > Feeds::LINGER && feed.end()
    };
    while !is_over() {
        match store.feed(&namespace).await {
            Ok(mut handed) => {
                if std::mem::take(&mut was_cut) {
                    feed.tell_of_gap();
                }
                patience.reset();
                feed.is_heard.send_replace(true);
                loop {
                    match timeout(LOOK, handed.next()).await {
                        Ok(Some(Ok(handed))) => feed.tell(handed),
                        Ok(Some(Err(error))) => debug!(%namespace, %error, "a hand-out could not be read"),
                        Ok(None) => break,
                        Err(_) => {}
                    }
                    if is_over() {
                        return;
                    }
                }
            }
            Err(error) => debug!(%namespace, %error, "the feed cannot be heard"),
        }
        was_cut = true;
        feed.is_heard.send_replace(false);
        sleep(patience.next_delay()).await;
    }
}

/// How often it is seen whether somebody watches.
const LOOK: Duration = Duration::from_secs(5);
