//! The verdict of a merge on each leaf, as the writer gets it back.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::merge::Input;
use crate::model::Model;
use crate::tape::View;
use crate::timestamp::Timestamp;
use crate::word_enum;

word_enum! {
    /// The result of a merge for one leaf.
    pub enum Verdict as "verdict" {
        /// It was not there before.
        Added = "added",
        /// The sent value replaced the stored one.
        Updated = "updated",
        /// It was removed.
        Removed = "removed",
        /// Kept: the sent value was measured earlier.
        Stale = "kept: stale",
        /// Kept: the sent value was measured at the same instant.
        Equal = "kept: equal",
        /// Kept: the sent value is the same.
        Same = "kept: same",
        /// Kept: nothing was sent for it.
        Unsent = "kept: unsent",
        /// Kept: the sent time is too far in the future.
        Future = "kept: future",
    }
}

impl Verdict {
    /// Returns `true` if the verdict changes the document.
    pub fn is_change(self) -> bool {
        matches!(self, Verdict::Added | Verdict::Updated | Verdict::Removed)
    }
}

word_enum! {
    /// A remark for the writer beside the verdict.
    pub enum Note as "note" {
        /// This member would make its object a timestamped value, but is not a time.
        NotATimestamp = "not a timestamp",
        /// A `null` was sent, which deletes nothing in this mode.
        NullKept = "null kept",
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
    pub(crate) model: &'a Model,
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

/// The verdicts on all leaves, in document order. They are computed when they are asked for: together, the pointers
/// of all leaves can be far longer than the documents.
#[derive(Debug, Clone)]
pub struct Changes(pub(crate) Input);

impl Changes {
    /// Calls `visit` with each leaf.
    ///
    /// ```
    /// use antumbra_shadow::{merge, Document, Mode, Model, Timestamp};
    ///
    /// let sent = Document::parse(r#"{"fan":1,"led":{"on":true}}"#)?;
    /// let merged = merge(&Document::default(), &sent, Mode::Patch, &Model::default(), Timestamp::default());
    /// let mut pointers = Vec::new();
    /// merged.changes.for_each(|change| pointers.push(change.pointer.to_owned()));
    /// assert_eq!(pointers, ["/fan", "/led/on"]);
    /// # Ok::<(), antumbra_shadow::DocumentError>(())
    /// ```
    pub fn for_each(&self, mut visit: impl FnMut(Change<'_>)) {
        self.0.run(Some(&mut visit));
    }

    /// The verdicts that `wanted` selects as a JSON array; `None` if it has more than `limit` bytes.
    pub fn to_json(&self, limit: usize, wanted: impl Fn(&Change<'_>) -> bool) -> Option<String> {
        let mut json = String::from("[");
        let mut fits = true;
        self.for_each(|change| {
            if !fits || !wanted(&change) {
                return;
            }
            if json.len() > 1 {
                json.push(',');
            }
            match serde_json::to_string(&change) {
                Ok(text) if json.len() + text.len() < limit => json.push_str(&text),
                _ => fits = false,
            }
        });
        json.push(']');
        fits.then_some(json)
    }
}
