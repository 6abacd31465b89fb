//! Takes over changed registration files while the stack runs, all or none.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use antumbra_local::stack::Stack;
use antumbra_notify::files;
use antumbra_registration::Registrations;

use crate::commands::registrations::{self, Directory};
use crate::error::{CliError, chain};
use crate::signals::Hangup;

/// Interval of checking the files. They must be the same twice, so that a file is not read while it is written.
const CHECK_INTERVAL: Duration = Duration::from_millis(300);

/// The registrations in force, and their files.
pub(super) struct Reload<'a> {
    directory: &'a Directory,
    /// Names of registrations and texts of their files.
    in_force: BTreeMap<String, String>,
    seen: Vec<(PathBuf, Option<SystemTime>, u64)>,
    hangup: Hangup,
}

/// Registrations at the start, with names and texts of their files.
type Started<'a> = (Reload<'a>, Registrations, Vec<(String, String)>);

impl<'a> Reload<'a> {
    /// Loads the registrations for the start.
    pub(super) fn start(directory: &'a Directory) -> Result<Started<'a>, CliError> {
        // Taken before the files are read, so that a change meanwhile is noticed.
        let seen = files::fingerprint(directory.path());
        let files = directory.read_or_built_in()?;
        let registrations = registrations::load(files.clone())?;
        let reload = Reload {
            directory,
            in_force: texts(&registrations, files.clone()),
            seen,
            hangup: Hangup::listen().map_err(cannot_listen)?,
        };
        Ok((reload, registrations, files))
    }

    /// Waits until files have changed, or for SIGHUP.
    pub(super) async fn wanted(&mut self) {
        let mut last = None;
        loop {
            tokio::select! {
                () = self.hangup.next() => return,
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
            let now = files::fingerprint(self.directory.path());
            if now != self.seen && last.as_ref() == Some(&now) {
                self.seen = now;
                return;
            }
            last = Some(now);
        }
    }

    /// Takes the files over; returns what changed.
    pub(super) async fn apply(&mut self, stack: &Stack) -> Result<String, CliError> {
        let files = self.directory.read_or_built_in()?;
        let registrations = registrations::load(files.clone())?;
        let texts = texts(&registrations, files.clone());
        let enabled = registrations.iter().filter(|(_, one)| one.enabled).count();
        let reloaded = stack.reload(registrations, files).await;
        reloaded.map_err(|error| CliError::invalid(chain(&error)))?;
        let before = std::mem::replace(&mut self.in_force, texts);
        Ok(format!(
            "{}; {enabled} registrations",
            difference(&before, &self.in_force)
        ))
    }
}

fn cannot_listen(error: io::Error) -> CliError {
    CliError::unavailable(format!("cannot listen for SIGHUP: {error}"))
}

fn texts(registrations: &Registrations, files: Vec<(String, String)>) -> BTreeMap<String, String> {
    let files: BTreeMap<String, String> = files.into_iter().collect();
    let text = |file: &str| files.get(file).cloned().unwrap_or_default();
    registrations
        .iter()
        .map(|(_, one)| (one.name.to_string(), text(&one.file)))
        .collect()
}

fn difference(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> String {
    let added = now.keys().filter(|name| !before.contains_key(*name));
    let removed = before.keys().filter(|name| !now.contains_key(*name));
    let changed = now.iter().filter(|(name, text)| {
        let old = before.get(*name);
        old.is_some_and(|old| old != *text)
    });
    let lists: [(&str, Vec<&str>); 3] = [
        ("added", added.map(String::as_str).collect()),
        ("changed", changed.map(|(name, _)| name.as_str()).collect()),
        ("removed", removed.map(String::as_str).collect()),
    ];
    let lists = lists.iter().filter(|(_, names)| !names.is_empty());
    let lists: Vec<String> = lists
        .map(|(word, names)| format!("{word} {}", names.join(", ")))
        .collect();
    match lists.is_empty() {
        true => "nothing changed".to_owned(),
        false => lists.join("; "),
    }
}
