//! Files that only their owner can read: they hold secrets and messages.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = options().read(true).truncate(false).open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

/// Replaces the content of a file.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    options().truncate(true).open(path)?.write_all(content)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
