//! The sweep cursors: how far each lead has come.

use super::{desk::Desk, error::Fault, operation::Operation, scope::Scope};

/// One lead time and its sweep.
#[derive(Debug, Clone)]
pub(super) struct Lead {
    pub(super) ms: i64,
    /// The next smaller lead; 0 if there is none.
    pub(super) next: i64,
    /// Everything up to and including (score, member) is swept; without a member everything up to score.
    pub(super) score: i64,
    pub(super) member: Option<Vec<u8>>,
    /// The score as it is stored.
    pub(super) stored: i64,
    /// The clock stepped back, and the cursor with it.
    pub(super) rewound: bool,
}

/// The cursor of a sweep that has not begun.
pub(super) const NOTHING: i64 = i64::MIN;

impl Lead {
    /// The leads of a namespace, ascending, each where its sweep stands at `now`.
    pub(super) fn load_all(desk: &Desk, scope: &Scope, now: i64) -> Result<Vec<Self>, Fault> {
        let mut next = 0;
        let mut leads = Vec::with_capacity(scope.leads.len());
        for ms in scope.leads.iter().copied() {
            leads.push(Self { ms, next, score: NOTHING, member: None, stored: NOTHING, rewound: false });
            next = ms;
        }
        let cursors =
            desk.rows("SELECT lead, expires_at, id FROM cursor WHERE namespace = ?1", [scope.key], |row| {
                Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?))
            })?;
        for (ms, score, member) in cursors {
            if let Some(lead) = leads.iter_mut().find(|lead| lead.ms == ms) {
                (lead.score, lead.stored, lead.member) = (score, score, member);
            }
        }
        for lead in &mut leads {
            if lead.score > now + lead.ms + scope.tolerance_ms {
                (lead.score, lead.member, lead.rewound) = (now + lead.next, None, true);
            }
        }
        Ok(leads)
    }

    /// Whether the sweep is still to meet (e, id).
    pub(super) fn is_ahead(&self, e: i64, id: &[u8]) -> bool {
        e > self.score || e == self.score && self.member.as_deref().is_some_and(|member| id > member)
    }

    /// The place after which the sweep goes on, for `(expires_at, id) > (?, ?)`. No id is empty, so that an empty one
    /// stands before all of its instant.
    pub(super) fn place(&self) -> (i64, &[u8]) {
        match &self.member {
            Some(member) => (self.score, member),
            None => (self.score.saturating_add(1), &[]),
        }
    }
}

impl Operation<'_> {
    pub(super) fn save_cursor(&self, lead: &Lead) -> Result<(), Fault> {
        if lead.score == NOTHING {
            return Ok(());
        }
        self.desk.run(
            "INSERT INTO cursor (namespace, lead, expires_at, id) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET expires_at = excluded.expires_at, id = excluded.id",
            (self.scope.key, lead.ms, lead.score, &lead.member),
        )?;
        Ok(())
    }

    /// C4: what the clock's step back has rewound stays so.
    pub(super) fn save_rewound(&self) -> Result<(), Fault> {
        self.leads.iter().filter(|lead| lead.rewound).try_for_each(|lead| self.save_cursor(lead))
    }
}
