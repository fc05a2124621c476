//! Writing rows of another store. Each overwrites what stands at its key.

use crate::store::copy::{ArmedRow, DeliveryRow, Failed, ParkedRow, Row};

use super::{Failures, Fault, Key, Open, Operation, store_kind};

impl Operation<'_> {
    pub(super) fn import(&self, row: &Row) -> Result<(), Fault> {
        match row {
            Row::Cursor { lead, swept: Some(swept) } => self.desk.run(
                "INSERT OR REPLACE INTO cursor (namespace, lead, expires_at, id) VALUES (?1, ?2, ?3, ?4)",
                (self.scope.key, lead.as_millis(), swept.expires_at_ms, &swept.id),
            ),
            Row::Cursor { lead, swept: None } => self
                .desk
                .run("DELETE FROM cursor WHERE namespace = ?1 AND lead = ?2", (self.scope.key, lead.as_millis())),
            Row::Armed(armed) => return self.import_armed(armed),
            Row::Crossed { lead, id, until_ms } => self.desk.run(
                "INSERT OR REPLACE INTO crossed (namespace, id, lead, until) VALUES (?1, ?2, ?3, ?4)",
                (self.scope.key, id.as_bytes(), lead.as_millis(), until_ms),
            ),
            Row::Open { notice, recurs } => {
                let open = Open { kind: store_kind(notice.kind), e: notice.expires_at_ms, recurs: *recurs };
                return self.set_open(notice.id.as_bytes(), open);
            }
            Row::Delivery(delivery) => return self.import_delivery(delivery),
            Row::Parked(parked) => return self.import_parked(parked),
            Row::Quarantined { .. } => return Err(self.odd("this store has no quarantine")),
        }?;
        Ok(())
    }

    fn import_armed(&self, armed: &ArmedRow) -> Result<(), Fault> {
        let (key, id) = (self.scope.key, armed.id.as_bytes());
        self.arm(id, armed.expires_at_ms)?;
        match &armed.payload {
            Some(bytes) => self.set_payload(id, bytes)?,
            None => self.forget_payload(id)?,
        }
        match &armed.every {
            Some(period) => {
                let period = (key, id, period);
                self.desk.run("INSERT OR REPLACE INTO every (namespace, id, period) VALUES (?1, ?2, ?3)", period)?;
            }
            None => self.forget_period(id)?,
        }
        self.desk.run("DELETE FROM skip WHERE namespace = ?1 AND id = ?2", (key, id))?;
        for lead in &armed.silent {
            self.desk.run(
                "INSERT INTO skip (namespace, id, lead, expires_at) VALUES (?1, ?2, ?3, ?4)",
                (key, id, lead.as_millis(), armed.expires_at_ms),
            )?;
        }
        Ok(())
    }

    fn import_delivery(&self, row: &DeliveryRow) -> Result<(), Fault> {
        let DeliveryRow { route, notice, at_ms, hand_outs, due_at_ms, on_set, failed, payload } = row;
        let key = Key { kind: store_kind(notice.kind), e: notice.expires_at_ms, id: notice.id.as_bytes() };
        let failures = if *failed == Failed::default() { None } else { Some(self.failures_text(failed)?) };
        self.desk.run(
            "INSERT OR REPLACE INTO due
               (namespace, id, expires_at, kind, route, at, hand_outs, claim, due_at, on_set, failures)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, ?10)",
            (self.scope.key, key.id, key.e, key.kind, route.as_str(), at_ms, hand_outs, due_at_ms, on_set, failures),
        )?;
        payload.as_ref().map_or(Ok(()), |bytes| self.set_cleanup_payload(key, bytes))
    }

    fn import_parked(&self, row: &ParkedRow) -> Result<(), Fault> {
        let ParkedRow { shelf, route, notice, parked_at_ms, payload, failed } = row;
        self.desk.run(
            "INSERT OR REPLACE INTO parked
               (namespace, shelf, route, id, expires_at, kind, parked_at, payload, failures)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            (
                self.scope.key,
                shelf.as_str(),
                route.as_str(),
                notice.id.as_bytes(),
                notice.expires_at_ms,
                store_kind(notice.kind),
                parked_at_ms,
                payload,
                self.failures_text(failed)?,
            ),
        )?;
        Ok(())
    }

    fn failures_text(&self, failed: &Failed) -> Result<String, Fault> {
        let Failed { failures, lapses, last } = failed.clone();
        Failures { failures, lapses, last }.write(self)
    }
}
