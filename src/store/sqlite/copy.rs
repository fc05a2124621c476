//! Copying into and out of the file: pages of rows in the order of the primary keys, each written in one transaction with
//! the mark that says how far the copy has come.

mod import;

use rusqlite::Row as Stored;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::model::{Id, LeadTime, Name};
use crate::store::copy::{ArmedRow, Bookmark, CopyMark, DeliveryRow, Exported, Failed, ParkedRow, Row, Swept, fitting};
use crate::store::{Shelf, StoreError};

use super::{
    claim::bound,
    cleanup::Open,
    cursor::Lead,
    delivery::{Key, store_kind},
    desk::Desk,
    error::Fault,
    failure::Failures,
    operation::Operation,
};

/// The last row of the page before, by the key of its table.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    Armed(Vec<u8>),
    Crossed(Vec<u8>, i64),
    Open(Vec<u8>),
    /// id, expiry, kind, route
    Due(Vec<u8>, i64, i64, String),
    /// shelf, route, id, expiry, kind
    Parked(String, String, Vec<u8>, i64, i64),
}

impl Place {
    /// The beginning of the table after this one's.
    fn next_table(&self) -> Option<Self> {
        match self {
            Self::Armed(_) => Some(Self::Crossed(Vec::new(), 0)),
            Self::Crossed(..) => Some(Self::Open(Vec::new())),
            Self::Open(_) => Some(Self::Due(Vec::new(), 0, 0, String::new())),
            Self::Due(..) => Some(Self::Parked(String::new(), String::new(), Vec::new(), 0, 0)),
            Self::Parked(..) => None,
        }
    }
}

/// The rows of a page, each with its place and the bytes of its payload.
type Page = Vec<(Place, usize, Row)>;

pub(super) fn copy_mark(desk: &Desk, namespace: &Name) -> Result<Option<CopyMark>, Fault> {
    let json: Option<String> =
        desk.row("SELECT mark FROM copy WHERE name = ?1", [namespace.as_str()], |row| row.get(0))?;
    json.map(|json| read_json(desk, "the mark of a copy", &json)).transpose()
}

/// Keeps or deletes the mark; the namespace need not exist yet.
pub(super) fn set_copy_mark(desk: &Desk, namespace: &Name, mark: Option<&CopyMark>) -> Result<(), Fault> {
    match mark {
        Some(mark) => {
            let json = write_json(desk, mark)?;
            desk.run("INSERT OR REPLACE INTO copy (name, mark) VALUES (?1, ?2)", (namespace.as_str(), json))?
        }
        None => desk.run("DELETE FROM copy WHERE name = ?1", [namespace.as_str()])?,
    };
    Ok(())
}

pub(super) fn import(desk: &Desk, namespace: &Name, rows: &[Row], mark: Option<&CopyMark>) -> Result<(), Fault> {
    if !rows.is_empty() {
        let operation = Operation::begin(desk, namespace)?;
        rows.iter().try_for_each(|row| operation.import(row))?;
    }
    set_copy_mark(desk, namespace, mark)
}

