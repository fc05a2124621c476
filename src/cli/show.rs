//! `show`: all that the store knows of one id, so that "there was no reminder" can be answered.
//!
//! Of a notice that was handed out and settled only a namespace with a history remembers more than the counters.

use std::time::Duration;

use clap::Args;
use forewarn::{
    ExpiresAt, Forewarn, LeadTime, Name,
    model::{IdMask, Kind, ShownId, format_span, span_ms},
    store::{Configured, DeadlineView, DeliveryState, DeliveryView, Ending, Parked, ParkedQuery, Shelf},
};
use serde::Serialize;

use super::{
    args::Reveal,
    deadline::OneArgs,
    exit::Exit,
    history::{History, HistoryJson, ending_text},
    notice::{FailureJson, NoticeJson, failure_text, notice_text},
    output::{PayloadJson, instant, instant_and_distance, payload_text, print, print_json, printable, say},
    parked::ParkedJson,
    pauses::Pauses,
};

/// Say everything about one id: expiry, reminders, deliveries, dead letters, pauses, history
///
/// Whether a reminder whose time has passed has spoken or stayed silent is known if the namespace keeps a history
/// (namespace apply --history N). An id of which nothing is known is exit 1.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    one: OneArgs,
    #[command(flatten)]
    reveal: Reveal,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Carries out `show`.
pub(super) async fn show(forewarn: &Forewarn, args: ShowArgs) -> anyhow::Result<Exit> {
    let name = args.one.namespace;
    let namespace = forewarn.namespace(name.clone());
    let mask = args.reveal.mask(&namespace).await?;
    let id = args.one.id.resolve(&namespace).await?;
    let view = namespace.show(id.as_bytes()).await?;
    let query = ParkedQuery { id: Some(id.clone()), ..ParkedQuery::default() };
    let dead = namespace.parked(Shelf::Dead, &query).await?.entries;
    let review = namespace.parked(Shelf::Review, &query).await?.entries;
    let configured = namespace.configured().await?;
    let history = match configured.settings.history {
        0 => History::default(),
        _ => History::read(&namespace, &id, view.as_ref().and_then(|view| view.expires_at_ms)).await?,
    };
    if view.is_none() && dead.is_empty() && review.is_empty() && history.is_empty() {
        let id = mask.show(&id);
        say(format_args!("{name} {id} is unknown: it is not armed and nothing of it is pending or parked"));
        return Ok(Exit::Failed);
    }
    let view = view.unwrap_or_else(|| DeadlineView {
        id,
        expires_at_ms: None,
        payload: None,
        open: None,
        quarantined: None,
        every: None,
        deliveries: Vec::new(),
    });
    let now_ms = forewarn.store().now().await?;
    let due = Due::new(&configured, &view, &history, now_ms);
    let pauses = Pauses::from(&namespace.stats().await?);
    let id = mask.show(&view.id);
    let mut shown = Shown { name, id, view, due, dead, review, pauses, history };
    shown.scrub(&mask);
    if args.json {
        print_json(&ShownJson::from(&shown))?
    } else {
        print(shown.text(now_ms))?
    }
    Ok(Exit::Done)
}

/// What there is to show.
struct Shown {
    name: Name,
    id: ShownId,
    view: DeadlineView,
    due: Due,
    dead: Vec<Parked>,
    review: Vec<Parked>,
    pauses: Pauses,
    history: History,
}

/// When the notices of an armed deadline are due.
#[derive(Default)]
struct Due {
    /// The largest lead first.
    reminders: Vec<DueReminder>,
    cleanup_at_ms: Option<i64>,
}

struct DueReminder {
    lead: LeadTime,
    at_ms: i64,
    state: DueState,
}

/// Where an instant stands, as far as the store can tell.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum DueState {
    /// Its time is still to come.
    ToCome,
    /// A delivery of it is in flight or waiting.
    Pending,
    /// It is its time, and nothing of it is pending.
    Now,
    /// Its time is over.
    Passed,
    /// It has spoken.
    Delivered,
    /// It has ended in another way, as the history says.
    Silent(#[serde(skip)] Ending),
}

