//! The ready file: it holds all addresses and exists while the stack is up.

use std::path::{Path, PathBuf};

use crate::error::CliError;

/// A ready file, removed on drop. After a kill it remains until the next start.
#[derive(Debug)]
pub(super) struct ReadyFile(PathBuf);

impl ReadyFile {
    /// Removes the file of an earlier run and checks, before the stack starts, that it can be written.
    pub(super) fn prepare(path: &Path) -> Result<ReadyFile, CliError> {
        let unwritable = |fault| write_error(path, &fault);
        std::fs::write(draft(path), "").map_err(unwritable)?;
        match std::fs::remove_file(path) {
            Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => Err(unwritable(fault)),
            _ => Ok(ReadyFile(path.to_owned())),
        }
    }

    /// Writes the file atomically.
    pub(super) fn write(&self, text: &str) -> Result<(), CliError> {
        let draft = draft(&self.0);
        std::fs::write(&draft, text)
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
