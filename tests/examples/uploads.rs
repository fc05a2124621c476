//! `abandoned_uploads`: what is begun and never finished is aborted and deleted, at last also what was denied first.

use crate::process::{Running, example};

#[test]
fn abandoned_uploads_are_aborted_and_their_files_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = example("abandoned_uploads");
    command.args(["--life", "500ms", "--retry-delay", "200ms", "--dir"]).arg(directory.path());
    let (code, lines) = Running::start(command).end();
    assert_eq!(code, 0, "{lines:#?}");
    for line in [
        "upload-finished is complete",
        "cleanup of upload-abandoned: done",
        "cleanup of upload-gone: done (404 no such upload)",
        "cleanup of upload-busy: tried again later (503 slow down)",
        "cleanup of upload-busy: done",
        "cleanup of upload-denied: dead (403 access denied)",
        "dead letter: upload-denied of photos/denied.jpg: 403 access denied (denied)",
        "the right is granted; requeued: [Requeued]",
        "cleanup of upload-denied: done",
    ] {
        assert_eq!(lines.iter().filter(|it| *it == line).count(), 1, "{line:?} in {lines:#?}");
    }
    assert_eq!(lines.last().unwrap(), "4 cleaned up, 1 retried, 0 dead letters left");
    assert!(!lines.iter().any(|line| line.contains("cleanup of upload-finished")), "{lines:#?}");
    let left = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.filter(|name| name.to_string_lossy().ends_with(".part")).count(), 0);
}