impl Due {
    fn new(configured: &Configured, view: &DeadlineView, history: &History, now_ms: i64) -> Self {
        let Some(e) = view.expires_at_ms else { return Self::default() };
        let settings = &configured.settings;
        let is_pending = |lead| view.deliveries.iter().any(|one| one.notice.kind == Kind::Reminder(lead));
        let mut smaller_ms = 0;
        let mut reminders = Vec::new();
        for lead in settings.leads() {
            let at_ms = e.saturating_sub(lead.as_millis());
            let state = match (history.of_reminder(lead, e), e.saturating_sub(now_ms)) {
                _ if is_pending(lead) => DueState::Pending,
                (_, left) if left > lead.as_millis() => DueState::ToCome,
                (Some(Ending::Delivered), _) => DueState::Delivered,
                (Some(ending), _) => DueState::Silent(ending),
                (None, left) if left > smaller_ms => DueState::Now,
                (None, _) => DueState::Passed,
            };
            reminders.push(DueReminder { lead, at_ms, state });
            smaller_ms = lead.as_millis();
        }
        reminders.reverse();
        let cleanup_at_ms = settings.cleanup.then(|| e.saturating_add(span_ms(settings.grace)));
        Self { reminders, cleanup_at_ms }
    }
}

#[derive(Serialize)]
struct ShownJson<'a> {
    namespace: &'a Name,
    #[serde(flatten)]
    id: &'a ShownId,
    armed: bool,
    expires_at: Option<String>,
    reminders: Vec<DueReminderJson>,
    cleanup_at: Option<String>,
    #[serde(flatten)]
    payload: PayloadJson,
    every: Option<&'a str>,
    quarantined: Option<&'a str>,
    open: Option<NoticeJson>,
    deliveries: Vec<DeliveryJson>,
    dead: Vec<ParkedJson>,
    review: Vec<ParkedJson>,
    history: Vec<HistoryJson>,
    #[serde(flatten)]
    pauses: &'a Pauses,
}

#[derive(Serialize)]
struct DueReminderJson {
    lead_ms: i64,
    due_at: String,
    state: DueState,
}

#[derive(Debug, Serialize)]
struct DeliveryJson {
    route: String,
    #[serde(flatten)]
    notice: NoticeJson,
    state: DeliveryState,
    at: String,
    hand_outs: u8,
    failures: Vec<FailureJson>,
}

impl<'a> From<&'a Shown> for ShownJson<'a> {
    fn from(shown: &'a Shown) -> Self {
        let Shown { name, id, view, due, dead, review, pauses, history } = shown;
        let parked = |all: &[Parked]| all.iter().map(|one| ParkedJson::new(one, id.clone())).collect();
        let reminders = due.reminders.iter().map(|one| DueReminderJson {
            lead_ms: one.lead.as_millis(),
            due_at: instant(one.at_ms),
            state: one.state,
        });
        Self {
            namespace: name,
            id,
            armed: view.expires_at_ms.is_some(),
            expires_at: view.expires_at_ms.map(instant),
            reminders: reminders.collect(),
            cleanup_at: due.cleanup_at_ms.map(instant),
            payload: PayloadJson::from(view.payload.as_deref()),
            every: view.every.as_deref(),
            quarantined: view.quarantined.as_deref(),
            open: view.open.as_ref().map(NoticeJson::from),
            deliveries: view.deliveries.iter().map(DeliveryJson::from).collect(),
            dead: parked(dead),
            review: parked(review),
            history: history.json(),
            pauses,
        }
    }
}

impl From<&DeliveryView> for DeliveryJson {
    fn from(delivery: &DeliveryView) -> Self {
        Self {
            route: delivery.route.to_string(),
            notice: NoticeJson::from(&delivery.notice),
            state: delivery.state,
            at: instant(delivery.at_ms),
            hand_outs: delivery.hand_outs,
            failures: delivery.failures.iter().map(FailureJson::from).collect(),
        }
    }
}

