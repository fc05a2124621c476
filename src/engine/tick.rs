//! When to act: instants of the store translated to this machine's timer, early waking, and patience after failures.
//!
//! The store's clock decides what is due; the timers here only decide when to ask.

use std::{
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// What one answer told of the store's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreClock {
    now_ms: i64,
    asked_at: Instant,
    answered_at: Instant,
}

impl StoreClock {
    /// The store said `now_ms` somewhere between these two instants.
    pub(crate) fn new(now_ms: i64, asked_at: Instant, answered_at: Instant) -> Self {
        Self { now_ms, asked_at, answered_at }
    }

    /// When to ask again so that the store's clock has reached `at_ms` when the question arrives.
    ///
    /// Counted from when the last question left: the next one travels as long, so it is in time, not early. If the last
    /// one was held up the next is early, and its own answer puts that right.
    pub(crate) fn ask_at(&self, at_ms: i64) -> Instant {
        let ahead = u64::try_from(at_ms.saturating_sub(self.now_ms)).unwrap_or(0);
        after(self.asked_at, Duration::from_millis(ahead))
    }

    /// An estimate of the store's clock at `at`: wrong by half the travelling time at most.
    pub(crate) fn estimate_ms(&self, at: Instant) -> i64 {
        let middle = self.asked_at + (self.answered_at - self.asked_at) / 2;
        let passed = at.saturating_duration_since(middle).as_millis();
        self.now_ms.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX))
    }
}

/// The instant `span` after `instant`; as good as never if the timer cannot hold it.
pub(crate) fn after(instant: Instant, span: Duration) -> Instant {
    const YEARS: Duration = Duration::from_secs(30 * 365 * 86_400);
    instant + span.min(YEARS)
}

/// Collects instants (store's clock, ms) at which something is due earlier than the dispatcher may know.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    earliest: Mutex<Option<i64>>,
    rung: Notify,
}

impl Alarm {
    /// Something is due at `at_ms`.
    pub(crate) fn ring(&self, at_ms: i64) {
        let mut earliest = self.earliest.lock().unwrap_or_else(PoisonError::into_inner);
        if earliest.is_none_or(|known| at_ms < known) {
            *earliest = Some(at_ms);
            self.rung.notify_one();
        }
    }

    /// Something may be due now.
    pub(crate) fn ring_now(&self) {
        self.ring(i64::MIN);
    }

    /// The earliest instant heard since the last [`Alarm::reset`].
    pub(crate) fn earliest(&self) -> Option<i64> {
        *self.earliest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was heard. To be called before a claim leaves, never after: the claim's answer covers all that was
    /// heard before it, and what is heard while it is under way must be kept.
    pub(crate) fn reset(&self) {
        *self.earliest.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits until something earlier than before is heard.
    pub(crate) async fn rung(&self) {
        self.rung.notified().await;
    }
}

/// Holds up claims while handlers say that they cannot work: longer each time, until one of them can.
#[derive(Debug)]
pub(crate) struct Brake(Mutex<Braking>);

#[derive(Debug)]
struct Braking {
    until: Option<Instant>,
    patience: Patience,
}

impl Brake {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Braking { until: None, patience: Patience::new() }))
    }

    /// A handler cannot work. Those that say so during one delay say it together.
    pub(crate) fn pull(&self) {
        let mut braking = self.braking();
        let now = Instant::now();
        if braking.until.is_none_or(|until| until <= now) {
            braking.until = Some(now + braking.patience.next_delay());
        }
    }

    /// A handler can work.
    pub(crate) fn release(&self) {
        let mut braking = self.braking();
        if braking.until.take().is_some() {
            braking.patience.reset();
        }
    }

    /// Waits until claims may go on.
    pub(crate) async fn passed(&self) {
        loop {
            let until = self.braking().until;
            match until {
                Some(until) if Instant::now() < until => sleep_until(until).await,
                _ => return,
            }
        }
    }

    fn braking(&self) -> MutexGuard<'_, Braking> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The word to stop, and until when what runs may finish.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    begun: CancellationToken,
    deadline: OnceLock<Instant>,
}

