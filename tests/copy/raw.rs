//! What only raw clients write: fractions, scores that cannot be an expiry, ids that are none.

use crate::life::{configure, settings};
use crate::stage::{MINUTE, START, World, heard, shard_of};

/// A raw `ZADD` of any score.
async fn set(world: &World, shards: u16, bytes: &[u8], score: &str) {
    world.raw("ZADD", shard_of(bytes, shards), "exp", &[score.as_bytes(), bytes]).await;
}

#[tokio::test]
async fn fractions_are_cut_and_nothing_is_lost_or_repeated_for_it() {
    for shards in [1, 3] {
        let (source, target) = (World::redis().await, World::sqlite().await);
        configure(&source, settings(shards)).await;
        heard(&source, "main").await;
        // Around the instant at which the sweep will stand: swept, at its very end, and just not swept.
        let edge = START + 10 * MINUTE + 1000;
        for (bytes, score) in [
            ("before", format!("{}", edge - 1)),
            ("before-f", format!("{}.75", edge - 1)),
            ("at", format!("{edge}")),
            ("after-f", format!("{edge}.25")),
            ("a-after-f", format!("{edge}.5")),
            ("after", format!("{}", edge + 1)),
        ] {
            set(&source, shards, bytes.as_bytes(), &score).await;
        }
        source.at(1000);
        assert_eq!(heard(&source, "main").await, ["10m at", "10m before", "10m before-f"]);
        let claims = source.claim("audit").await;
        source.ack("audit", &claims).await;
        source.copied_to(&target, None).await;
        target.at(1001);
        assert_eq!(heard(&target, "main").await, ["10m a-after-f", "10m after", "10m after-f"], "{shards} shards");
        assert_eq!(heard(&target, "audit").await, ["10m a-after-f", "10m after", "10m after-f"], "{shards} shards");
    }
}

#[tokio::test]
async fn a_part_of_a_tie_with_fractions_is_swept_and_the_rest_follows() {
    let (source, target) = (World::redis().await, World::redis().await);
    configure(&source, settings(1)).await;
    heard(&source, "main").await;
    for text in ["a", "b", "c", "d"] {
        set(&source, 1, text.as_bytes(), &format!("{}.5", START + 10 * MINUTE)).await;
    }
    source.at(1);
    assert_eq!(source.claim_some("main", 2).await.len(), 2);
    source.copied_to(&target, Some(2)).await;
    assert_eq!(heard(&target, "main").await, ["10m c", "10m d"]);
}

#[tokio::test]
async fn what_cannot_expire_goes_to_quarantine_where_there_is_one_and_is_told_where_not() {
    for (target, has_quarantine) in [(World::redis().await, true), (World::sqlite().await, false)] {
        let source = World::redis().await;
        configure(&source, settings(3)).await;
        let long = vec![b'x'; 1025];
        for (bytes, score) in [
            (&b"seconds"[..], "1796083200"),
            (b"micros", "1796083200000000"),
            (b"never", "+inf"),
            (b"", "1796083200000"),
            (&long, "1796083200000"),
            (b"clean", "-inf"),
            (b"zero", "0"),
        ] {
            set(&source, 3, bytes, score).await;
        }
        source.raw("ZADD", shard_of(b"bad", 3), "bad", &[b"17", b"bad"]).await;
        source.raw("HSET", shard_of(b"bad", 3), "payload", &[b"bad", b"of bad"]).await;
        let copied = source.copied_to(&target, None).await;
        assert_eq!(copied.refused, if has_quarantine { 0 } else { 6 });
        let stats = target.store.stats(&crate::stage::ns()).await.unwrap();
        assert_eq!((stats.armed, stats.quarantined), (2, if has_quarantine { 6 } else { 0 }));
        assert_eq!(heard(&target, "main").await, ["expired clean", "expired zero"]);
        if has_quarantine {
            let view = target.store.show(&crate::stage::ns(), &crate::stage::id("bad")).await.unwrap().unwrap();
            assert_eq!((view.quarantined.as_deref(), view.payload.as_deref()), (Some("17"), Some(&b"of bad"[..])));
        }
    }
}
