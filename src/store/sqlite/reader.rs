//! The thread that reads: what people look at never waits for a writer, nor a writer for it.

use tokio::sync::mpsc;

use super::{desk::Desk, error::Fault, task::Task};

/// Serves until nobody can hand in tasks any more. Each task sees one state of the file from beginning to end.
pub(super) fn serve(desk: &Desk, tasks: &mut mpsc::Receiver<Box<dyn Task>>) {
    while let Some(task) = tasks.blocking_recv() {
        carry_out(desk, task);
    }
}

fn carry_out(desk: &Desk, mut task: Box<dyn Task>) {
    let looked = look(desk, task.as_mut());
    if !desk.connection.is_autocommit()
        && let Err(fault) = desk.run("ROLLBACK", [])
    {
        tracing::error!(?fault, "a reading transaction cannot be ended");
    }
    let lost = looked.err().map(|fault| fault.into_store_error(&desk.path));
    task.answer(desk, lost);
}

fn look(desk: &Desk, task: &mut dyn Task) -> Result<(), Fault> {
    desk.run("BEGIN", [])?;
    task.run(desk);
    Ok(())
}
