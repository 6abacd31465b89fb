//! The directory that outlives the process, and the lock that keeps a second process out of it.
//!
//! Two stacks on one directory would each send the same changes and overwrite each other's place in the
//! stream. The lock is the operating system's, so that it ends with the process however that ends.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use super::StackError;

/// A data directory that is this process's alone for as long as this lives.
#[derive(Debug)]
pub(super) struct DataDirectory {
    path: PathBuf,
    _lock: File,
}

impl DataDirectory {
    /// Makes the directory where it is missing, and takes it.
    pub(super) fn take(path: &Path) -> Result<DataDirectory, StackError> {
        let unusable = |source| StackError::DataDirectory {
            path: path.to_owned(),
            source,
        };
        std::fs::create_dir_all(path).map_err(unusable)?;
        let mut lock = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path.join("lock"))
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Only to say more: the lock is what counts.
                let _ = lock.read_to_string(&mut holder);
                return Err(StackError::DataDirectoryInUse {
                    path: path.to_owned(),
                    process: holder.trim().parse().ok(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(unusable)?;
        Ok(DataDirectory {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// A file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_stack_names_the_process_that_holds_the_directory() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("made/on/the/way");
        let first = DataDirectory::take(&path).unwrap();
        let error = DataDirectory::take(&path).unwrap_err().to_string();
        let process = std::process::id();
        assert!(error.contains(&format!("(process {process})")), "{error}");
        drop(first);
        DataDirectory::take(&path).unwrap();
    }
}
