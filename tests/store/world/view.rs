//! What list, show and stats tell, against the model.

use forewarn::store::{DeliveryState, ListQuery};

use super::{World, id, same};
use crate::model::{Delivery, Place};
use crate::operation::IDS;
use crate::words::{Bytes, Kind, Notice};

fn state(delivery: &Delivery) -> DeliveryState {
    match (delivery.n, delivery.c) {
        (0, _) => DeliveryState::Ready,
        (_, 0) => DeliveryState::Waiting,
        _ => DeliveryState::Leased,
    }
}

impl World<'_> {
    pub(super) async fn check_views(&mut self) -> Result<(), String> {
        self.check_list().await?;
        self.check_stats().await?;
        for index in 0..IDS.len() as u8 {
            self.check_show(index).await?;
        }
        Ok(())
    }

    async fn check_list(&self) -> Result<(), String> {
        let listed = self.bench.store.list(&self.name, &ListQuery::default()).await;
        let listed = listed.map_err(|error| format!("list: {error}"))?;
        let told: Vec<(i64, Bytes)> =
            listed.into_iter().map(|entry| (entry.expires_at_ms, entry.id.as_bytes().to_vec())).collect();
        let mut expected: Vec<_> = self.model.armed.iter().map(|(id, e)| (*e, id.clone())).collect();
        expected.sort();
        // What is no expiry in whole milliseconds is told as near to it as a number can be.
        if expected.iter().any(|(e, _)| e.is_odd() || e.canonical() != *e || e.value().fract() != 0.0) {
            return Ok(());
        }
        let expected = expected.into_iter().map(|(e, id)| (e.floor(), id)).collect();
        same("list", &told, &expected)
    }

    async fn check_stats(&self) -> Result<(), String> {
        let stats = self.bench.store.stats(&self.name).await.map_err(|error| format!("stats: {error}"))?;
        let model = &self.model;
        let on_shelf = |place| model.parked.keys().filter(|(at, _, _)| *at == place).count() as u64;
        let told = (stats.armed, stats.overdue, stats.open, stats.dead, stats.review, stats.quarantined);
        let expected = (
            model.armed.len() as u64,
            model.armed.values().filter(|e| e.value() + model.rules.grace as f64 <= model.now as f64).count() as u64,
            model.open.len() as u64,
            on_shelf(Place::Dead),
            on_shelf(Place::Review),
            model.bad.len() as u64,
        );
        same("stats", &told, &expected)?;
        for (told, lane) in stats.routes.iter().zip(&model.lanes) {
            let queue = &model.queues[&lane.name];
            let due: Vec<i64> = queue.values().map(|delivery| delivery.at).filter(|at| *at <= model.now).collect();
            let oldest = due.iter().map(|at| model.now - at).max();
            let told = (told.route.as_str(), told.pending, told.due, told.oldest_due_ms);
            same("stats", &told, &(lane.name.as_str(), queue.len() as u64, due.len() as u64, oldest))?;
        }
        Ok(())
    }

    async fn check_show(&self, index: u8) -> Result<(), String> {
        let id = id(index);
        let view = self.bench.store.show(&self.name, &id).await.map_err(|error| format!("show: {error}"))?;
        let model = &self.model;
        let bytes = id.as_bytes();
        let armed = model.armed.get(bytes).copied();
        let open = model.open.get(bytes).map(|open| Notice::new(open.kind, open.e, bytes));
        let reminders = armed
            .into_iter()
            .flat_map(|e| model.rules.leads.iter().map(move |lead| Notice::new(Kind::Reminder(*lead), e, bytes)));
        let notices: Vec<Notice> = reminders.chain(open.clone()).collect();
        let mut expected = Vec::new();
        for lane in &model.lanes {
            for notice in &notices {
                if let Some(delivery) = model.queues[&lane.name].get(notice) {
                    let failures = model.records.get(&(lane.name.clone(), notice.clone())).cloned().unwrap_or_default();
                    expected.push((
                        lane.name.clone(),
                        notice.kind.text(),
                        state(delivery),
                        delivery.at,
                        delivery.n,
                        (failures.failures + failures.lapses).min(10) as usize,
                    ));
                }
            }
        }
        let payload = model.payloads.get(bytes).or_else(|| open.as_ref().and_then(|notice| model.moved.get(notice)));
        let Some(view) = view else {
            let unknown = armed.is_none() && open.is_none() && !model.bad.contains_key(bytes);
            return if unknown { Ok(()) } else { Err(format!("show knows nothing of {id}")) };
        };
        let mut told: Vec<_> = (view.deliveries.iter())
            .map(|delivery| {
                let kind = delivery.notice.kind.to_stored();
                let failures = delivery.failures.len();
                (delivery.route.to_string(), kind, delivery.state, delivery.at_ms, delivery.hand_outs, failures)
            })
            .collect();
        told.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        expected.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        same("the deliveries of show", &told, &expected)?;
        same("the payload of show", &view.payload.as_ref(), &payload)?;
        same("open in show", &view.open.is_some(), &open.is_some())?;
        same("the expiry of show", &view.expires_at_ms, &armed.map(|e| e.canonical().floor()))
    }
}
