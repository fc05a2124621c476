//! Settings and routes: reading, changing, previewing, pausing, forgetting (C5, C6, R0, R1).

use std::sync::Arc;

use crate::model::{FirstStart, Invalid, LeadTime, Name, Pause, Paused, Settings};
use crate::store::{Applied, Change, Configured, Preview, Registered, StoreError, plan};

use super::{
    copy::set_copy_mark,
    cursor::Lead,
    delivery::{EXPIRED, Key},
    desk::Desk,
    error::Fault,
    operation::{Operation, Stored},
    scope::Scope,
};

pub(super) fn namespaces(desk: &Desk) -> Result<Vec<Registered>, Fault> {
    let names = desk.rows("SELECT name FROM namespace ORDER BY name", [], |row| row.get::<_, String>(0))?;
    let registered = |name| {
        let name = Name::new("namespace", name)?;
        let shards = configured(desk, &name)?.settings.shards;
        Ok(Registered { name, shards })
    };
    names.into_iter().map(registered).collect()
}

pub(super) fn configured(desk: &Desk, namespace: &Name) -> Result<Arc<Configured>, Fault> {
    let unconfigured = || StoreError::Unconfigured { namespace: namespace.clone() };
    Ok(present(desk, namespace)?.ok_or_else(unconfigured)?)
}

fn present(desk: &Desk, namespace: &Name) -> Result<Option<Arc<Configured>>, Fault> {
    let Some(stored) = Stored::read(desk, namespace)? else { return Ok(None) };
    let scope = stored.scope(desk, namespace)?;
    // Pauses come and go under the same version.
    let configured = Configured { paused: stored.paused, ..Configured::clone(&scope.configured) };
    Ok(Some(Arc::new(configured)))
}

pub(super) fn configure(desk: &Desk, namespace: &Name, change: &Change) -> Result<Applied, Fault> {
    change.settings.as_ref().map_or(Ok(()), check)?;
    let present = present(desk, namespace)?;
    let (settings, routes) = plan::merge(namespace, change, present.as_deref())?;
    if let Some(present) = &present
        && present.settings == settings
        && present.routes == routes
    {
        return Ok(Applied { created: false, changed: false, configured: Arc::clone(present) });
    }
    let json = |result: Result<String, serde_json::Error>| {
        result.map_err(|error| desk.odd(format!("the settings of {namespace} cannot be written: {error}")))
    };
    let row = (
        namespace.as_str(),
        format!("{:016x}", fastrand::u64(..)),
        json(serde_json::to_string(&settings))?,
        json(serde_json::to_string(&routes))?,
        plan::id_key(change, present.as_deref())?.to_hex(),
    );
    desk.run(
        "INSERT INTO namespace (name, version, settings, routes, id_key) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (name) DO UPDATE SET version = excluded.version, settings = excluded.settings,
         routes = excluded.routes",
        row,
    )?;
    let mut operation = Operation::begin(desk, namespace)?;
    operation.begin_leads(present.as_deref(), change.first_start)?;
    if let Some(present) = &present {
        for route in present.routes.iter().filter(|old| !routes.iter().any(|new| new.name == old.name)) {
            operation.drop_route(&route.name)?;
        }
    }
    for route in &routes {
        desk.run(
            "INSERT OR IGNORE INTO route (namespace, name) VALUES (?1, ?2)",
            (operation.scope.key, route.name.as_str()),
        )?;
    }
    operation.comes_due(operation.now);
    operation.wake()?;
    let configured = configured(desk, namespace)?;
    Ok(Applied { created: present.is_none(), changed: true, configured })
}

/// Refuses settings that cannot work, or not here.
fn check(settings: &Settings) -> Result<(), Invalid> {
    if settings.key_backed {
        let problem = "cannot be had in a file, which holds no keys with a time to live of their own; \
                       keep such a namespace in Redis, with --store redis://HOST";
        return Err(Invalid::new("key_backed", problem));
    }
    settings.check()
}

