//! The past of shadows: recorded changes and differences of two times.

use antumbra_shadow::{PatchedLeaf, State};
use serde::Serialize;
use serde_json::value::RawValue;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

use super::Time;
use crate::history::feed::{FeedChange, FeedPage};
use crate::history::{ChangedDocument, RecordedChange};

/// A recorded change of a shadow: one write of one document, or of both where they are one item.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct HistoryEntry {
    /// Time of the write. It increases with every write of a document.
    pub time: Time,
    /// Version that the write made; that of the document for a removal.
    pub version: i64,
    /// `insert`, `modify` or `remove`.
    pub operation: &'static str,
    /// Client token of the write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_token: Option<String>,
    /// The documents that were written.
    #[cfg_attr(feature = "openapi", schema(example = json!(["reported"])))]
    pub documents: Vec<&'static str>,
    /// Values that changed.
    pub changes: Vec<ValueChange>,
    /// True if values are left out: they are too many for a response, or the state before is not recorded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(default = false, required = false))]
    pub incomplete: bool,
}

/// A value that changed.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ValueChange {
    /// `reported` or `desired`.
    pub state: &'static str,
    /// JSON Pointer of the value.
    pub path: String,
    /// The value before; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub old: Option<Box<RawValue>>,
    /// The value after; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub new: Option<Box<RawValue>>,
}

impl ValueChange {
    pub fn new(state: State, leaf: PatchedLeaf) -> ValueChange {
        let value = |text: Option<String>| text.and_then(|text| RawValue::from_string(text).ok());
        ValueChange {
            state: state.as_str(),
            path: leaf.pointer,
            old: value(leaf.old),
            new: value(leaf.new),
        }
    }
}

/// Returns the values of documents that changed, and whether some are left out.
fn values(documents: Vec<ChangedDocument>) -> (Vec<ValueChange>, bool) {
    let mut changes = Vec::new();
    let mut incomplete = false;
    for ChangedDocument { state, values } in documents {
        incomplete |= values.is_none();
        let values = values.into_iter().flatten();
        changes.extend(values.map(|leaf| ValueChange::new(state, leaf)));
    }
    (changes, incomplete)
}

impl From<RecordedChange> for HistoryEntry {
    fn from(change: RecordedChange) -> HistoryEntry {
        let documents = change.documents.iter();
        let documents = documents.map(|document| document.state.as_str()).collect();
        let (changes, incomplete) = values(change.documents);
        HistoryEntry {
            time: change.time.into(),
            version: change.version.0,
            operation: change.operation.as_str(),
            client_token: change.client_token,
            documents,
            changes,
            incomplete,
        }
    }
}

page! {
    /// A page of recorded changes, newest first.
    HistoryPage { entries: HistoryEntry } from RecordedChange
}

/// A change of a shadow in the change feed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct FeedEntry {
    /// Id of the change, the same each time that it appears.
    pub change_id: String,
    /// Device id.
    pub id: String,
    /// Shadow name.
    pub name: String,
    /// The change.
    #[serde(flatten)]
    pub change: HistoryEntry,
}

/// A stretch of the change feed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ChangePage {
    /// Changes, in order per document.
    pub changes: Vec<FeedEntry>,
    /// Cursor behind these changes, for the next request.
    pub cursor: String,
    /// True if more changes are there already.
    pub has_more: bool,
}

impl From<FeedChange> for FeedEntry {
    fn from(change: FeedChange) -> FeedEntry {
        FeedEntry {
            change_id: change.id,
            id: change.shadow.id().to_owned(),
            name: change.shadow.name().to_owned(),
            change: change.change.into(),
        }
    }
}

impl From<FeedPage> for ChangePage {
    fn from(page: FeedPage) -> ChangePage {
        ChangePage {
            changes: page.changes.into_iter().map(FeedEntry::from).collect(),
            cursor: page.cursor.0,
            has_more: page.has_more,
        }
    }
}

/// The difference of a shadow at two times.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ShadowDifference {
    /// Device id.
    pub id: String,
    /// Shadow name.
    pub name: String,
    /// The earlier time.
    pub from: Time,
    /// The later time.
    pub to: Time,
    /// Values that differ.
    pub changes: Vec<ValueChange>,
    /// True if values are left out because they are too many for a response.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(default = false, required = false))]
    pub incomplete: bool,
}

impl ShadowDifference {
    pub fn new(
        shadow: &crate::shadows::ShadowId,
        from: antumbra_shadow::Timestamp,
        to: antumbra_shadow::Timestamp,
        documents: Vec<ChangedDocument>,
    ) -> ShadowDifference {
        let (changes, incomplete) = values(documents);
        ShadowDifference {
            id: shadow.id().to_owned(),
            name: shadow.name().to_owned(),
            from: from.into(),
            to: to.into(),
            changes,
            incomplete,
        }
    }
}
