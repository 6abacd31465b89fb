//! Running local stacks. Each has a file with its addresses and its token in the user's state directory, so that
//! `--local` finds it from any directory and on any ports.
//!
//! A stack holds a lock on its file while it runs. A file without a lock is what a killed stack left; it is removed.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::CliError;

/// Name of a stack unless it is given.
pub(crate) const DEFAULT_NAME: &str = "default";
/// A reader holds its lock for less time than this; a stack for as long as it runs.
const READER: Duration = Duration::from_millis(200);

/// A running stack, as in its file and in the ready file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunningStack {
    pub(crate) name: String,
    pub(crate) process: u32,
    pub(crate) version: String,
    pub(crate) dynamodb: String,
    pub(crate) aws: String,
    pub(crate) mqtt: String,
    pub(crate) http: String,
    /// Bearer token of the HTTP API.
    pub(crate) token: String,
    /// URL that opens the console once, within ten minutes of the start.
    #[serde(default)]
    pub(crate) console: String,
    /// Second token, of `antumbra local --grant`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limited_token: Option<LimitedToken>,
    pub(crate) region: String,
    /// Any credentials are accepted; these are those of the examples.
    pub(crate) access_key_id: String,
    pub(crate) secret_access_key: String,
}

/// A bearer token with some grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LimitedToken {
    pub(crate) token: String,
    pub(crate) grants: Vec<String>,
}

/// The file of a stack that runs in this process, removed on drop.
#[derive(Debug)]
pub(crate) struct Entry {
    file: File,
    path: PathBuf,
}

/// Directory of the files: the user's state directory by the XDG specification.
fn directory() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME");
    let state = state.or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("antumbra"))
}

/// Checks a name of a stack.
pub(crate) fn name(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match (1..=64).contains(&text.len()) && text.chars().all(allowed) {
        true => Ok(text.to_owned()),
        false => Err("a name has 1 to 64 letters, digits, - and _".to_owned()),
    }
}

impl Entry {
    /// Takes the file of this name; `None` if a running stack has it, or if there is no state directory.
    pub(crate) fn claim(name: &str) -> io::Result<Option<Entry>> {
        let Some(directory) = directory() else {
            return Ok(None);
        };
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&directory)?;
        let path = directory.join(format!("{name}.json"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let until = std::time::Instant::now() + READER;
        loop {
            let file = options.open(&path)?;
            #[cfg(unix)]
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
            match file.try_lock() {
                // A reader may have removed the file as a stale one in between.
                Ok(()) if path.exists() => {
                    let entry = Entry { file, path };
                    entry.file.set_len(0)?;
                    return Ok(Some(entry));
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if std::time::Instant::now() > until => {
                    return Ok(None);
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(READER / 10),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    pub(crate) fn write(&mut self, stack: &RunningStack) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(crate::output::json(stack).as_bytes())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// All running stacks, by name. Removes the files of stacks that were killed.
pub(crate) fn running() -> Vec<RunningStack> {
    let entries = directory().and_then(|directory| std::fs::read_dir(directory).ok());
    let paths = entries.into_iter().flatten();
    let paths = paths.filter_map(|entry| Some(entry.ok()?.path()));
    let mut stacks: Vec<RunningStack> = paths.filter_map(|path| read(&path)).collect();
    stacks.sort_by(|a, b| a.name.cmp(&b.name));
    stacks
}

fn read(path: &Path) -> Option<RunningStack> {
    let mut file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) => {
            let _ = std::fs::remove_file(path);
            return None;
        }
        Err(TryLockError::Error(_)) => return None,
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    // A stack that is starting has not written its file yet.
    serde_json::from_str(&text).ok()
}

/// The stack of this name, or without a name the only one or the one named `default`; `None` if none is running.
pub(crate) fn find(name: Option<&str>) -> Result<Option<RunningStack>, CliError> {
    let mut stacks = running();
    let names: Vec<String> = stacks.iter().map(|stack| stack.name.clone()).collect();
    let wanted = name.unwrap_or(DEFAULT_NAME);
    if let Some(at) = stacks.iter().position(|stack| stack.name == wanted) {
        return Ok(Some(stacks.swap_remove(at)));
    }
    match (name, stacks.len()) {
        (Some(name), 0) => Err(CliError::unavailable(format!(
            "no stack named {name} is running; start `antumbra local --name {name}`"
        ))),
        (Some(name), _) => Err(CliError::unavailable(format!(
            "no stack named {name} is running; use --local={}",
            names.join(" or --local=")
        ))),
        (None, 2..) => Err(CliError::unavailable(format!(
            "several stacks are running; choose one with --local={}",
            names.join(" or --local=")
        ))),
        (None, _) => Ok(stacks.pop()),
    }
}