impl Stop {
    /// Begins the stop: what runs has `timeout` to finish.
    pub(crate) fn begin(&self, timeout: Duration) {
        // The deadline stands before anybody can see that the stop has begun.
        self.deadline.get_or_init(|| after(Instant::now(), timeout));
        self.begun.cancel();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    pub(crate) async fn begun(&self) {
        self.begun.cancelled().await;
    }

    /// Until when what runs may finish; now, if the stop has not begun.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline.get().copied().unwrap_or_else(Instant::now)
    }
}

/// Delays after failures: growing, with jitter, never more than five seconds.
#[derive(Debug)]
pub(crate) struct Patience(ExponentialBackoff);

impl Patience {
    const SHORTEST: Duration = Duration::from_millis(50);
    // Jitter adds up to as much again.
    const LONGEST: Duration = Duration::from_millis(2500);

    pub(crate) fn new() -> Self {
        let delays = ExponentialBuilder::new()
            .with_min_delay(Self::SHORTEST)
            .with_max_delay(Self::LONGEST)
            .without_max_times()
            .with_jitter()
            .with_jitter_seed(fastrand::u64(..));
        Self(delays.build())
    }

    /// The delay after one more failure.
    pub(crate) fn next_delay(&mut self) -> Duration {
        self.0.next().unwrap_or(Self::LONGEST)
    }

    /// The delay after one more failure, short enough for several attempts within `lease`.
    pub(crate) fn next_delay_within(&mut self, lease: Duration) -> Duration {
        self.next_delay().min((lease / 4).max(Duration::from_millis(20)))
    }

    /// Starts over after a success.
    pub(crate) fn reset(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_question_is_timed_from_when_the_last_one_left() {
        let asked_at = Instant::now();
        let clock = StoreClock::new(1_000, asked_at, asked_at + Duration::from_millis(40));
        assert_eq!(clock.ask_at(1_250), asked_at + Duration::from_millis(250));
        assert_eq!(clock.ask_at(900), asked_at);
        assert_eq!(clock.ask_at(i64::MIN), asked_at);
        assert!(clock.ask_at(i64::MAX) > asked_at);
        assert!(after(asked_at, Duration::MAX) > asked_at);
    }

    #[test]
    fn the_estimate_of_the_store_s_clock_starts_in_the_middle_of_the_answer() {
        let asked_at = Instant::now();
        let clock = StoreClock::new(1_000, asked_at, asked_at + Duration::from_millis(40));
        assert_eq!(clock.estimate_ms(asked_at + Duration::from_millis(40)), 1_020);
        assert_eq!(clock.estimate_ms(asked_at), 1_000);
    }

    #[tokio::test]
    async fn an_alarm_keeps_the_earliest_and_wakes_once_for_it() {
        let alarm = Alarm::default();
        alarm.ring(50);
        alarm.ring(70);
        alarm.rung().await;
        assert_eq!(alarm.earliest(), Some(50));
        alarm.reset();
        assert_eq!(alarm.earliest(), None);
        alarm.ring_now();
        alarm.rung().await;
        assert_eq!(alarm.earliest(), Some(i64::MIN));
    }

    #[tokio::test(start_paused = true)]
    async fn a_brake_holds_longer_each_time_until_a_handler_can_work() {
        let (brake, begun) = (Brake::new(), Instant::now());
        brake.passed().await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        let mut held = Vec::new();
        for _ in 0..12 {
            let begun = Instant::now();
            // Many handlers say it together.
            (0..16).for_each(|_| brake.pull());
            brake.passed().await;
            held.push(begun.elapsed());
        }
        assert!(held[0] < Duration::from_millis(110) && held[11] >= Duration::from_millis(2500), "{held:?}");
        brake.release();
        let begun = Instant::now();
        brake.pull();
        brake.passed().await;
        assert!(begun.elapsed() < Duration::from_millis(110), "{:?}", begun.elapsed());
    }

    #[test]
    fn patience_grows_and_never_exceeds_five_seconds() {
        let mut patience = Patience::new();
        let delays: Vec<_> = (0..40).map(|_| patience.next_delay()).collect();
        assert!(delays[0] < Duration::from_millis(101), "{delays:?}");
        assert!(delays[39] >= Duration::from_millis(2500), "{delays:?}");
        assert!(delays.iter().all(|delay| *delay <= Duration::from_secs(5)), "{delays:?}");
        patience.reset();
        assert!(patience.next_delay() < Duration::from_millis(101));
    }
}
