//! The ready file: it holds all addresses and exists while the stack is up.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// A ready file, removed on drop. After a kill it remains until the next start.
#[derive(Debug)]
pub(super) struct ReadyFile(PathBuf);

impl ReadyFile {
    /// Removes the file of an earlier run and checks, before the stack starts, that it can be written.
    pub(super) fn prepare(path: &Path) -> Result<ReadyFile, CliError> {
        let unwritable = |fault| write_error(path, &fault);
        private(&draft(path)).map_err(unwritable)?;
        match std::fs::remove_file(path) {
            Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => Err(unwritable(fault)),
            _ => Ok(ReadyFile(path.to_owned())),
        }
    }

    /// Writes the file atomically.
    pub(super) fn write(&self, text: &str) -> Result<(), CliError> {
        let draft = draft(&self.0);
        private(&draft)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| std::fs::rename(&draft, &self.0))
            .map_err(|fault| write_error(&self.0, &fault))
    }
}

impl Drop for ReadyFile {
    fn drop(&mut self) {
        // At most one of them exists.
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(draft(&self.0));
    }
}

/// Creates a file that only its owner can read: it will hold the token.
fn private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn draft(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".draft");
    path.with_file_name(name)
}

fn write_error(path: &Path, fault: &std::io::Error) -> CliError {
    CliError::invalid(format!(
        "cannot write the ready file {}: {fault}",
        path.display()
    ))
}
