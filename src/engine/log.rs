//! What the log says of notices and claims: WARN where somebody has to look, DEBUG for what did not go straight, and TRACE
//! for everything else.
//!
//! An id may be a credential: from WARN on a notice is named by its event id alone, and below by the id's handle where the
//! settings say that ids are sensitive, also in what handlers say of failures. A payload is never told.

use std::{
    borrow::Cow,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tracing::{debug, trace, warn};

use crate::engine::{Happening, Outcome};
use crate::model::{Failure, Id, IdMask, Name, Notice, ShownId, to_datetime};
use crate::store::{Dropped, Settled};

/// The log of one worker.
#[derive(Debug)]
pub(super) struct Log {
    namespace: Name,
    route: Name,
    /// Claims lost since that was last warned of.
    losses: AtomicU64,
    /// By the settings last loaded.
    mask: Mutex<IdMask>,
}

impl Log {
    pub(super) fn new(namespace: Name, route: Name) -> Self {
        Self { namespace, route, losses: AtomicU64::new(0), mask: Mutex::default() }
    }

    /// How ids are shown from now on.
    pub(super) fn mask_ids(&self, mask: IdMask) {
        *self.mask.lock().unwrap_or_else(PoisonError::into_inner) = mask;
    }

    fn id(&self, id: &Id) -> ShownId {
        self.mask.lock().unwrap_or_else(PoisonError::into_inner).show(id)
    }

    /// What a handler said, without the id if that is not to be shown.
    fn said<'t>(&self, id: &Id, text: &'t str) -> Cow<'t, str> {
        self.mask.lock().unwrap_or_else(PoisonError::into_inner).scrub(id, text)
    }

    /// Warns of the claims lost since the last time, together.
    pub(super) fn warn_of_losses(&self) {
        let Self { namespace, route, losses, .. } = self;
        let lost = losses.swap(0, Ordering::Relaxed);
        if lost > 0 {
            warn!(
                %namespace, %route, lost,
                "claims were lost: their leases ended before they were settled; they are handed out again, whatever was \
                 done for them"
            );
        }
    }

    /// Writes what there is to say of this happening. Starts, stops and outages are told where they are found.
    pub(super) fn write(&self, happening: &Happening<'_>) {
        let Self { namespace, route, losses, .. } = self;
        match happening {
            Happening::Claimed { notices, dropped, quarantined, lapsed } => {
                self.claimed(*notices, dropped, *quarantined, *lapsed);
            }
            Happening::Settled { notice, attempt, outcome, settled } => {
                self.settled(notice, *attempt, outcome, *settled);
            }
            Happening::Released { notice, attempt } => {
                let (event_id, kind) = (notice.event_id(), notice.kind.as_str());
                trace!(%namespace, %route, %event_id, kind, attempt, id = %self.id(&notice.id), "a notice was given back unhandled");
            }
            Happening::Voided { notice, attempt, reason, .. } => {
                let (event_id, kind) = (notice.event_id(), notice.kind.as_str());
                trace!(%namespace, %route, %event_id, kind, attempt, ?reason, id = %self.id(&notice.id), "a notice became void while it was held");
            }
            Happening::Lost { notice, attempt, loss } => {
                losses.fetch_add(1, Ordering::Relaxed);
                let (event_id, kind) = (notice.event_id(), notice.kind.as_str());
                debug!(%namespace, %route, %event_id, kind, attempt, ?loss, id = %self.id(&notice.id), "a claim was lost");
            }
            Happening::Started { .. }
            | Happening::OutageStarted { .. }
            | Happening::OutageEnded { .. }
            | Happening::Reapplied
            | Happening::Stopping { .. } => {}
        }
    }

    fn claimed(&self, notices: u64, dropped: &Dropped, quarantined: u64, lapsed: u64) {
        let Self { namespace, route, .. } = self;
        let Dropped { superseded, expired, coalesced, lead } = dropped;
        debug!(%namespace, %route, notices, superseded, expired, coalesced, lead, "a claim was answered");
        if quarantined > 0 {
            warn!(
                %namespace, %route, quarantined,
                "ids whose expiry cannot be meant went to quarantine; they wait there until they are set again or removed"
            );
        }
        if lapsed > 0 {
            warn!(
                %namespace, %route, lapsed, class = "lapsed",
                "notices whose workers vanished again and again became dead letters"
            );
        }
    }

    fn settled(&self, notice: &Notice, attempt: u32, outcome: &Outcome, settled: Settled) {
        let Self { namespace, route, .. } = self;
        let (kind, id) = (notice.kind.as_str(), &notice.id);
        let said = |text| self.said(id, text);
        let event_id = || notice.event_id();
        match (settled, outcome, outcome.failure()) {
            (Settled::Dead, _, Some(Failure { stage, class, summary })) => {
                let (stage, class, summary) = (stage.as_str(), class.as_str(), said(summary));
                warn!(
                    %namespace, %route, event_id = %event_id(), kind, attempt, stage, class, summary = &*summary,
                    "a notice failed for good and is a dead letter"
                );
            }
            (Settled::Review, _, Some(Failure { stage, class, summary })) => {
                let (stage, class, summary) = (stage.as_str(), class.as_str(), said(summary));
                warn!(
                    %namespace, %route, event_id = %event_id(), kind, attempt, stage, class, summary = &*summary,
                    "a notice is parked until a person has looked at it"
                );
            }
            (Settled::Retry { next_attempt_at_ms }, _, Some(Failure { stage, class, summary })) => {
                let (stage, class, summary) = (stage.as_str(), class.as_str(), said(summary));
                debug!(
                    %namespace, %route, event_id = %event_id(), kind, attempt, stage, class, summary = &*summary, id = %self.id(id),
                    next_attempt_at = %to_datetime(next_attempt_at_ms).to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
                    "a notice failed and is tried again"
                );
            }
            (Settled::Settled, Outcome::Noted(note), _) => {
                let note = said(note);
                debug!(%namespace, %route, event_id = %event_id(), kind, attempt, note = &*note, id = %self.id(id), "a notice is done, with a note");
            }
            (Settled::Settled, Outcome::Superseded, _) => {
                debug!(%namespace, %route, event_id = %event_id(), kind, attempt, id = %self.id(id), "a notice is superseded");
            }
            _ => {
                let outcome = outcome.as_str();
                trace!(%namespace, %route, event_id = %event_id(), kind, attempt, outcome, ?settled, id = %self.id(id), "a notice is settled");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
        time::Duration,
    };

    use tracing::Level;

    use super::*;
    use crate::engine::Loss;
    use crate::engine::delivery::tests::claim;
    use crate::model::Class;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What a log that shows this level says of these happenings.
    fn logged(level: Level, happenings: &[Happening<'_>]) -> String {
        logged_by(level, |log| happenings.iter().for_each(|happening| log.write(happening)))
    }

    fn logged_by(level: Level, writing: impl Fn(&Log)) -> String {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .without_time()
            .with_writer(move || writer.clone())
            .finish();
        let log = Log::new("session".parse().unwrap(), "main".parse().unwrap());
        tracing::subscriber::with_default(subscriber, || writing(&log));
        let text = written.0.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    }

    fn settled<'a>(notice: &'a Notice, outcome: &'a Outcome, settled: Settled) -> Happening<'a> {
        Happening::Settled { notice, attempt: 3, outcome, settled }
    }

    #[test]
    fn a_dead_letter_and_a_review_are_warned_of_without_id_and_payload() {
        let notice = claim("secret-id", Some(b"secret-payload")).notice;
        let failure = || Failure::new(Class::Denied, "no\nright").at_stage("verify");
        let (reject, review) = (Outcome::Reject(failure()), Outcome::Review(failure()));
        let text = logged(
            Level::INFO,
            &[settled(&notice, &reject, Settled::Dead), settled(&notice, &review, Settled::Review)],
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        for (line, says) in lines.iter().zip(["is a dead letter", "until a person has looked"]) {
            assert!(line.contains("WARN") && line.contains(says), "{line}");
            for field in ["namespace=session", "route=main", r#"kind="cleanup""#, "attempt=3", r#"stage="verify""#] {
                assert!(line.contains(field), "no {field} in {line}");
            }
            assert!(line.contains(r#"class="denied""#) && line.contains(r#"summary="no\nright""#), "{line}");
            assert!(line.contains(&format!("event_id={}", notice.event_id())), "{line}");
        }
        assert!(!text.contains("secret"), "{text}");
    }

    #[test]
    fn what_a_claim_found_broken_is_warned_of_with_its_number() {
        let claimed =
            |quarantined, lapsed| Happening::Claimed { notices: 2, dropped: Dropped::default(), quarantined, lapsed };
        assert_eq!(logged(Level::INFO, &[claimed(0, 0)]), "");
        let text = logged(Level::INFO, &[claimed(4, 5)]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 2 && lines[0].contains("quarantined=4") && lines[1].contains("lapsed=5"), "{text}");
        assert!(logged(Level::DEBUG, &[claimed(0, 0)]).contains("notices=2"));
    }

    #[test]
    fn claims_that_were_lost_together_are_warned_of_in_one_line() {
        let notice = claim("secret-id", None).notice;
        let lost = [Loss::Expired, Loss::Stale].map(|loss| Happening::Lost { notice: &notice, attempt: 1, loss });
        let text = logged_by(Level::INFO, |log| {
            log.warn_of_losses();
            lost.iter().for_each(|happening| log.write(happening));
            log.warn_of_losses();
            log.warn_of_losses();
        });
        assert!(text.lines().count() == 1 && text.contains("WARN") && text.contains("lost=2"), "{text}");
    }

    #[test]
    fn a_retry_tells_its_next_attempt_to_who_looks_closely() {
        let notice = claim("a", None).notice;
        let retry = Outcome::retry_after(Duration::from_secs(1), Failure::new(Class::Timeout, "x"));
        let retried = [settled(&notice, &retry, Settled::Retry { next_attempt_at_ms: 1_796_083_200_007 })];
        assert_eq!(logged(Level::INFO, &retried), "");
        let text = logged(Level::DEBUG, &retried);
        assert!(text.contains("next_attempt_at=2026-12-01T00:00:00.007Z") && text.contains("id=a"), "{text}");
    }

    #[test]
    fn what_went_well_is_told_only_at_the_closest_look() {
        let notice = claim("a", None).notice;
        let noted = Outcome::noted("gone already");
        let done =
            [settled(&notice, &Outcome::Done, Settled::Settled), Happening::Released { notice: &notice, attempt: 1 }];
        assert_eq!(logged(Level::DEBUG, &done), "");
        assert_eq!(logged(Level::TRACE, &done).lines().count(), 2);
        let odd =
            [settled(&notice, &noted, Settled::Settled), settled(&notice, &Outcome::Superseded, Settled::Settled)];
        assert_eq!(logged(Level::INFO, &odd), "");
        let text = logged(Level::DEBUG, &odd);
        assert!(text.contains(r#"note="gone already""#) && text.contains("superseded"), "{text}");
    }

    #[test]
    fn sensitive_ids_are_told_by_their_handles_at_every_level() {
        let notice = claim("secret-session", Some(b"payload")).notice;
        let mask = IdMask::new(crate::model::IdKey::from_bytes([7; 16]));
        let handle = mask.show(&notice.id).to_string();
        let failure = || Failure::new(Class::Failed, "POST /secret-session was refused");
        let (retry, reject) = (Outcome::retry(failure()), Outcome::Reject(failure()));
        let (noted, done) = (Outcome::noted("no secret-session here"), Outcome::Done);
        let happenings = [
            settled(&notice, &retry, Settled::Retry { next_attempt_at_ms: 1 }),
            settled(&notice, &reject, Settled::Dead),
            settled(&notice, &noted, Settled::Settled),
            settled(&notice, &Outcome::Superseded, Settled::Settled),
            settled(&notice, &done, Settled::Settled),
            Happening::Released { notice: &notice, attempt: 1 },
            Happening::Voided { notice: &notice, attempt: 1, outcome: None, reason: None },
            Happening::Lost { notice: &notice, attempt: 1, loss: Loss::Stale },
        ];
        let text = logged_by(Level::TRACE, |log| {
            log.mask_ids(mask.clone());
            happenings.iter().for_each(|happening| log.write(happening));
        });
        assert!(!text.contains("secret-session") && !text.contains(&notice.id.to_base64()), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == happenings.len() && lines.iter().all(|line| line.contains(&handle)), "{handle} {text}");
    }
}
