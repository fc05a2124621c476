//! What a daemon tells by itself: hand-outs and wake-ups, as server-sent events.

use std::time::Duration;

use futures::{StreamExt as _, stream::BoxStream};
use reqwest::Method;
use sse_stream::{Sse, SseStream};

use crate::api::NoticeEvent;
use crate::model::Name;
use crate::store::{Feed, Store as _, StoreError, Wakeups};

use super::RemoteStore;

impl RemoteStore {
    pub(super) async fn hear_wakeups(&self, namespace: &Name) -> Result<Wakeups, StoreError> {
        let events = self.events(namespace, "wakeups").await?;
        Ok(events.filter_map(|event| async move { event.data?.trim().parse().ok() }).boxed())
    }

    pub(super) async fn hear_hand_outs(&self, namespace: &Name) -> Result<Feed, StoreError> {
        let (events, namespace, address) = (self.events(namespace, "notices").await?, namespace.clone(), self.place());
        // A gap ends the feed: whoever calls again knows that something may be missing.
        let events = events.take_while(|event| std::future::ready(event.event.as_deref() != Some("gap")));
        let handed = move |event: Sse| {
            let odd = |problem: String| Err(StoreError::Unexpected { address: address.clone(), problem });
            let handed = match event.event.as_deref() {
                Some("reminder" | "cleanup") => {
                    match serde_json::from_str::<NoticeEvent>(&event.data.unwrap_or_default()) {
                        Ok(event) => match event.read(&namespace) {
                            Ok(Some(handed)) => Some(Ok(handed)),
                            Ok(None) => {
                                Some(odd("its ids are secrets; a token of scope admin is shown them".to_owned()))
                            }
                            Err(invalid) => Some(odd(invalid.to_string())),
                        },
                        Err(error) => Some(odd(error.to_string())),
                    }
                }
                _ => None,
            };
            std::future::ready(handed)
        };
        Ok(events.filter_map(handed).boxed())
    }

    /// Server-sent events of a namespace, until the connection is lost.
    async fn events(&self, namespace: &Name, what: &str) -> Result<BoxStream<'static, Sse>, StoreError> {
        let request = self.daemon.request(Method::GET, self.url(namespace, &[what]));
        // It lasts as long as it is listened to; heartbeats come more often than this.
        let request = request.timeout(Duration::MAX);
        let response = self.daemon.send(request, namespace.into()).await?;
        let events = SseStream::from_bytes_stream(response.bytes_stream());
        let events = events.take_while(|event| std::future::ready(event.is_ok()));
        Ok(events.filter_map(|event| std::future::ready(event.ok())).boxed())
    }
}
