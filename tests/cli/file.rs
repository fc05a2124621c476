//! A store file that cannot be used: a clear error, exit 1, nothing on stdout, and the file stays as it is, byte by byte.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::process::{Ended, bare, end};

/// Commands of every sort: such as look, change, work, and such as take a store of their own.
const COMMANDS: [&[&str]; 6] = [
    &["stats"],
    &["namespace", "list", "--json"],
    &["namespace", "apply", "s"],
    &["track", "s", "a", "--in", "1h"],
    &["work", "s"],
    &["dead", "list", "s"],
];

/// A directory with a store file.
struct Place {
    directory: TempDir,
}

impl Place {
    fn empty() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// A file with a namespace `s` in it, closed by everybody.
    fn new() -> Self {
        let place = Self::empty();
        end(place.command(&["namespace", "apply", "s"])).done();
        place.empty_log();
        place
    }

    /// Has what is in the log beside the file written into it: it is then complete alone.
    fn empty_log(&self) {
        let connection = self.connection();
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        connection.close().unwrap();
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("forewarn.db")
    }

    fn connection(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = bare();
        command.env("FOREWARN_STORE", format!("sqlite:{}", self.path().display())).args(words);
        command
    }

    /// What lies in the directory.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().path());
        files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }

    /// Every command fails with these words, and nothing changes.
    fn is_refused(&self, run: impl Fn(Command) -> Ended, parts: &[&str]) {
        let before = self.files();
        for words in COMMANDS {
            let ended = run(self.command(words));
            assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{words:?}: {ended:?}");
            assert_eq!(ended.err.lines().count(), 1, "{words:?}: {ended:?}");
            for part in parts.iter().chain(&["error: the store ", "forewarn.db"]) {
                assert!(ended.err.contains(part), "{words:?}: no {part:?} in {:?}", ended.err);
            }
            assert!(self.files() == before, "{words:?} changed {:?}", before.keys());
        }
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Runs it as somebody for whom files may be read-only: for root nothing is.
fn as_nobody(mut command: Command) -> Ended {
    if rustix::process::geteuid().is_root() {
        command.uid(65_534);
    }
    end(command)
}

/// Runs it where no file may grow beyond this many blocks of 512 bytes. The signal that comes with it is ignored, as services
/// may do: a write that goes too far then fails like one on a full disk.
fn with_files_up_to(blocks: u32, command: Command) -> Ended {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -f {blocks}; trap '' XFSZ; exec \"$0\" \"$@\"")]);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    end(shell)
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    for contents in ["my notes\n".repeat(1000), "x".to_owned(), "SQLite format 3\0".to_owned()] {
        let place = Place::empty();
        fs::write(place.path(), contents).unwrap();
        place.is_refused(end, &["it is no SQLite database; give another path"]);
    }
}

#[test]
fn the_database_of_another_program_is_refused() {
    let place = Place::empty();
    place.connection().execute_batch("CREATE TABLE cookie (name TEXT)").unwrap();
    place.is_refused(end, &["it is the database of another application; give another path"]);
}

#[test]
fn a_file_that_a_newer_version_wrote_is_refused() {
    let place = Place::new();
    place.connection().execute_batch("PRAGMA user_version = 1000").unwrap();
    place.is_refused(end, &["a newer version of forewarn wrote it (layout 1000", "upgrade forewarn"]);
}

#[test]
fn a_file_that_is_cut_off_or_overwritten_is_refused() {
    let place = Place::new();
    let mut bytes = fs::read(place.path()).unwrap();
    bytes[100..8192].fill(0xA5);
    fs::write(place.path(), bytes).unwrap();
    place.is_refused(end, &["it is damaged; restore it from a backup"]);
}

#[test]
fn a_file_that_may_only_be_read_is_refused() {
    let place = Place::new();
    set_mode(&place.path(), 0o444);
    set_mode(place.directory.path(), 0o777);
    place.is_refused(as_nobody, &["it is read-only; make it writable"]);
}

#[test]
fn a_directory_that_may_only_be_read_is_refused() {
    let place = Place::new();
    set_mode(&place.path(), 0o666);
    set_mode(place.directory.path(), 0o555);
    place.is_refused(as_nobody, &["its directory", "writable"]);

    let place = Place::empty();
    set_mode(place.directory.path(), 0o555);
    place.is_refused(as_nobody, &["it cannot be made: Permission denied"]);
}

#[test]
fn a_directory_that_is_missing_is_named() {
    let place = Place::empty();
    let mut command = bare();
    command.args(["stats", "--store", &format!("sqlite:{}/missing/forewarn.db", place.directory.path().display())]);
    let said = end(command).failed();
    assert!(said.contains("missing/forewarn.db cannot be used: its directory does not exist; make it first"), "{said}");
    assert!(place.files().is_empty());
}

#[test]
fn a_file_that_may_not_grow_keeps_what_it_has_and_says_so() {
    let place = Place::new();
    let track = |id: &str, payload: &str| place.command(&["track", "s", id, "--in", "1h", "--payload", payload]);
    // Room for the index of the log and for a small entry in the log itself.
    let blocks = 64;
    with_files_up_to(blocks, track("small", "7")).done();
    place.empty_log();
    let before = fs::read(place.path()).unwrap();
    let large = format!("\"{}\"", "x".repeat(16_000));
    for _ in 0..3 {
        let said = with_files_up_to(blocks, track("large", &large)).failed();
        let parts = ["error: the store at ", "forewarn.db", "look for free space on its disk, a quota or a limit"];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(fs::read(place.path()).unwrap() == before);
    }
    assert_eq!(end(place.command(&["show", "s", "large"])).code, 1);
    end(place.command(&["show", "s", "small"])).done();
    end(track("large", &large)).done();
}