impl Operation<'_> {
    pub(super) fn export(&self, after: Option<&Bookmark>, limit: u32) -> Result<Exported, Fault> {
        let limit = u64::from(limit.max(1));
        let Some(Bookmark(text)) = after else {
            let next = Some(self.bookmark(&Place::Armed(Vec::new()))?);
            return Ok(Exported { rows: self.export_cursors()?, next });
        };
        let mut place: Place = read_json(self.desk, "a bookmark", text)?;
        loop {
            let page = self.export_after(&place, limit)?;
            let count = fitting(page.iter().map(|(_, size, _)| *size));
            let is_last_of_table = count == page.len() && (page.len() as u64) < limit;
            let next = if is_last_of_table { place.next_table() } else { None };
            let mut rows = Vec::with_capacity(count);
            for (at, _, row) in page.into_iter().take(count) {
                place = at;
                rows.push(row);
            }
            let goes_on = !is_last_of_table || next.is_some();
            if let Some(next) = next {
                place = next;
            }
            if !rows.is_empty() || !goes_on {
                let next = if goes_on { Some(self.bookmark(&place)?) } else { None };
                return Ok(Exported { rows, next });
            }
        }
    }

    fn bookmark(&self, place: &Place) -> Result<Bookmark, Fault> {
        write_json(self.desk, place).map(Bookmark)
    }

    fn export_cursors(&self) -> Result<Vec<Row>, Fault> {
        let cursors = self.stored_leads()?.into_iter().map(|(lead, swept)| Row::Cursor { lead, swept });
        Ok(cursors.collect())
    }

    /// Each lead and how far its sweep has come, as it is stored.
    fn stored_leads(&self) -> Result<Vec<(LeadTime, Option<Swept>)>, Fault> {
        let read = |lead: &Lead| {
            let swept = self.desk.row(
                "SELECT expires_at, id FROM cursor WHERE namespace = ?1 AND lead = ?2",
                (self.scope.key, lead.ms),
                |row| Ok(Swept { expires_at_ms: row.get(0)?, id: row.get(1)? }),
            )?;
            Ok((LeadTime::from_millis(lead.ms)?, swept))
        };
        self.leads.iter().map(read).collect()
    }

    fn export_after(&self, place: &Place, limit: u64) -> Result<Page, Fault> {
        match place {
            Place::Armed(id) => self.export_armed(id, limit),
            Place::Crossed(id, lead) => self.export_crossed(id, *lead, limit),
            Place::Open(id) => self.export_open(id, limit),
            Place::Due(id, e, kind, route) => self.export_due((id, *e, *kind, route), limit),
            Place::Parked(shelf, route, id, e, kind) => self.export_parked((shelf, route, id, *e, *kind), limit),
        }
    }

    fn export_armed(&self, after: &[u8], limit: u64) -> Result<Page, Fault> {
        let rows = self.desk.rows(
            "SELECT armed.id, armed.expires_at, payload.bytes, every.period FROM armed
             LEFT JOIN payload ON payload.namespace = armed.namespace AND payload.id = armed.id
             LEFT JOIN every ON every.namespace = armed.namespace AND every.id = armed.id
             WHERE armed.namespace = ?1 AND armed.id > ?2 ORDER BY armed.id LIMIT ?3",
            (self.scope.key, after, bound(limit)),
            |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )?;
        let leads = self.stored_leads()?;
        let has_marks = self.desk.has("SELECT 1 FROM skip WHERE namespace = ?1", [self.scope.key])?;
        let read = |(id, expires_at_ms, payload, every): (Vec<u8>, i64, Option<Vec<u8>>, _)| {
            let silent = if has_marks { self.silent_leads(&leads, &id, expires_at_ms)? } else { Vec::new() };
            let size = payload.as_ref().map_or(0, Vec::len);
            let row = ArmedRow { id: Id::new(&*id)?, expires_at_ms, payload, every, silent };
            Ok((Place::Armed(id), size, Row::Armed(row)))
        };
        rows.into_iter().map(read).collect()
    }

    /// The leads marked silent whose sweep is still to come.
    fn silent_leads(&self, leads: &[(LeadTime, Option<Swept>)], id: &[u8], e: i64) -> Result<Vec<LeadTime>, Fault> {
        let marked = self.desk.rows(
            "SELECT lead FROM skip WHERE namespace = ?1 AND id = ?2 AND expires_at = ?3",
            (self.scope.key, id, e),
            |row| row.get::<_, i64>(0),
        )?;
        let is_ahead = |swept: &Option<Swept>| swept.as_ref().is_none_or(|swept| swept.is_before(e, id));
        let silent = leads.iter().filter(|(lead, swept)| marked.contains(&lead.as_millis()) && is_ahead(swept));
        Ok(silent.map(|(lead, _)| *lead).collect())
    }

    fn export_crossed(&self, id: &[u8], lead: i64, limit: u64) -> Result<Page, Fault> {
        let rows = self.desk.rows(
            "SELECT id, lead, until FROM crossed WHERE namespace = ?1 AND (id, lead) > (?2, ?3) ORDER BY id, lead LIMIT ?4",
            (self.scope.key, id, lead, bound(limit)),
            |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?, row.get(2)?)),
        )?;
        let read = |(id, lead, until_ms): (Vec<u8>, i64, i64)| {
            let row = Row::Crossed { lead: LeadTime::from_millis(lead)?, id: Id::new(&*id)?, until_ms };
            Ok((Place::Crossed(id, lead), 0, row))
        };
        rows.into_iter().map(read).collect()
    }

    fn export_open(&self, after: &[u8], limit: u64) -> Result<Page, Fault> {
        let rows = self.desk.rows(
            "SELECT id, kind, expires_at, recurs FROM open WHERE namespace = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
            (self.scope.key, after, bound(limit)),
            |row| Ok((row.get::<_, Vec<u8>>(0)?, Open { kind: row.get(1)?, e: row.get(2)?, recurs: row.get(3)? })),
        )?;
        let read = |(id, Open { kind, e, recurs }): (Vec<u8>, Open)| {
            let row = Row::Open { notice: self.notice(kind, e, &id)?, recurs };
            Ok((Place::Open(id), 0, row))
        };
        rows.into_iter().map(read).collect()
    }

    fn export_due(&self, after: (&[u8], i64, i64, &str), limit: u64) -> Result<Page, Fault> {
        let (id, e, kind, route) = after;
        let mut statement = self.desk.connection.prepare_cached(
            "SELECT due.id, due.expires_at, due.kind, due.route, at, hand_outs, due_at, on_set, failures, bytes FROM due
             LEFT JOIN cleanup_payload AS c
               ON c.namespace = due.namespace AND c.id = due.id AND c.expires_at = due.expires_at AND c.kind = due.kind
             WHERE due.namespace = ?1 AND (due.id, due.expires_at, due.kind, due.route) > (?2, ?3, ?4, ?5)
             ORDER BY due.id, due.expires_at, due.kind, due.route LIMIT ?6",
        )?;
        let mut rows = statement.query((self.scope.key, id, e, kind, route, bound(limit)))?;
        let mut page = Vec::new();
        while let Some(row) = rows.next()? {
            page.push(self.read_due(row)?);
        }
        Ok(page)
    }

    fn read_due(&self, row: &Stored<'_>) -> Result<(Place, usize, Row), Fault> {
        let (id, e, kind, route): (Vec<u8>, i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let (at_ms, hand_outs, due_at_ms): (i64, u8, i64) = (row.get(4)?, row.get(5)?, row.get(6)?);
        let payload: Option<Vec<u8>> = row.get(9)?;
        let size = payload.as_ref().map_or(0, Vec::len);
        let delivery = DeliveryRow {
            route: Name::new("route", &*route)?,
            notice: self.notice(kind, e, &id)?,
            // One that was put off because its class is paused became due when it became due.
            at_ms: if hand_outs == 0 { due_at_ms } else { at_ms },
            hand_outs,
            due_at_ms,
            on_set: row.get(7)?,
            failed: self.read_failed(row.get::<_, Option<String>>(8)?.as_deref())?,
            payload,
        };
        Ok((Place::Due(id, e, kind, route), size, Row::Delivery(delivery)))
    }

    fn read_failed(&self, json: Option<&str>) -> Result<Failed, Fault> {
        let Failures { failures, lapses, last } = Failures::read(self, json)?;
        Ok(Failed { failures, lapses, last })
    }

    fn export_parked(&self, after: (&str, &str, &[u8], i64, i64), limit: u64) -> Result<Page, Fault> {
        let (shelf, route, id, e, kind) = after;
        let mut statement = self.desk.connection.prepare_cached(
            "SELECT shelf, route, id, expires_at, kind, parked_at, payload, failures FROM parked
             WHERE namespace = ?1 AND (shelf, route, id, expires_at, kind) > (?2, ?3, ?4, ?5, ?6)
             ORDER BY shelf, route, id, expires_at, kind LIMIT ?7",
        )?;
        let mut rows = statement.query((self.scope.key, shelf, route, id, e, kind, bound(limit)))?;
        let mut page = Vec::new();
        while let Some(row) = rows.next()? {
            page.push(self.read_parked(row)?);
        }
        Ok(page)
    }

    fn read_parked(&self, row: &Stored<'_>) -> Result<(Place, usize, Row), Fault> {
        let (word, route, id, e, kind): (String, String, Vec<u8>, i64, i64) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
        let shelves = [Shelf::Dead, Shelf::Review];
        let shelf = shelves.into_iter().find(|shelf| shelf.as_str() == word);
        let payload: Option<Vec<u8>> = row.get(6)?;
        let size = payload.as_ref().map_or(0, Vec::len);
        let parked = ParkedRow {
            shelf: shelf.ok_or_else(|| self.odd(format!("a shelf \"{word}\"")))?,
            route: Name::new("route", &*route)?,
            notice: self.notice(kind, e, &id)?,
            parked_at_ms: row.get(5)?,
            payload,
            failed: self.read_failed(row.get::<_, Option<String>>(7)?.as_deref())?,
        };
        Ok((Place::Parked(word, route, id, e, kind), size, Row::Parked(parked)))
    }
}

/// Something stored as JSON that only this file writes.
fn read_json<T: DeserializeOwned>(desk: &Desk, what: &str, json: &str) -> Result<T, Fault> {
    serde_json::from_str(json).map_err(|error| odd(desk, format!("{what} cannot be read: {error}")))
}

fn write_json(desk: &Desk, value: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| odd(desk, error.to_string()))
}

fn odd(desk: &Desk, problem: String) -> Fault {
    StoreError::Unexpected { address: desk.path.display().to_string(), problem }.into()
}
