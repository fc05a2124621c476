//! A directory for the file of one test store. It is gone when this is dropped.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// A directory of its own among the temporary files, for its owner only.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("forewarn-test-{:016x}", fastrand::u64(..)));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "the directory of a test store cannot be removed");
        }
    }
}
