//! The demo's table: what was expected beside what happened.

use super::super::output;
use super::cast::{Cast, Heard};

/// One thing expected of one session, and what happened in its place.
#[derive(Debug)]
pub(super) struct Row {
    session: &'static str,
    expected: Option<&'static str>,
    happened: Option<Heard>,
}

impl Row {
    /// Whether it is what was expected, and not too early.
    pub(super) fn is_as_expected(&self) -> bool {
        let what = self.happened.as_ref().map(Heard::what);
        let early = self.happened.as_ref().is_some_and(|heard| heard.due_at_ms().is_some_and(|due| heard.at_ms < due));
        what.as_deref() == self.expected && !early
    }

    fn cells(&self) -> [String; 5] {
        let happened = self.happened.as_ref();
        let late = happened.and_then(|heard| Some(format!("{} ms", heard.at_ms - heard.due_at_ms()?)));
        [
            self.session.to_owned(),
            self.expected.unwrap_or("nothing").to_owned(),
            happened.map_or_else(|| "nothing".to_owned(), Heard::what),
            late.unwrap_or_default(),
            if self.is_as_expected() { "as expected" } else { "DIFFERS" }.to_owned(),
        ]
    }
}

/// Compares all that was heard with what the story promises.
pub(super) fn rows(cast: &Cast, heard: &[Heard]) -> Vec<Row> {
    const REMINDER: &str = "reminder 2s before expiry";
    let expected: [(&'static str, &[&'static str]); 3] = [
        (cast.anna, &[REMINDER, REMINDER]),
        (cast.ben, &[]),
        (cast.cleo, &[REMINDER, "cleanup, attempt 1", "cleanup, attempt 2"]),
    ];
    let mut rows = Vec::new();
    for (session, expected) in expected {
        let happened: Vec<_> = heard.iter().filter(|heard| heard.id == session).collect();
        // A session of which nothing is expected and nothing heard has a row to say so.
        for i in 0..expected.len().max(happened.len()).max(1) {
            let (expected, happened) = (expected.get(i).copied(), happened.get(i).map(|heard| (*heard).clone()));
            rows.push(Row { session, expected, happened });
        }
    }
    rows
}

/// The table for people.
pub(super) fn table(rows: &[Row]) -> String {
    output::table(["session", "expected", "happened", "late", ""], rows.iter().map(Row::cells))
}

#[cfg(test)]
mod tests {
    use forewarn::model::{Kind, LeadTime, Reason};

    use super::*;

    fn heard(id: &str, lead_ms: i64, attempt: u32, at_ms: i64) -> Heard {
        let lead = LeadTime::from_millis(lead_ms).map(Kind::Reminder);
        let kind = lead.unwrap_or(Kind::Cleanup(Reason::Expired));
        Heard { id: id.to_owned(), kind, attempt, expires_at_ms: 4000, at_ms }
    }

    fn story() -> Vec<Heard> {
        let cast = Cast::new();
        let mut renewed = heard(cast.anna, 2000, 1, 4001);
        renewed.expires_at_ms = 6000;
        vec![
            heard(cast.anna, 2000, 1, 2003),
            heard(cast.cleo, 2000, 1, 2004),
            renewed,
            heard(cast.cleo, 0, 1, 4002),
            heard(cast.cleo, 0, 2, 5002),
        ]
    }

    fn is_as_expected(heard: &[Heard]) -> bool {
        rows(&Cast::new(), heard).iter().all(Row::is_as_expected)
    }

    #[test]
    fn the_story_as_promised_is_as_expected() {
        assert!(is_as_expected(&story()));
        assert!(table(&rows(&Cast::new(), &story())).contains("3 ms"));
    }

    #[test]
    fn what_is_missing_too_much_or_too_early_differs() {
        for i in 0..story().len() {
            let mut missing = story();
            missing.remove(i);
            assert!(!is_as_expected(&missing), "without {i}");
            let mut early = story();
            early[i].at_ms = 1;
            assert!(!is_as_expected(&early) || early[i].attempt > 1, "early {i}");
        }
        let mut noisy = story();
        noisy.push(heard(Cast::new().ben, 2000, 1, 2003));
        assert!(!is_as_expected(&noisy));
    }
}
