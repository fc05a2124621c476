//! The one thread that writes: it takes what waits, carries it out in one transaction and answers once that is committed.
//!
//! One commit, and so one wait for the disk, serves all callers that came meanwhile. A task that fails takes back its own
//! writes only.

use tokio::sync::{broadcast, mpsc};

use super::{
    desk::{Desk, Woken},
    error::{Fault, explain, tell_again, unavailable, unusable},
    schema,
    task::Task,
};

/// The entries after which a transaction takes no further task: a longer one would keep claims waiting.
const MAX_WEIGHT: usize = 1000;

/// Serves until nobody can hand in tasks any more.
pub(super) fn serve(desk: &Desk, tasks: &mut mpsc::Receiver<Box<dyn Task>>, news: &broadcast::Sender<Woken>) {
    while let Some(first) = tasks.blocking_recv() {
        let mut weight = first.weight();
        let mut batch = vec![first];
        while weight < MAX_WEIGHT {
            let Ok(task) = tasks.try_recv() else { break };
            weight += task.weight();
            batch.push(task);
        }
        while !batch.is_empty() {
            batch = carry_out(desk, batch);
            for woken in desk.woken.take() {
                // It fails if nobody listens.
                news.send(woken).ok();
            }
        }
    }
}

/// One transaction. Answers the tasks that were not begun because it broke off.
fn carry_out(desk: &Desk, batch: Vec<Box<dyn Task>>) -> Vec<Box<dyn Task>> {
    if let Err(fault) = begin(desk) {
        let problem = fault.into_store_error(&desk.path);
        batch.into_iter().for_each(|task| task.answer(desk, Some(tell_again(&problem))));
        return Vec::new();
    }
    let mut pending = batch.into_iter();
    let mut done = Vec::new();
    let mut broken = None;
    while broken.is_none()
        && let Some(mut task) = pending.next()
    {
        broken = within_savepoint(desk, task.as_mut()).err();
        done.push(task);
    }
    let broken = broken.or_else(|| desk.run("COMMIT", []).err());
    if broken.is_some() {
        desk.woken.take();
        if !desk.connection.is_autocommit()
            && let Err(fault) = desk.run("ROLLBACK", [])
        {
            tracing::error!(?fault, "a broken transaction cannot be taken back");
        }
    }
    let broken = broken.map(|fault| fault.into_store_error(&desk.path));
    for task in done {
        task.answer(desk, broken.as_ref().map(tell_again));
    }
    pending.collect()
}

/// Runs a task so that it can be taken back alone. Fails if the whole transaction is lost.
fn within_savepoint(desk: &Desk, task: &mut dyn Task) -> Result<(), Fault> {
    let woken_before = desk.woken.borrow().len();
    desk.run("SAVEPOINT task", [])?;
    if !task.run(desk) {
        desk.woken.borrow_mut().truncate(woken_before);
        // A full disk or a failing one may take back everything at once.
        if desk.connection.is_autocommit() {
            let problem = task.failure().map_or_else(
                || unavailable(&desk.path, "the transaction was taken back"),
                |error| explain(&desk.path, error),
            );
            return Err(problem.into());
        }
        desk.run("ROLLBACK TO task", [])?;
    }
    desk.run("RELEASE task", [])?;
    Ok(())
}

/// Takes the right to write; waits for other processes as long as the connection's busy timeout says.
fn begin(desk: &Desk) -> Result<(), Fault> {
    desk.run("BEGIN IMMEDIATE", [])?;
    let version: i64 = desk.one("PRAGMA user_version", [], |row| row.get(0))?;
    if usize::try_from(version).is_ok_and(|version| version == schema::STEPS.len()) {
        return Ok(());
    }
    desk.run("ROLLBACK", [])?;
    // Another process has brought it to a layout that this program would damage.
    Err(unusable(&desk.path, "a newer version of forewarn has changed its layout; upgrade and start again").into())
}
