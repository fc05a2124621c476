//! The shape of the source: which way imports point, who may read the clock or spell a key, how files begin, and
//! that each script keeps the contract in its header.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

mod composition;
mod imports;
mod lua;
mod rules;
mod rust;

use std::path::{Path, PathBuf};

/// One file below the project's root.
#[derive(Debug)]
struct File {
    /// Relative to the root, with `/`.
    path: String,
    text: String,
}

/// All files below `directory` whose name ends in one of `extensions`, by path.
fn files(directory: &str, extensions: &[&str]) -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut pending = vec![root.join(directory)];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if extensions.iter().any(|extension| path.extension().is_some_and(|it| it == *extension)) {
            found.push(read(root, path));
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn read(root: &Path, path: PathBuf) -> File {
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    File { path: path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(), text }
}

/// Fails with all complaints at once.
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
