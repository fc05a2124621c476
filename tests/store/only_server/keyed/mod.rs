//! Key-backed ids, which only servers have: each id is a real key, and its own TTL is the truth.
//!
//! Time is virtual and far ahead, so that the server itself expires nothing: a key whose time has come is deleted by
//! [`Keys::at`], as the server would.

mod command;
mod hand_out;
mod histories;
mod regression;
mod sliding;

use std::collections::BTreeMap;

use forewarn::Settings;
use forewarn::store::{Claim, Counters};

use crate::ground::Ground;
use crate::harness::{self, Rights};
use crate::operation::{FAR, START};
use crate::scene::Scene;

/// A key-backed namespace, the clock it lives by, and the keys behind it.
struct Keys {
    scene: Scene,
    expiries: BTreeMap<String, i64>,
}

impl Keys {
    async fn open(ground: impl Into<Ground<'_>>, settings: Settings) -> Self {
        Self::with_routes(ground, settings, &[]).await
    }

    async fn with_routes(ground: impl Into<Ground<'_>>, settings: Settings, routes: &[&str]) -> Self {
        let name = harness::namespace();
        let pattern = format!("{name}:*");
        let rights = Rights::documented();
        let rights = if settings.manage_keys { rights.with_managed_keys(&pattern) } else { rights.with_keys(&pattern) };
        let scene = Scene::of(ground.into().peer_with(Some(&rights)).await, name).await;
        scene.configure(settings.key_backed(true).keys(pattern.parse().unwrap()), routes).await;
        scene.at(FAR);
        Self { scene, expiries: BTreeMap::new() }
    }

    fn name(&self, text: &str) -> String {
        format!("{}:{text}", self.scene.name)
    }

    /// Sets the clock; keys whose time has passed are no more.
    async fn at(&mut self, ms: i64) {
        self.scene.at(FAR + ms);
        let over: Vec<String> = self.expiries.iter().filter(|(_, e)| **e < ms).map(|(text, _)| text.clone()).collect();
        for text in over {
            self.delete(&text).await;
        }
    }

    /// `SET` or `PEXPIREAT` by whoever owns the key.
    async fn slide(&mut self, text: &str, e: i64) {
        let (key, at) = (self.name(text), (START + FAR + e).to_string());
        let _: () = self.scene.raw(&["SET", &key, "data", "PXAT", &at]).await;
        self.expiries.insert(text.to_owned(), e);
    }

    async fn persist(&mut self, text: &str) {
        let key = self.name(text);
        let _: i64 = self.scene.raw(&["PERSIST", &key]).await;
        self.expiries.remove(text);
    }

    async fn delete(&mut self, text: &str) {
        let key = self.name(text);
        let _: i64 = self.scene.raw(&["DEL", &key]).await;
        self.expiries.remove(text);
    }

    /// The key with this expiry, and its id armed by a raw client.
    async fn arm(&mut self, text: &str, e: i64) {
        self.slide(text, e).await;
        self.arm_only(text, e).await;
    }

    async fn arm_only(&mut self, text: &str, e: i64) {
        let key = self.name(text);
        self.scene.raw_set(&key, FAR + e).await;
    }

    /// The expiry of the key itself; none if it has none, or is not there.
    async fn expiry_of_key(&mut self, text: &str) -> Option<i64> {
        let key = self.name(text);
        let at: i64 = self.scene.raw(&["PEXPIRETIME", &key]).await;
        (at >= 0).then_some(at - START - FAR)
    }

    /// The expiry in the store.
    async fn armed(&self, text: &str) -> Option<i64> {
        let view = self.scene.show(&self.name(text)).await?;
        view.expires_at_ms.map(|ms| ms - START - FAR)
    }

    async fn heard(&self) -> Vec<String> {
        let prefix = format!("{}:", self.scene.name);
        self.scene.heard().await.into_iter().map(|words| words.replace(&prefix, "")).collect()
    }

    async fn handled(&self) -> Vec<String> {
        let claims = self.scene.claim().await;
        let words = self.words(&claims);
        self.scene.ack(&claims).await;
        words
    }

    fn words(&self, claims: &[Claim]) -> Vec<String> {
        let prefix = format!("{}:", self.scene.name);
        crate::scene::words(claims).into_iter().map(|words| words.replace(&prefix, "")).collect()
    }

    async fn counters(&self) -> Counters {
        self.scene.store.stats(&self.scene.name).await.unwrap().counters
    }

    async fn resync(&self) -> i64 {
        let wait = self.scene.store.resync(&self.scene.name).await.unwrap();
        i64::try_from(wait.as_millis()).unwrap()
    }
}
