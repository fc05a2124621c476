//! How far the sweeps of all shards have come, as one place for each lead.
//!
//! That place is the lowest of all. What a shard has swept beyond it would be met again: it travels with the mark that keeps
//! the lead silent. Expiries with a fraction are cut, so a place among such is put before them.

use redis::Pipeline;

use crate::model::LeadTime;
use crate::store::StoreError;
use crate::store::copy::{Row, Swept};

use super::super::{
    RedisStore,
    codec::{Reader, unreadable},
    keys,
    scope::Scope,
};
use super::read::{Scored, whole_ms};

/// The sweeps of a namespace.
pub(super) struct Sweeps(Vec<Sweep>);

struct Sweep {
    lead: LeadTime,
    /// How far each shard has come.
    stands: Vec<Stand>,
    /// What is said of all shards together.
    lowest: Option<Swept>,
}

/// A cursor as it is stored: everything up to this score is swept, or up to this member of it.
struct Stand {
    score: f64,
    member: Option<Vec<u8>>,
}

impl Stand {
    fn read(reader: Reader<'_>, stored: Option<Vec<u8>>) -> Result<Self, StoreError> {
        let Some(stored) = stored else { return Ok(Self { score: f64::NEG_INFINITY, member: None }) };
        let mut parts = stored.splitn(2, |byte| *byte == b' ');
        let score = parts.next().and_then(|score| std::str::from_utf8(score).ok()?.parse().ok());
        let score = score.ok_or_else(|| reader.odd(unreadable("cursor", &stored)))?;
        Ok(Self { score, member: parts.next().map(<[u8]>::to_vec) })
    }

    fn has_met(&self, entry: &Scored) -> bool {
        entry.score < self.score
            || entry.score.total_cmp(&self.score).is_eq()
                && self.member.as_ref().is_none_or(|member| entry.member <= *member)
    }

    /// The same in whole milliseconds, but no further than what is still to be met will be after the cut.
    fn cut(&self, has_fractions: bool) -> Option<Swept> {
        if self.score == f64::NEG_INFINITY {
            return None;
        }
        let expires_at_ms = whole_ms(self.score);
        Some(if has_fractions {
            Swept { expires_at_ms: expires_at_ms - 1, id: None }
        } else {
            Swept { expires_at_ms, id: self.member.clone() }
        })
    }
}

impl Sweeps {
    pub(super) fn leads(&self) -> Vec<LeadTime> {
        self.0.iter().map(|sweep| sweep.lead).collect()
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        self.0.iter().map(|sweep| Row::Cursor { lead: sweep.lead, swept: sweep.lowest.clone() }).collect()
    }

    /// The leads that are still to meet an entry by the place said of all shards, and have to stay silent then: they have met
    /// it, or it is marked so.
    pub(super) fn silent(
        &self,
        shard: u16,
        entry: &Scored,
        expires_at_ms: i64,
        is_marked: impl Fn(usize) -> bool,
    ) -> Vec<LeadTime> {
        let is_silent = |(place, sweep): &(usize, &Sweep)| {
            let is_ahead = sweep.lowest.as_ref().is_none_or(|lowest| lowest.is_before(expires_at_ms, &entry.member));
            let has_met = sweep.stands.get(usize::from(shard)).is_some_and(|stand| stand.has_met(entry));
            is_ahead && (has_met || is_marked(*place))
        };
        self.0.iter().enumerate().filter(is_silent).map(|(_, sweep)| sweep.lead).collect()
    }
}

