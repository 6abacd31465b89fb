//! The file that tells scripts where everything is: there once everything is up, gone when it is not.

use std::path::{Path, PathBuf};

use crate::error::CliError;

/// A ready file that is removed at the end. After a kill it stays behind, until the next start.
#[derive(Debug)]
pub(super) struct ReadyFile(PathBuf);

impl ReadyFile {
    /// Removes what an earlier run left, so that nobody takes it for this one, and sees that it can be
    /// written before anything is started.
    pub(super) fn prepare(path: &Path) -> Result<ReadyFile, CliError> {
        let unwritable = |fault| refused(path, &fault);
        std::fs::write(draft(path), "").map_err(unwritable)?;
        match std::fs::remove_file(path) {
            Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => Err(unwritable(fault)),
            _ => Ok(ReadyFile(path.to_owned())),
        }
    }

    /// Shows the text whole, to whoever waits for the file.
    pub(super) fn write(&self, text: &str) -> Result<(), CliError> {
        let draft = draft(&self.0);
        std::fs::write(&draft, text)
            .and_then(|()| std::fs::rename(&draft, &self.0))
            .map_err(|fault| refused(&self.0, &fault))
    }
}

impl Drop for ReadyFile {
    fn drop(&mut self) {
        // One of them is there; neither matters any more.
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(draft(&self.0));
    }
}

fn draft(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".draft");
    path.with_file_name(name)
}

fn refused(path: &Path, fault: &std::io::Error) -> CliError {
    CliError::invalid(format!("ready file {}: {fault}", path.display()))
}
