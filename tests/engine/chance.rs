//! Chance that can be had again: a test that fails tells the seed, and `FOREWARN_SEED` brings it back.

use std::time::Duration;

/// A source of random numbers.
#[derive(Debug)]
pub(crate) struct Chance {
    seed: u64,
    numbers: fastrand::Rng,
}

impl Chance {
    pub(crate) fn new() -> Self {
        let seed = match std::env::var("FOREWARN_SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => fastrand::u64(..),
        };
        Self { seed, numbers: fastrand::Rng::with_seed(seed) }
    }

    /// Lets a random time pass, shorter than this: for what has to hold at any instant, whatever happens at it.
    pub(crate) async fn pause(&mut self, longest: Duration) {
        tokio::time::sleep(longest.mul_f64(self.numbers.f64())).await;
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.numbers.usize(..of.len())]
    }
}

impl Drop for Chance {
    #[expect(clippy::print_stderr, reason = "the runner of the tests shows what a failed test said")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("chance: FOREWARN_SEED={} brings the same again", self.seed);
        }
    }
}