pub(super) fn preview(desk: &Desk, namespace: &Name, change: &Change) -> Result<Preview, Fault> {
    change.settings.as_ref().map_or(Ok(()), check)?;
    let present = present(desk, namespace)?;
    let (settings, routes) = plan::merge(namespace, change, present.as_deref())?;
    let created = present.is_none();
    let changed = present.as_ref().is_none_or(|present| present.settings != settings || present.routes != routes);
    let key = Stored::read(desk, namespace)?.map_or(NO_KEY, |stored| stored.key);
    let (version, paused) = (String::new(), Paused::default());
    let planned = Configured { version, settings, routes, paused, id_key: None };
    let scope = Arc::new(Scope::new(key, namespace, Arc::new(planned)));
    let now = desk.clock.now_ms();
    let leads = Lead::load_all(desk, &scope, now)?;
    let mut operation = Operation { desk, scope, now, leads, paused: Paused::default(), claims: 0, earliest: None };
    operation.plan_leads(present.as_deref(), change.first_start)?;
    let mut reminders = Vec::with_capacity(operation.leads.len());
    for mut lead in operation.leads.clone() {
        let low = now + lead.next;
        if lead.score <= low {
            (lead.score, lead.member) = (low, None);
        }
        let count = operation.count_between(&lead, now + lead.ms, u64::MAX)?;
        reminders.push((LeadTime::from_millis(lead.ms)?, count));
    }
    let cleanups = if operation.scope.settings().cleanup { operation.count_overdue(u64::MAX)? } else { 0 };
    Ok(Preview { created, changed, reminders, cleanups })
}

/// How far a sweep has come: an expiry, and the id within it if it is not swept whole.
type Swept = (i64, Option<Vec<u8>>);

/// No namespace has this key.
const NO_KEY: i64 = -1;

/// Everything that names a namespace.
const FORGET: &[&str] = &[
    "DELETE FROM armed WHERE namespace = ?1",
    "DELETE FROM payload WHERE namespace = ?1",
    "DELETE FROM cleanup_payload WHERE namespace = ?1",
    "DELETE FROM every WHERE namespace = ?1",
    "DELETE FROM cursor WHERE namespace = ?1",
    "DELETE FROM skip WHERE namespace = ?1",
    "DELETE FROM crossed WHERE namespace = ?1",
    "DELETE FROM due WHERE namespace = ?1",
    "DELETE FROM open WHERE namespace = ?1",
    "DELETE FROM parked WHERE namespace = ?1",
    "DELETE FROM counter WHERE namespace = ?1",
    "DELETE FROM history WHERE namespace = ?1",
    "DELETE FROM catch_up WHERE namespace = ?1",
    "DELETE FROM observer WHERE namespace = ?1",
    "DELETE FROM handed WHERE namespace = ?1",
    "DELETE FROM route WHERE namespace = ?1",
    "DELETE FROM namespace WHERE key = ?1",
];

pub(super) fn forget(desk: &Desk, namespace: &Name) -> Result<bool, Fault> {
    let Some(stored) = Stored::read(desk, namespace)? else { return Ok(false) };
    for delete in FORGET {
        desk.run(delete, [stored.key])?;
    }
    set_copy_mark(desk, namespace, None)?;
    desk.scopes.borrow_mut().remove(namespace);
    Ok(true)
}

