//! The bare commands: what a program would do without forewarn, on one ZSET of its own, on the same server.
//!
//! They remind nobody, lease nothing, retry nothing and lose what a dying worker holds. They are the floor under any
//! design that keeps deadlines in a ZSET, not an alternative.

use anyhow::{Result, ensure};
use forewarn::model::Track;
use redis::aio::MultiplexedConnection;
use redis::{Pipeline, Script, ScriptInvocation};

/// Takes what is due out of the ZSET: one call for a batch, as cheap as it gets.
const TAKE: &str = "\
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
if #due > 0 then redis.call('ZREM', KEYS[1], unpack(due)) end
return due";

/// A connection and the script.
#[derive(Debug, Clone)]
pub(crate) struct Bare {
    connection: MultiplexedConnection,
    take: Script,
}

impl Bare {
    /// Loads the script.
    pub(crate) async fn new(mut connection: MultiplexedConnection) -> Result<Self> {
        let take = Script::new(TAKE);
        take.prepare_invoke().load_async(&mut connection).await?;
        Ok(Self { connection, take })
    }

    /// Adds or moves entries, `batch` commands in each round trip.
    pub(crate) async fn add(&mut self, key: &str, load: &[Track], batch: usize) -> Result<()> {
        for chunk in load.chunks(batch) {
            let mut pipeline = Pipeline::new();
            for Track { id, expires_at, .. } in chunk {
                pipeline.cmd("ZADD").arg(key).arg(expires_at.as_millis()).arg(id.as_bytes());
            }
            let _: Vec<i64> = pipeline.query_async(&mut self.connection).await?;
        }
        Ok(())
    }

    /// Removes entries, `batch` commands in each round trip.
    pub(crate) async fn remove(&mut self, key: &str, load: &[Track], batch: usize) -> Result<()> {
        for chunk in load.chunks(batch) {
            let mut pipeline = Pipeline::new();
            for Track { id, .. } in chunk {
                pipeline.cmd("ZREM").arg(key).arg(id.as_bytes());
            }
            let removed: Vec<usize> = pipeline.query_async(&mut self.connection).await?;
            ensure!(removed.iter().sum::<usize>() == chunk.len(), "an entry was not there");
        }
        Ok(())
    }

    /// Takes at most `limit` entries due at `now_ms`.
    pub(crate) async fn take(&mut self, key: &str, now_ms: i64, limit: usize) -> Result<Vec<Vec<u8>>> {
        let mut call: ScriptInvocation<'_> = self.take.key(key);
        Ok(call.arg(now_ms).arg(limit).invoke_async(&mut self.connection).await?)
    }

    /// Takes until `count` entries have been.
    pub(crate) async fn drain(&mut self, key: &str, now_ms: i64, batch: usize, count: usize) -> Result<()> {
        let mut taken = 0;
        while taken < count {
            let due = self.take(key, now_ms, batch).await?.len();
            ensure!(due > 0, "{taken} of {count} entries were due");
            taken += due;
        }
        Ok(())
    }

    /// Deletes the ZSET.
    pub(crate) async fn delete(&mut self, key: &str) -> Result<()> {
        let () = redis::cmd("DEL").arg(key).query_async(&mut self.connection).await?;
        Ok(())
    }
}