impl RedisStore {
    pub(super) async fn read_sweeps(&self, scope: &Scope) -> Result<Sweeps, StoreError> {
        let reader = self.reader(&scope.namespace);
        let leads = scope.settings().leads();
        if leads.is_empty() {
            return Ok(Sweeps(Vec::new()));
        }
        let mut pipeline = Pipeline::new();
        for keys in &scope.keys {
            let read = pipeline.cmd("HMGET").arg(&keys[keys::CUR]);
            for lead in &leads {
                read.arg(lead.as_millis());
            }
        }
        let mut stands: Vec<Vec<Stand>> = leads.iter().map(|_| Vec::new()).collect();
        for cursors in self.0.connection.pipeline(&pipeline).await? {
            for (stands, stored) in stands.iter_mut().zip(reader.list(cursors)?) {
                stands.push(Stand::read(reader, reader.bytes(stored)?)?);
            }
        }
        let fractions = self.count_fractions(scope, &stands).await?;
        let sweeps = leads.into_iter().zip(stands).zip(fractions).map(|((lead, stands), fractions)| {
            let cut = stands.iter().zip(fractions).map(|(stand, has_fractions)| stand.cut(has_fractions));
            let lowest = cut.min_by(is_lower).flatten();
            Sweep { lead, stands, lowest }
        });
        Ok(Sweeps(sweeps.collect()))
    }

    /// For each lead and each shard whether expiries lie between the millisecond of the cursor and the next.
    async fn count_fractions(&self, scope: &Scope, stands: &[Vec<Stand>]) -> Result<Vec<Vec<bool>>, StoreError> {
        let reader = self.reader(&scope.namespace);
        let mut pipeline = Pipeline::new();
        for stands in stands {
            for (stand, keys) in stands.iter().zip(&scope.keys) {
                let low = if stand.score.is_finite() { stand.score.floor() } else { 0.0 };
                pipeline.cmd("ZCOUNT").arg(&keys[keys::EXP]).arg(format!("({low}")).arg(format!("({}", low + 1.0));
            }
        }
        let mut counts = self.0.connection.pipeline(&pipeline).await?.into_iter();
        let mut read = |_: &Stand| Ok(reader.count(counts.next().unwrap_or_default())? > 0);
        stands.iter().map(|stands| stands.iter().map(&mut read).collect()).collect()
    }
}

/// A place that is said of nothing is the lowest; one without an id stands after all of its instant.
fn is_lower(a: &Option<Swept>, b: &Option<Swept>) -> std::cmp::Ordering {
    let key = |swept: &Option<Swept>| {
        swept.as_ref().map(|Swept { expires_at_ms, id }| (*expires_at_ms, id.is_none(), id.clone()))
    };
    key(a).cmp(&key(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swept(expires_at_ms: i64, id: Option<&str>) -> Option<Swept> {
        Some(Swept { expires_at_ms, id: id.map(|id| id.as_bytes().to_vec()) })
    }

    fn entry(score: f64, member: &str) -> Scored {
        Scored { member: member.as_bytes().to_vec(), score, text: score.to_string() }
    }

    #[test]
    fn the_lowest_place_is_the_one_that_has_met_least() {
        let ascending = [None, swept(9, None), swept(10, Some("a")), swept(10, Some("b")), swept(10, None)];
        for pair in ascending.windows(2) {
            assert!(is_lower(&pair[0], &pair[1]).is_lt(), "{pair:?}");
        }
    }

    #[test]
    fn a_place_among_fractions_is_put_before_them() {
        let stand = |score, member: Option<&str>| Stand { score, member: member.map(|id| id.as_bytes().to_vec()) };
        assert_eq!(stand(10.0, Some("m")).cut(false), swept(10, Some("m")));
        assert_eq!(stand(10.0, Some("m")).cut(true), swept(9, None));
        assert_eq!(stand(10.5, Some("m")).cut(true), swept(9, None));
        assert_eq!(stand(f64::NEG_INFINITY, None).cut(true), None);
    }

    #[test]
    fn what_only_one_shard_has_met_is_silent() {
        let stand = |score| Stand { score, member: None };
        let lead = LeadTime::from_millis(5).unwrap();
        let sweeps = Sweeps(vec![Sweep { lead, stands: vec![stand(10.0), stand(12.0)], lowest: swept(10, None) }]);
        let silent =
            |shard, score, is_marked: bool| !sweeps.silent(shard, &entry(score, "a"), 11, |_| is_marked).is_empty();
        assert!(silent(1, 11.0, false) && !silent(0, 11.0, false) && silent(0, 11.0, true));
    }
}
