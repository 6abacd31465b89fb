//! The journal that keeps queues and topics across restarts: one JSON line per change, appended before the
//! caller gets its response, and rewritten when it has grown much larger than what it describes.
//!
//! A write reaches the operating system at once, so a killed process loses nothing it acknowledged.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::queue::{Attributes, Message};
use crate::topics::Topics;

/// Size below which the journal is never rewritten.
const MIN_COMPACT_BYTES: u64 = 32 * 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Entry {
    Queue(QueueEntry),
    DeleteQueue(String),
    Send(String, Message),
    /// The receive state of messages: number, visible, receives, first receive.
    Receive(String, Vec<(u64, u64, u32, u64)>),
    Delete(String, Vec<u64>),
    Purge(String),
    /// A deduplication id whose message is gone: id, sent, message id, number.
    Deduplication(String, String, u64, String, u64),
    Topics(Topics),
}

/// [`Entry::Send`] of a message that stays where it is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum EntryRef<'a> {
    Send(&'a str, &'a Message),
}

/// A queue without its messages.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueueEntry {
    pub(crate) name: String,
    pub(crate) attributes: Attributes,
    pub(crate) other_attributes: std::collections::BTreeMap<String, String>,
    pub(crate) tags: std::collections::BTreeMap<String, String>,
    pub(crate) created_ms: u64,
    pub(crate) modified_ms: u64,
    pub(crate) next_number: u64,
}

/// An open journal, or none for queues that live in memory.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    file: Option<(PathBuf, File)>,
    bytes: u64,
    compact_at: u64,
    /// Lines that are not written yet.
    lines: Vec<u8>,
    /// Appended lines wait for [`Journal::write`].
    is_collecting: bool,
}

impl Journal {
    /// Reads all entries of a file, which need not exist. A line that was cut off by a crash ends the
    /// journal.
    pub(crate) fn read(path: &Path, mut apply: impl FnMut(Entry)) -> io::Result<()> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for line in BufReader::new(file).lines() {
            match serde_json::from_str(&line?) {
                Ok(entry) => apply(entry),
                Err(error) if error.is_eof() => break,
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            }
        }
        Ok(())
    }

    /// Replaces the file with these entries and continues from there.
    pub(crate) fn rewrite<'a>(
        path: &Path,
        entries: impl Iterator<Item = Entry> + 'a,
    ) -> io::Result<Journal> {
        let new = path.with_extension("new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut writer = BufWriter::new(options.open(&new)?);
        let mut bytes = 0;
        for entry in entries {
            let mut line = serde_json::to_vec(&entry)?;
            line.push(b'\n');
            bytes += line.len() as u64;
            writer.write_all(&line)?;
        }
        writer
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .sync_all()?;
        std::fs::rename(&new, path)?;
        let file = OpenOptions::new().append(true).open(path)?;
        Ok(Journal {
            file: Some((path.to_owned(), file)),
            bytes,
            compact_at: MIN_COMPACT_BYTES.max(4 * bytes),
            ..Journal::default()
        })
    }

    /// Appends entries with one write.
    pub(crate) fn append(&mut self, entries: &[impl Serialize]) -> io::Result<()> {
        if self.file.is_none() {
            return Ok(());
        }
        for entry in entries {
            serde_json::to_writer(&mut self.lines, entry)?;
            self.lines.push(b'\n');
        }
        match self.is_collecting {
            true => Ok(()),
            false => self.write(),
        }
    }

    /// Keeps the lines of the following entries for one [`Journal::write`].
    pub(crate) fn collect(&mut self) {
        self.is_collecting = true;
    }

    /// Writes all lines.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        self.is_collecting = false;
        let Some((_, file)) = self.file.as_mut().filter(|_| !self.lines.is_empty()) else {
            return Ok(());
        };
        let written = file.write_all(&self.lines);
        self.bytes += self.lines.len() as u64;
        self.lines.clear();
        written
    }

    /// The path, if it is time to rewrite the journal.
    pub(crate) fn compaction_due(&self) -> Option<&Path> {
        let (path, _) = self.file.as_ref()?;
        (self.bytes > self.compact_at && !self.is_collecting).then_some(path.as_path())
    }
}
