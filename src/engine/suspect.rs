//! Suspects: notices whose workers vanished twice or more without a word. One of them may be what made them vanish.
//!
//! A worker handles one suspect at a time, so that the others do not vanish with it again and again until all of them
//! are dead letters. Those that went along by chance are handled in the end.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::engine::tick::Brake;
use crate::store::Claim;

/// Whose turn it is among the suspects of one worker.
#[derive(Debug)]
pub(crate) struct Suspects {
    turn: Arc<Semaphore>,
    brake: Arc<Brake>,
}

/// The turn of one suspect; the next one may be handled when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _permit: OwnedSemaphorePermit,
    brake: Arc<Brake>,
}

/// The suspects of one claim.
#[derive(Debug, Default)]
pub(crate) struct Sifted {
    /// The one to be handled now.
    pub(crate) next: Option<(Claim, Turn)>,
    /// Those to be given back before it is handled.
    pub(crate) surplus: Vec<Claim>,
}

impl Suspects {
    /// Lapses that make a notice a suspect.
    const LAPSES: u32 = 2;
    /// The most notices in a claim while there are more suspects than can be handled.
    pub(crate) const SMALL_BATCH: u32 = 8;

    pub(crate) fn new() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), brake: Arc::new(Brake::new()) }
    }

    /// Takes the suspects out of `claims`.
    pub(crate) fn sift(&self, claims: &mut Vec<Claim>) -> Sifted {
        let mut suspects: Vec<Claim> = claims.extract_if(.., |claim| lapses(claim) >= Self::LAPSES).collect();
        // The fewest lapses first: what is harmless is done before the one that is not comes again.
        suspects.sort_by_key(|claim| std::cmp::Reverse(lapses(claim)));
        let mut sifted = Sifted::default();
        if !suspects.is_empty()
            && let Ok(permit) = Arc::clone(&self.turn).try_acquire_owned()
        {
            let turn = Turn { _permit: permit, brake: Arc::clone(&self.brake) };
            sifted.next = suspects.pop().map(|claim| (claim, turn));
        }
        if !suspects.is_empty() {
            // They are ready at once, and must not be claimed and given back in a busy loop meanwhile.
            self.brake.pull();
        }
        sifted.surplus = suspects;
        sifted
    }

    /// Waits while suspects that were given back would only be claimed again for nothing.
    pub(crate) async fn passed(&self) {
        self.brake.passed().await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.brake.release();
    }
}

fn lapses(claim: &Claim) -> u32 {
    claim.attempt.saturating_sub(1).saturating_sub(claim.failures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::delivery::tests::claim;

    fn lapsed(id: &str, lapses: u32) -> Claim {
        let claim = claim(id, None);
        Claim { attempt: 1 + claim.failures + lapses, ..claim }
    }

    #[test]
    fn one_suspect_at_a_time_is_handled_the_one_with_the_fewest_lapses_first() {
        let suspects = Suspects::new();
        let mut claims = vec![lapsed("a", 5), lapsed("b", 0), lapsed("c", 2), lapsed("d", 1)];
        let Sifted { next: Some((next, turn)), surplus } = suspects.sift(&mut claims) else { panic!("no suspect") };
        let ids = |claims: &[Claim]| claims.iter().map(|claim| claim.notice.id.to_string()).collect::<Vec<_>>();
        assert_eq!(
            (ids(&[next]), ids(&surplus), ids(&claims)),
            (vec!["c".to_owned()], vec!["a".to_owned()], vec!["b".to_owned(), "d".to_owned()])
        );

        let sifted = suspects.sift(&mut vec![lapsed("e", 2)]);
        assert!(sifted.next.is_none() && sifted.surplus.len() == 1, "{sifted:?}");
        drop(turn);
        assert!(suspects.sift(&mut vec![lapsed("e", 2)]).next.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn claims_wait_while_there_are_more_suspects_than_one_until_its_turn_is_over() {
        let suspects = Suspects::new();
        let begun = tokio::time::Instant::now();
        let sifted = suspects.sift(&mut vec![lapsed("a", 2)]);
        suspects.passed().await;
        assert_eq!(begun.elapsed().as_millis(), 0);
        suspects.sift(&mut vec![lapsed("b", 2)]);
        suspects.passed().await;
        assert!(begun.elapsed().as_millis() >= 50, "{:?}", begun.elapsed());
        suspects.sift(&mut vec![lapsed("b", 2)]);
        drop(sifted);
        let begun = tokio::time::Instant::now();
        suspects.passed().await;
        assert_eq!(begun.elapsed().as_millis(), 0);
    }
}
