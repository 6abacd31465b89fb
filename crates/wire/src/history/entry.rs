//! One change of one item of a shadow.

use antumbra_registration::Operation;
use antumbra_shadow::{Document, Model, Patch};

use super::key::HistoryKey;
use crate::items::ItemChange;

/// Every so many versions an entry carries the document.
pub const SNAPSHOT_EVERY: u64 = 32;
/// An entry whose diffs have more than this share of the documents' bytes carries the documents.
const SNAPSHOT_SHARE: usize = 8;

/// One change of one item of a shadow. A removal has no documents.
#[derive(Debug, Clone)]
pub struct Entry {
    pub key: HistoryKey,
    pub operation: Operation,
    /// Time of the write that this one follows, also of a delete that is not forgotten yet.
    pub previous_time: Option<u64>,
    pub client_token: Option<String>,
    pub reported: Option<EntryDocument>,
    pub desired: Option<EntryDocument>,
}

/// A document in an entry: its diff, the document after the change, or both.
#[derive(Debug, Clone, Default)]
pub struct EntryDocument {
    /// Left out where it is larger than the document, and for documents that did not exist before.
    pub diff: Option<Patch>,
    pub document: Option<Document>,
}

/// Documents of an item before or after a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ItemDocuments {
    pub reported: Option<Document>,
    pub desired: Option<Document>,
}

impl Entry {
    /// Makes the entry of a change; `None` if no document of a shadow was written or removed.
    pub fn of(change: &ItemChange<'_>, model: &Model) -> Option<Entry> {
        let recorded = change.recorded()?;
        let [before, after] = recorded.documents;
        let (version, previous) = (recorded.version, recorded.previous_version);
        let [reported, desired] = match recorded.operation {
            Operation::Remove => [None, None],
            operation => {
                let follows = operation == Operation::Modify
                    && previous.and_then(|version| version.checked_add(1)) == Some(version);
                let in_turn = follows && version % SNAPSHOT_EVERY != 0;
                documents(before, after, model, in_turn)
            }
        };
        Some(Entry {
            key: recorded.key,
            operation: recorded.operation,
            previous_time: recorded.previous_time,
            client_token: recorded.client_token,
            reported,
            desired,
        })
    }

    /// Returns whether it carries the documents, or records a delete.
    pub fn is_snapshot(&self) -> bool {
        let mut documents = [&self.reported, &self.desired].into_iter().flatten();
        documents.all(|document| document.document.is_some())
    }
}

/// Decides what an entry carries. `in_turn`: the change follows the entry before it, and no document is due.
fn documents(
    before: ItemDocuments,
    after: ItemDocuments,
    model: &Model,
    in_turn: bool,
) -> [Option<EntryDocument>; 2] {
    let pairs = [
        (before.reported, after.reported),
        (before.desired, after.desired),
    ];
    let bytes = |document: &Option<Document>| {
        let text = document.as_ref().map(Document::as_str);
        text.map_or(0, str::len)
    };
    let (mut diff_bytes, mut all_diffs) = (0, true);
    let documents_bytes: usize = pairs.iter().map(|(_, after)| bytes(after)).sum();
    let diffs = pairs.each_ref().map(|(before, after)| {
        let diff = match (before, after) {
            (Some(before), Some(after)) => {
                Patch::between(before, after, model, after.as_str().len())
            }
            _ => None,
        };
        let is_missing = diff.is_none() && after.is_some();
        all_diffs &= !is_missing;
        diff_bytes += diff.as_ref().map_or(0, |diff| diff.to_json().len());
        diff
    });
    let carries_documents =
        !in_turn || !all_diffs || diff_bytes.saturating_mul(SNAPSHOT_SHARE) > documents_bytes;
    let mut diffs = diffs.into_iter();
    pairs.map(|(_, after)| {
        let diff = diffs.next().flatten();
        after.map(|after| EntryDocument {
            diff,
            document: carries_documents.then_some(after),
        })
    })
}
