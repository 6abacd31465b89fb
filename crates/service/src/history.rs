//! The past of shadows: states at a time and recorded changes.
//!
//! The entries are encoded and put together by `antumbra_wire::history`; the store is in the crate `dynamodb`.

pub mod feed;

use std::time::Duration;

use antumbra_shadow::{Document, Patch, PatchedLeaf, State, Timestamp};
pub use antumbra_wire::history::Operation;

use crate::shadows::{Shadow, ShadowId, Version};

/// Days for which entries are kept, unless configured otherwise.
pub const DEFAULT_DAYS: u32 = 30;

/// A number of days as a duration.
pub fn days(days: u32) -> Duration {
    Duration::from_secs(u64::from(days) * 24 * 60 * 60)
}

/// Difference of the clocks of two functions, at most.
const CLOCKS: Duration = Duration::from_secs(10);

/// Time up to which the past of a deleted shadow is purged: just before its delete, whose entry has no values and stays for
/// those who follow the changes. Without a known delete, a little before now: no write can be that new, and a shadow that is
/// created again by a clock that is behind keeps its first change.
pub fn purged_until(deleted: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let (end, before) = match deleted {
        Some(deleted) => (deleted, Duration::from_nanos(1)),
        None => (now, CLOCKS),
    };
    Timestamp::from_nanoseconds(end.nanoseconds() - before.as_nanos() as i128)
}

/// State of a shadow at a time.
#[derive(Debug, Clone)]
pub enum StateAt {
    Existed(Box<Shadow>),
    /// There was no such shadow.
    DidNotExist,
    /// The time is before everything that is kept.
    BeforeRetention {
        /// The start of what is kept.
        since: Timestamp,
    },
    /// A change around that time was not recorded, or not yet.
    NotRecorded,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChange {
    pub time: Timestamp,
    pub version: Version,
    pub operation: Operation,
    pub client_token: Option<String>,
    /// The documents of the item that changed: one, or both where they are one item.
    pub documents: Vec<ChangedDocument>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedDocument {
    pub state: State,
    /// Changed values; `None` if they are too many for a response, or the state before is not recorded.
    pub values: Option<Vec<PatchedLeaf>>,
}

/// A recorded change of one document, with the document before and after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentChange {
    /// Key of the item, as registrations match it.
    pub key: String,
    pub state: State,
    pub time: Timestamp,
    pub version: Version,
    pub operation: Operation,
    pub client_token: Option<String>,
    /// The document before; `None` if there was none.
    pub old: Option<Document>,
    /// The document after the change; `None` if it was deleted.
    pub new: Option<Document>,
}

/// A recorded change as it is stored: nothing is read or computed beside it.
#[derive(Debug, Clone)]
pub struct StoredChange {
    pub time: Timestamp,
    pub documents: Vec<StoredDiff>,
}

/// A document in a stored change.
#[derive(Debug, Clone)]
pub struct StoredDiff {
    pub state: State,
    /// Left out where it is larger than the document, and for documents that did not exist before.
    pub diff: Option<Patch>,
    /// The document after the change, in some changes.
    pub document: Option<Document>,
}

/// Changes of a stretch of time, newest first.
#[derive(Debug, Clone)]
pub struct Scan<T> {
    pub rows: Vec<(Timestamp, T)>,
    /// Time before which changes were not read, although there are some; `None` if all were read.
    pub stopped: Option<Timestamp>,
}

impl RecordedChange {
    /// Keeps the values at a JSON Pointer and below it. Where the pointer leads into a value, keeps that part of it.
    /// Returns whether any is left.
    pub fn keep_path(&mut self, path: &str) -> bool {
        for document in &mut self.documents {
            if let Some(values) = &mut document.values {
                *values = values.drain(..).filter_map(|leaf| at(leaf, path)).collect();
            }
        }
        let is_left = |document: &ChangedDocument| match &document.values {
            Some(values) => !values.is_empty(),
            None => true,
        };
        self.documents.retain(is_left);
        !self.documents.is_empty()
    }
}

/// The part of a changed value that is at a path or below it.
fn at(leaf: PatchedLeaf, path: &str) -> Option<PatchedLeaf> {
    let below = |pointer: &str, prefix: &str| {
        let rest = pointer.strip_prefix(prefix)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
    };
    if below(&leaf.pointer, path).is_some() {
        return Some(leaf);
    }
    let inner = below(path, &leaf.pointer)?;
    let part = |value: Option<String>| {
        let wrapped = Document::parse(&format!("{{\"v\":{}}}", value?)).ok()?;
        Some(wrapped.pointer(&format!("/v{inner}"))?.to_json())
    };
    let (old, new) = (part(leaf.old), part(leaf.new));
    let pointer = path.to_owned();
    (old != new).then_some(PatchedLeaf { pointer, old, new })
}

/// A selection of recorded changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeQuery {
    pub shadow: ShadowId,
    /// Changes at this time or later.
    pub from: Option<Timestamp>,
    /// Changes at this time or earlier.
    pub to: Option<Timestamp>,
    /// JSON Pointer: changes of the values there or below.
    pub path: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(pointer: &str, old: &str, new: &str) -> PatchedLeaf {
        let value = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        PatchedLeaf {
            pointer: pointer.to_owned(),
            old: value(old),
            new: value(new),
        }
    }

    #[test]
    fn a_path_selects_values_at_it_below_it_and_inside_of_them() {
        let timed = leaf(
            "/t",
            r#"{"timestamp":1,"value":20}"#,
            r#"{"timestamp":2,"value":21}"#,
        );
        for (changed, path, expected) in [
            (leaf("/led", "1", "2"), "/led", Some(leaf("/led", "1", "2"))),
            (
                leaf("/led/on", "", "2"),
                "/led",
                Some(leaf("/led/on", "", "2")),
            ),
            (leaf("/leds", "1", "2"), "/led", None),
            (
                timed.clone(),
                "/t/value",
                Some(leaf("/t/value", "20", "21")),
            ),
            (timed.clone(), "/t/unit", None),
            (timed.clone(), "", Some(timed.clone())),
        ] {
            assert_eq!(at(changed, path), expected, "{path}");
        }
    }
}
