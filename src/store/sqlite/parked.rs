//! Dead letters and reviews: list, put back, delete.

use crate::model::{Id, Name, Notice};
use crate::store::{Parked, ParkedPage, ParkedQuery, Requeued, Shelf, notation::write_notice};

use super::{
    cleanup::Open,
    delivery::{EXPIRED, Key, store_kind},
    error::Fault,
    failure::Failures,
    operation::Operation,
};

impl Operation<'_> {
    pub(super) fn parked(&self, shelf: Shelf, query: &ParkedQuery) -> Result<ParkedPage, Fault> {
        let limit = usize::try_from(if query.limit == 0 { 100 } else { query.limit }).unwrap_or(usize::MAX);
        let mut to_skip = query.offset;
        let total = self.desk.one(
            "SELECT COUNT(*) FROM parked WHERE namespace = ?1 AND shelf = ?2",
            (self.scope.key, shelf.as_str()),
            |row| row.get(0),
        )?;
        let mut page = ParkedPage { entries: Vec::new(), total };
        let mut statement = self.desk.connection.prepare_cached(
            "SELECT route, kind, expires_at, id, parked_at, payload, failures FROM parked
             WHERE namespace = ?1 AND shelf = ?2 AND (?3 IS NULL OR route = ?3) AND (?4 IS NULL OR id = ?4)
             ORDER BY parked_at, route, id, expires_at, kind",
        )?;
        let route = query.route.as_ref().map(Name::as_str);
        let id = query.id.as_ref().map(Id::as_bytes);
        let mut rows = statement.query((self.scope.key, shelf.as_str(), route, id))?;
        while page.entries.len() < limit
            && let Some(row) = rows.next()?
        {
            let id = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
            let notice = self.notice(row.get(1)?, row.get(2)?, id)?;
            if query.event_id.is_some_and(|wanted| wanted != notice.event_id()) {
                continue;
            }
            if to_skip > 0 {
                to_skip -= 1;
                continue;
            }
            let route = Name::new("route", row.get::<_, String>(0)?)?;
            let failures = Failures::read(self, row.get::<_, Option<String>>(6)?.as_deref())?;
            page.entries.push(Parked {
                key: key_of(&route, &notice),
                route,
                notice,
                parked_at_ms: row.get(4)?,
                payload: row.get(5)?,
                failures: failures.last,
            });
        }
        Ok(page)
    }

    pub(super) fn requeue(&mut self, shelf: Shelf, parked: &[Parked]) -> Result<Vec<Requeued>, Fault> {
        let answers = parked.iter().map(|parked| self.requeue_one(shelf, parked)).collect::<Result<_, _>>()?;
        self.wake()?;
        Ok(answers)
    }

    fn requeue_one(&mut self, shelf: Shelf, parked: &Parked) -> Result<Requeued, Fault> {
        let (route, notice) = (&parked.route, &parked.notice);
        let key = Key { kind: store_kind(notice.kind), e: notice.expires_at_ms, id: notice.id.as_bytes() };
        let stored: Option<Option<Vec<u8>>> = self.desk.row(
            "SELECT payload FROM parked WHERE namespace = ?1 AND shelf = ?2 AND route = ?3
               AND id = ?4 AND expires_at = ?5 AND kind = ?6",
            (self.scope.key, shelf.as_str(), route.as_str(), key.id, key.e, key.kind),
            |row| row.get(0),
        )?;
        let Some(payload) = stored else { return Ok(Requeued::Unknown) };
        if self.scope.lane(route).is_err() {
            return Ok(Requeued::NoRoute);
        }
        let (armed, open) = (self.armed(key.id)?, self.open_of(key.id)?);
        let is_void = if key.is_cleanup() {
            !self.scope.delivers && (armed.is_some() || open.is_some())
        } else {
            self.reason_to_drop(key, armed, open).is_some()
        };
        if is_void {
            return Ok(Requeued::Superseded);
        }
        if key.is_cleanup() {
            if armed.is_none() && open.is_none() {
                self.set_open(key.id, Open { kind: key.kind, e: key.e, recurs: false })?;
            }
            if let Some(bytes) = payload {
                self.set_cleanup_payload(key, &bytes)?;
            }
        }
        // It was due when it was due: the lateness it will be sent with stays honest.
        let at = match key.kind {
            EXPIRED => self.now.min(key.e + self.scope.grace_ms),
            lead if lead > EXPIRED => key.e - lead,
            _ => self.now,
        };
        // One that is in flight again already stays as it is.
        self.add_new(route.as_str(), key, at, 0, at)?;
        self.forget_parked(shelf, parked)?;
        self.comes_due(self.now);
        Ok(Requeued::Requeued)
    }

    pub(super) fn discard(&self, shelf: Shelf, parked: &[Parked]) -> Result<Vec<bool>, Fault> {
        parked.iter().map(|parked| self.forget_parked(shelf, parked)).collect()
    }

    /// Answers whether it was there.
    fn forget_parked(&self, shelf: Shelf, parked: &Parked) -> Result<bool, Fault> {
        let Parked { route, notice, .. } = parked;
        let deleted = self.desk.run(
            "DELETE FROM parked WHERE namespace = ?1 AND shelf = ?2 AND route = ?3
               AND id = ?4 AND expires_at = ?5 AND kind = ?6",
            (
                self.scope.key,
                shelf.as_str(),
                route.as_str(),
                notice.id.as_bytes(),
                notice.expires_at_ms,
                store_kind(notice.kind),
            ),
        )?;
        Ok(deleted == 1)
    }
}

/// The name of a parked notice: its route and itself.
fn key_of(route: &Name, notice: &Notice) -> Vec<u8> {
    let mut key = format!("{route}:").into_bytes();
    key.extend(write_notice(notice));
    key
}
