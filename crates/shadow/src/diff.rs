//! Diff: the leaves in which two documents differ.
//!
//! Walks both in step along the text they have in common, so that equal values cost next to nothing.
//! Works on any two tapes of the same kind, documents as well as stream images.

mod chunks;
mod pointer;
mod walk;

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::model::Model;
use crate::stretch::Stretch;
use crate::tape::View;
use chunks::Chunks;

pub use pointer::{Container, Leaf, Pointer, Token};
pub(crate) use walk::unchanged;

/// The part of a diff that a leaf is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Part {
    Added,
    Updated,
    Removed,
}

/// A leaf that differs. With its parent and its index or name it has its pointer, which is written only on demand:
/// a pointer can be longer than the document's other bytes, and every leaf has one.
#[derive(Debug, Clone, Copy)]
struct Entry {
    part: Part,
    /// Nothing but the time of a timestamped value changed.
    only_time: bool,
    /// Position in [`DiffBuffer::parents`].
    parent: u32,
    /// Position in the array; [`NAMED`] for members.
    index: u32,
    /// Nodes on the old and the new tape; the one that does not apply is 0, the root.
    old: u32,
    new: u32,
}

/// A container on the way to a leaf. The first one is the root.
#[derive(Debug, Clone, Copy)]
struct Parent {
    parent: u32,
    /// Positions in the array, which differ where elements before it were removed; [`NAMED`] for members.
    old_index: u32,
    new_index: u32,
    old: u32,
    new: u32,
}

/// Index of a member, which has a name instead.
const NAMED: u32 = u32::MAX;

/// Room for a diff, kept to be used again without allocating.
#[derive(Debug, Clone, Default)]
pub struct DiffBuffer {
    entries: Chunks<Entry>,
    parents: Chunks<Parent>,
    value_changed: bool,
    /// Nodes on the old tape of the arrays that were matched by id.
    matched_by_id: Vec<u32>,
    stretch: Stretch,
}

/// The difference of two documents.
#[derive(Debug, Clone)]
pub struct Diff<'a> {
    pub(crate) old: View<'a>,
    pub(crate) new: View<'a>,
    found: Cow<'a, DiffBuffer>,
}

/// Computes the difference that turns `old` into `new`.
///
/// Leaves are scalars, timestamped values and empty containers. `removed` names places in the old
/// document, `added` and `updated` places in the new one.
///
/// ```
/// use antumbra_shadow::{diff, Document, Model};
///
/// let old = Document::parse(r#"{"led":"off","fan":1}"#)?;
/// let new = Document::parse(r#"{"led":"on","door":{"open":true}}"#)?;
/// let diff = diff(old.view(), new.view(), &Model::default());
/// assert_eq!(
///     serde_json::to_string(&diff).unwrap(),
///     r#"{"added":{"/door/open":true},"updated":{"/led":{"old":"off","new":"on"}},"removed":{"/fan":1}}"#,
/// );
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
pub fn diff<'a>(old: View<'a>, new: View<'a>, model: &Model) -> Diff<'a> {
    let mut buffer = DiffBuffer::default();
    buffer.compute(old, new, model);
    Diff {
        old,
        new,
        found: Cow::Owned(buffer),
    }
}

impl DiffBuffer {
    /// As [`diff`](crate::diff()), without allocating once the buffer is warm.
    pub fn diff<'a>(&'a mut self, old: View<'a>, new: View<'a>, model: &Model) -> Diff<'a> {
        self.compute(old, new, model);
        Diff {
            old,
            new,
            found: Cow::Borrowed(self),
        }
    }

    /// Gives back the memory of a large diff.
    pub fn shrink(&mut self) {
        self.entries.clear();
        self.parents.clear();
        self.matched_by_id = Vec::new();
    }
}

impl<'a> Diff<'a> {
    /// Returns `true` if nothing changed.
    pub fn is_empty(&self) -> bool {
        self.found.entries.len == 0
    }

    /// Returns `true` if anything besides timestamps changed.
    pub fn value_changed(&self) -> bool {
        self.found.value_changed
    }