impl Operation<'_> {
    pub(super) fn pause(&mut self, pause: &Pause) -> Result<(), Fault> {
        if let Some(route) = &pause.route {
            self.scope.lane(route)?;
        }
        let since = pause.paused.then_some(self.now);
        let params = (self.scope.key, since, pause.reminders, pause.cleanups);
        match &pause.route {
            None => self.desk.run(
                "UPDATE namespace SET reminders_paused_at = iif(?3, ?2, reminders_paused_at),
                   cleanups_paused_at = iif(?4, ?2, cleanups_paused_at) WHERE key = ?1",
                params,
            )?,
            Some(route) => self.desk.run(
                "UPDATE route SET reminders_paused_at = iif(?3, ?2, reminders_paused_at),
                   cleanups_paused_at = iif(?4, ?2, cleanups_paused_at) WHERE namespace = ?1 AND name = ?5",
                (params.0, params.1, params.2, params.3, route.as_str()),
            )?,
        };
        self.set_limits(pause)?;
        if !pause.paused {
            self.comes_due(self.now);
        }
        self.wake()
    }

    /// Brings cursors, marks and queues from the old leads to those of this operation.
    fn begin_leads(&mut self, present: Option<&Configured>, first_start: FirstStart) -> Result<(), Fault> {
        let key = self.scope.key;
        if self.scope.settings().history == 0 {
            self.desk.run("DELETE FROM history WHERE namespace = ?1", [key])?;
        }
        let removed = self.plan_leads(present, first_start)?;
        self.leads.iter().try_for_each(|lead| self.save_cursor(lead))?;
        for lead in removed {
            self.remember_all_of(lead)?;
            for delete in [
                "DELETE FROM cursor WHERE namespace = ?1 AND lead = ?2",
                "DELETE FROM skip WHERE namespace = ?1 AND lead = ?2",
                "DELETE FROM crossed WHERE namespace = ?1 AND lead = ?2",
                "DELETE FROM due WHERE namespace = ?1 AND kind = ?2",
            ] {
                self.desk.run(delete, (key, lead))?;
            }
        }
        Ok(())
    }

    /// Puts the cursors of leads that are new where they begin (C5, C6). Answers the leads that go.
    fn plan_leads(&mut self, present: Option<&Configured>, first_start: FirstStart) -> Result<Vec<i64>, Fault> {
        let old = present.map(|present| present.settings.leads()).unwrap_or_default();
        let old: Vec<i64> = old.iter().map(|lead| lead.as_millis()).collect();
        let gone: Vec<i64> = old.iter().copied().filter(|old| !self.scope.leads.contains(old)).collect();
        let now = self.now;
        for place in 0..self.leads.len() {
            let ms = self.leads[place].ms;
            if old.contains(&ms) {
                continue;
            }
            let edge = (now + ms, None);
            let nearest = gone.iter().copied().filter(|gone| *gone < ms).max();
            let begin = match (present, nearest) {
                (None, _) if first_start == FirstStart::Silent => Some(edge),
                (None, _) => None,
                (Some(_), None) => Some(edge),
                // Where the nearest smaller lead that goes has come to, at most its own edge.
                (Some(_), Some(nearest)) => {
                    let stood = self.stored_cursor(nearest)?;
                    stood.map(|(score, member)| if score >= edge.0 { edge } else { (score, member) })
                }
            };
            if let Some((score, member)) = begin {
                (self.leads[place].score, self.leads[place].member) = (score, member);
            }
        }
        Ok(gone)
    }

    fn stored_cursor(&self, lead: i64) -> Result<Option<Swept>, Fault> {
        self.desk.row(
            "SELECT expires_at, id FROM cursor WHERE namespace = ?1 AND lead = ?2",
            (self.scope.key, lead),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    /// Settles the cleanups of a route that goes, and deletes its queue.
    fn drop_route(&mut self, route: &Name) -> Result<(), Fault> {
        let rows: Vec<(i64, i64, Vec<u8>)> = self.desk.rows(
            "SELECT kind, expires_at, id FROM due WHERE namespace = ?1 AND route = ?2 AND kind <= ?3",
            (self.scope.key, route.as_str(), EXPIRED),
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        let name = (self.scope.key, route.as_str());
        self.desk.run("DELETE FROM due WHERE namespace = ?1 AND route = ?2", name)?;
        for (kind, e, id) in rows {
            let open = self.open_of(&id)?;
            self.close_if_last(Key { kind, e, id: &id }, open)?;
        }
        self.desk.run("DELETE FROM catch_up WHERE namespace = ?1 AND route = ?2", name)?;
        self.desk.run("DELETE FROM route WHERE namespace = ?1 AND name = ?2", name)?;
        Ok(())
    }
}
