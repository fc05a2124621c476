//! `tail`: what is handed out, as it happens. Observes, claims nothing.

use std::{collections::HashSet, time::Duration};

use clap::Args;
use forewarn::{
    Forewarn, Name, StoreError,
    model::{Event, HandOut, IdMask, format_span},
    store::Handed,
};
use futures::StreamExt as _;
use serde::Serialize;
use tokio::{sync::mpsc, time::interval};

use super::{
    args,
    exit::Exit,
    notice::notice_text,
    output::{instant, print, print_json, say},
    signals::Signals,
};

/// Watch notices as they are handed out, by whatever worker, on any route
///
/// Claims nothing and keeps nobody from anything. Shows what happens from now on, repeats too; what was handed out while the
/// connection was lost is not shown, and that is said. Ends with Ctrl-C.
#[derive(Debug, Args)]
pub(super) struct TailArgs {
    /// The namespace; all if not given
    #[arg(value_name = "NS", value_parser = args::namespace)]
    namespace: Option<Name>,
    /// Only what is handed out on this route
    #[arg(long, value_name = "NAME", value_parser = args::route)]
    route: Option<Name>,
    /// Print each as one line of CloudEvents JSON, with its route
    #[arg(long)]
    json: bool,
    /// Show ids that are secrets
    #[arg(long)]
    reveal: bool,
}

#[derive(Debug, Serialize)]
struct Watched<'a> {
    #[serde(flatten)]
    event: Event,
    route: &'a Name,
}

/// Carries out `tail`.
pub(super) async fn tail(forewarn: &Forewarn, args: TailArgs) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen()?;
    let (tell, mut told) = mpsc::channel(1024);
    let mut watched = HashSet::new();
    let mut looks = interval(Duration::from_secs(2));
    loop {
        tokio::select! {
            () = signals.next() => return Ok(Exit::Done),
            _ = looks.tick() => {
                let names = match &args.namespace {
                    Some(name) => vec![name.clone()],
                    // New ones may come.
                    None => match forewarn.namespaces().await {
                        Ok(all) => all.into_iter().map(|registered| registered.name).collect(),
                        Err(StoreError::Unavailable { .. }) if !watched.is_empty() => Vec::new(),
                        Err(error) => return Err(error.into()),
                    },
                };
                for name in names {
                    if watched.insert(name.clone()) {
                        let mask = match forewarn.namespace(name.as_str()).id_mask().await {
                            Ok(_) if args.reveal => IdMask::none(),
                            mask => mask?,
                        };
                        tokio::spawn(watch(forewarn.clone(), name, mask, tell.clone()));
                    }
                }
            }
            Some((handed, mask)) = told.recv() => {
                if args.route.as_ref().is_none_or(|route| *route == handed.route) {
                    show(&handed, &mask, args.json)?;
                }
            }
        }
    }
}

/// Watches one namespace, and again whenever it is cut off.
async fn watch(forewarn: Forewarn, name: Name, mask: IdMask, tell: mpsc::Sender<(Handed, IdMask)>) {
    let namespace = forewarn.namespace(name.as_str());
    let mut is_told = false;
    loop {
        match namespace.feed().await {
            Ok(mut feed) => {
                match std::mem::take(&mut is_told) {
                    true => say(format_args!("{name}: watching again; what was handed out meanwhile is not shown")),
                    false => say(format_args!("{name}: watching")),
                }
                while let Some(handed) = feed.next().await {
                    match handed {
                        Ok(handed) => {
                            if tell.send((handed, mask.clone())).await.is_err() {
                                return;
                            }
                        }
                        Err(error) => say(format_args!("{name}: a hand-out could not be read: {error}")),
                    }
                }
            }
            Err(error) if !is_told => say(format_args!("{name}: {error}")),
            Err(_) => {}
        }
        if !std::mem::replace(&mut is_told, true) {
            say(format_args!("{name}: cut off; trying again"));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn show(handed: &Handed, mask: &IdMask, json: bool) -> anyhow::Result<()> {
    let Handed { at_ms, route, notice, attempt, due_at_ms, on_set, payload } = handed;
    if json {
        let hand_out = HandOut {
            attempt: *attempt,
            due_at_ms: *due_at_ms,
            sent_at_ms: *at_ms,
            on_set: *on_set,
            payload: payload.as_deref(),
        };
        return print_json(&Watched { event: Event::masked(notice, hand_out, mask), route });
    }
    let late = Duration::from_millis(u64::try_from(at_ms.saturating_sub(*due_at_ms)).unwrap_or(0));
    let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
    Ok(print(format_args!(
        "{} {} {} on route {route}: {}, {} late{again}",
        instant(*at_ms),
        notice.namespace,
        mask.show(&notice.id),
        notice_text(notice),
        format_span(late),
    ))?)
}
