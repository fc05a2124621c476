//! What only servers have: raw clients, ids that are keys, memory that runs out, keys of the wrong type, locales, shards.
//!
//! What only a file has stands in the tests `sqlite`.

mod keyed;
mod locale;
mod observing;
mod rights;
mod score;
mod shard;
mod trouble;

use redis::FromRedisValue;

use crate::ground::{Entry, key};
use crate::scene::Scene;

impl Scene {
    /// The name of a key of the only shard.
    fn key(&self, name: &str) -> String {
        key("fw", self.name.as_str(), 0, name)
    }

    /// Runs a command past the store, as any client may.
    async fn raw<T: FromRedisValue>(&mut self, command: &[&str]) -> T {
        let mut cmd = redis::cmd(command[0]);
        for argument in &command[1..] {
            cmd.arg(argument);
        }
        cmd.query_async(self.peer.connection()).await.expect("a good command")
    }

    /// A raw `ZADD` of any score.
    async fn raw_score(&mut self, text: &str, score: &str) {
        self.write(text, Entry::Armed(score.to_owned())).await;
    }
}