    /// Added values, by their pointer in the new document.
    pub fn added(&self) -> impl Iterator<Item = (Pointer<'_, 'a>, View<'a>)> {
        self.part(Part::Added)
            .map(|(pointer, _, new)| (pointer, new))
    }

    /// Updated values, by their pointer in the new document: old, then new.
    pub fn updated(&self) -> impl Iterator<Item = (Pointer<'_, 'a>, View<'a>, View<'a>)> {
        self.part(Part::Updated)
    }

    /// Removed values, by their pointer in the old document.
    pub fn removed(&self) -> impl Iterator<Item = (Pointer<'_, 'a>, View<'a>)> {
        self.part(Part::Removed)
            .map(|(pointer, old, _)| (pointer, old))
    }

    /// All leaves, in the order of the documents.
    pub fn leaves(&self) -> impl Iterator<Item = Leaf<'_, 'a>> {
        self.found.entries.iter().map(|entry| Leaf {
            part: entry.part,
            old: (entry.part != Part::Added).then(|| self.old.at(entry.old)),
            new: (entry.part != Part::Removed).then(|| self.new.at(entry.new)),
            only_time: entry.only_time,
            pointer: Pointer { diff: self, entry },
        })
    }

    /// The containers on the way to the leaves, each after the one that holds it. The first is the root, with an
    /// empty name.
    pub fn containers(&self) -> impl Iterator<Item = Container<'_>> {
        let parents = self.found.parents.iter().enumerate();
        parents.map(|(at, step)| Container {
            parent: step.parent as usize,
            old: match at {
                0 => Token::Name(""),
                _ => self.token(step.old_index, step.old, step.new),
            },
            new: match at {
                0 => Token::Name(""),
                _ => self.token(step.new_index, step.old, step.new),
            },
        })
    }

    fn token(&self, index: u32, old: u32, new: u32) -> Token<'_> {
        match (index, new) {
            (NAMED, 0) => Token::Name(self.old.at(old).raw_key()),
            (NAMED, new) => Token::Name(self.new.at(new).raw_key()),
            (index, _) => Token::Index(index),
        }
    }

    fn part(&self, part: Part) -> impl Iterator<Item = (Pointer<'_, 'a>, View<'a>, View<'a>)> {
        let entries = self.found.entries.iter();
        let entries = entries.filter(move |entry| entry.part == part);
        entries.map(|entry| {
            let (old, new) = (self.old.at(entry.old), self.new.at(entry.new));
            (Pointer { diff: self, entry }, old, new)
        })
    }

    /// Returns `true` if the elements of this array of the old document were matched by id.
    pub(crate) fn is_matched_by_id(&self, old: View<'_>) -> bool {
        self.found.matched_by_id.contains(&old.index())
    }

    /// Appends the diff as JSON text, if it has at most `limit` bytes; otherwise appends nothing and returns `false`.
    pub fn write_json(&self, out: &mut String, limit: usize) -> bool {
        let start = out.len();
        for (part, name) in [
            (Part::Added, "{\"added\":{"),
            (Part::Updated, "},\"updated\":{"),
            (Part::Removed, "},\"removed\":{"),
        ] {
            out.push_str(name);
            for (position, (pointer, old, new)) in self.part(part).enumerate() {
                out.push_str(if position > 0 { ",\"" } else { "\"" });
                pointer.write_escaped(out);
                out.push_str("\":");
                match part {
                    Part::Added => new.write_json(out),
                    Part::Removed => old.write_json(out),
                    Part::Updated => {
                        out.push_str("{\"old\":");
                        old.write_json(out);
                        out.push_str(",\"new\":");
                        new.write_json(out);
                        out.push('}');
                    }
                }
                if out.len() - start > limit {
                    out.truncate(start);
                    return false;
                }
            }
        }
        out.push_str("}}");
        let fits = out.len() - start <= limit;
        if !fits {
            out.truncate(start);
        }
        fits
    }
}

impl Serialize for Diff<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut json = String::new();
        self.write_json(&mut json, usize::MAX);
        let raw = RawValue::from_string(json).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}
