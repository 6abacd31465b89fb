//! The data directory, and the lock that keeps a second process out of it.
//!
//! Two stacks on one directory would send the same changes and overwrite each other's stream positions. The
//! operating system releases the lock when the process ends.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use super::StackError;
use crate::private_file;

#[derive(Debug)]
pub(super) struct DataDirectory {
    path: PathBuf,
    _lock: File,
}

impl DataDirectory {
    /// Creates the directory if it is missing, and locks it.
    pub(super) fn take(path: &Path) -> Result<DataDirectory, StackError> {
        let unusable = |source| StackError::DataDirectory {
            path: path.to_owned(),
            source,
        };
        std::fs::create_dir_all(path).map_err(unusable)?;
        // The databases hold secrets of webhook clients.
        #[cfg(unix)]
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .map_err(unusable)?;
        let mut lock = private_file::open(&path.join("lock")).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Only for the error message; the lock decides.
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

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_directory_is_closed_to_other_users() {
        use std::os::unix::fs::PermissionsExt as _;
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("data");
        std::fs::create_dir(&path).unwrap();
        let _directory = DataDirectory::take(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

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
