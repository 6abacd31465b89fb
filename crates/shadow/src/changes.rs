//! The verdict of a merge on each leaf, as the writer gets it back.

use std::fmt;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use crate::document::Document;
use crate::model::Model;
use crate::tape::{Span, View};
use crate::timestamp::Timestamp;

/// The result of a merge for one leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It was not there before.
    Added,
    /// The sent value replaced the stored one.
    Updated,
    /// It is gone.
    Removed,
    /// Kept: the sent value was measured earlier.
    Stale,
    /// Kept: the sent value was measured at the same instant.
    Equal,
    /// Kept: the sent value is the same.
    Same,
    /// Kept: nothing was sent for it.
    Unsent,
}

impl Verdict {
    /// Returns `true` if the verdict changes the document.
    pub fn is_change(self) -> bool {
        matches!(self, Verdict::Added | Verdict::Updated | Verdict::Removed)
    }

    /// The verdict as it is told to writers.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Added => "added",
            Verdict::Updated => "updated",
            Verdict::Removed => "removed",
            Verdict::Stale => "kept: stale",
            Verdict::Equal => "kept: equal",
            Verdict::Same => "kept: same",
            Verdict::Unsent => "kept: unsent",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A remark for the writer beside the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Note {
    /// The time sent lay too far in the future and was set to now.
    Clamped,
    /// This member would make its object a timestamped value, but says no time.
    NotATimestamp,
    /// A `null` was sent, which deletes nothing in this mode.
    NullKept,
}

impl Note {
    /// The note as it is told to writers.
    pub fn as_str(self) -> &'static str {
        match self {
            Note::Clamped => "clamped",
            Note::NotATimestamp => "not a timestamp",
            Note::NullKept => "null kept",
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One leaf with its verdict.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// JSON Pointer of the leaf. Elements matched by id keep the position they had in the stored array.
    pub pointer: &'a str,
    /// The verdict.
    pub verdict: Verdict,
    /// A remark, if there is one.
    pub note: Option<Note>,
    /// The stored value, if there was one.
    pub old: Option<View<'a>>,
    /// The sent value, if there was one.
    pub new: Option<View<'a>>,
    model: &'a Model,
}

impl Change<'_> {
    /// Timestamp of the stored value, if it has one.
    pub fn old_time(&self) -> Option<Timestamp> {
        self.model.time(self.old?)
    }

    /// Timestamp of the sent value, if it has one.
    pub fn new_time(&self) -> Option<Timestamp> {
        self.model.time(self.new?)
    }
}

impl Serialize for Change<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("pointer", self.pointer)?;
        map.serialize_entry("verdict", self.verdict.as_str())?;
        if let Some(note) = self.note {
            map.serialize_entry("note", note.as_str())?;
        }
        if let Some(old) = self.old {
            map.serialize_entry("old", &old)?;
        }
        if let Some(new) = self.new {
            map.serialize_entry("new", &new)?;
        }
        map.end()
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    pointer: Span,
    old: Option<u32>,
    new: Option<u32>,
    verdict: Verdict,
    note: Option<Note>,
}

/// The verdicts on all leaves, in document order.
#[derive(Debug, Clone)]
pub struct Changes {
    stored: Document,
    sent: Document,
    model: Model,
    entries: Vec<Entry>,
    /// All pointers, one behind the other.
    pointers: String,
}

impl Changes {
    pub(crate) fn new(stored: Document, sent: Document, model: Model) -> Changes {
        Changes {
            stored,
            sent,
            model,
            entries: Vec::new(),
            pointers: String::new(),
        }
    }

    pub(crate) fn push(
        &mut self,
        pointer: &str,
        verdict: Verdict,
        note: Option<Note>,
        old: Option<View<'_>>,
        new: Option<View<'_>>,
    ) {
        let start = self.pointers.len();
        self.pointers.push_str(pointer);
        self.entries.push(Entry {
            pointer: Span::new(start, self.pointers.len()),
            old: old.map(View::index),
            new: new.map(View::index),
            verdict,
            note,
        });
    }

    /// One entry per leaf.
    pub fn iter(&self) -> impl Iterator<Item = Change<'_>> {
        self.entries.iter().map(|entry| Change {
            pointer: entry.pointer.of(&self.pointers),
            verdict: entry.verdict,
            note: entry.note,
            old: entry.old.map(|at| self.stored.view().at(at)),
            new: entry.new.map(|at| self.sent.view().at(at)),
            model: &self.model,
        })
    }

    /// Number of leaves.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if there are no leaves.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Serialize for Changes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        for change in self.iter() {
            list.serialize_element(&change)?;
        }
        list.end()
    }
}