impl Shown {
    /// Takes the id out of what handlers have said, if it is not to be shown.
    fn scrub(&mut self, mask: &IdMask) {
        let Self { view: DeadlineView { id, deliveries, .. }, dead, review, .. } = self;
        deliveries.iter_mut().for_each(|delivery| mask.scrub_failures(id, &mut delivery.failures));
        dead.iter_mut().chain(review).for_each(|parked| mask.scrub_failures(id, &mut parked.failures));
    }

    fn text(&self, now_ms: i64) -> String {
        let Self { name, id, view, due, dead, review, pauses, history } = self;
        let mut lines = vec![format!("{name} {id}")];
        let mut field = |name: &str, value: String| lines.push(format!("  {name:<13}{value}"));
        match view.expires_at_ms {
            Some(ms) => field("armed until", instant_and_distance(ms, now_ms)),
            None => field("armed", "no".to_owned()),
        }
        for reminder in &due.reminders {
            field("reminder", reminder.text(now_ms));
        }
        match due.cleanup_at_ms {
            Some(ms) => field("cleanup", instant_and_distance(ms, now_ms)),
            None if view.expires_at_ms.is_some() => field("cleanup", "never (cleanup is off)".to_owned()),
            None => {}
        }
        if let Some(payload) = &view.payload {
            field("payload", payload_text(payload));
        }
        if let Some(every) = &view.every {
            let period = every.parse().map(|ms| format_span(Duration::from_millis(ms)));
            field("every", period.unwrap_or_else(|_| printable(every)));
        }
        if let Some(score) = &view.quarantined {
            let is_expiry = score.parse().is_ok_and(|ms| ExpiresAt::from_millis(ms).is_ok());
            let score = printable(score);
            field(
                "quarantined",
                match is_expiry {
                    true => "it matches none of the namespace's key patterns".to_owned(),
                    false => format!("its score {score} cannot be an expiry in milliseconds"),
                },
            );
        }
        if let Some(open) = &view.open {
            field("open", notice_text(open));
        }
        for delivery in &view.deliveries {
            field("delivery", delivery_text(delivery, now_ms));
            for failure in &delivery.failures {
                field("", format!("  {}", failure_text(failure, now_ms)));
            }
        }
        for (shelf, parked) in
            dead.iter().map(|one| ("dead letter", one)).chain(review.iter().map(|one| ("review", one)))
        {
            let (notice, route) = (notice_text(&parked.notice), &parked.route);
            let at = instant_and_distance(parked.parked_at_ms, now_ms);
            field(shelf, format!("{} {notice} on route {route}: parked {at}", parked.event_id()));
            if let Some(failure) = parked.failures.last() {
                field("", format!("  {}", failure_text(failure, now_ms)));
            }
        }
        for entry in history.texts(now_ms) {
            field("history", entry);
        }
        for paused in pauses.texts() {
            field("paused", paused);
        }
        lines.join("\n")
    }
}

impl DueReminder {
    fn text(&self, now_ms: i64) -> String {
        let at = instant_and_distance(self.at_ms, now_ms);
        match self.state {
            DueState::ToCome => format!("{} before, to come at {at}", self.lead),
            DueState::Pending => format!("{} before, pending: see delivery", self.lead),
            DueState::Now => {
                format!("{} before, its time came {at}: it has spoken, stays silent or is not claimed yet", self.lead)
            }
            DueState::Passed => format!("{} before, its time has passed, it was {at}", self.lead),
            DueState::Delivered => format!("{} before, delivered, its time came {at}", self.lead),
            DueState::Silent(ending) => format!("{} before, {}", self.lead, ending_text(ending)),
        }
    }
}

fn delivery_text(delivery: &DeliveryView, now_ms: i64) -> String {
    let state = match delivery.state {
        DeliveryState::Ready => "ready since",
        DeliveryState::Waiting => "waiting until",
        DeliveryState::Leased => "leased until",
    };
    let at = instant_and_distance(delivery.at_ms, now_ms);
    let (route, notice, outs) = (&delivery.route, notice_text(&delivery.notice), delivery.hand_outs);
    format!("{notice} on route {route}: {state} {at}, hand-outs {outs}")
}
