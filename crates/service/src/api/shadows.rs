//! Shadows: documents, deltas and results of updates.

use antumbra_shadow::{Changes, Document};
use serde::Serialize;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

use serde_json::value::RawValue;

use super::Time;
use crate::shadows::{self, ShadowId, State, Version};

/// A document with its metadata.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct StoredDocument {
    /// Number of writes. The entity tag of the shadow names it, such as `"r3.d2"` for version 3 of the reported document.
    pub version: i64,
    /// Time of the last write.
    pub timestamp: Time,
    /// Time zone that the last writer named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// Client token of the last write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_token: Option<String>,
    /// The document.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub document: Document,
}

impl From<shadows::StoredDocument> for StoredDocument {
    fn from(stored: shadows::StoredDocument) -> StoredDocument {
        StoredDocument {
            version: stored.version.0,
            timestamp: stored.timestamp.into(),
            tz: stored.zone.map(|zone| zone.as_str().to_owned()),
            client_token: stored.client_token.map(|token| token.as_str().to_owned()),
            document: stored.document,
        }
    }
}

/// A shadow: its reported and desired documents, and the delta.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Shadow {
    /// Device id.
    pub id: String,
    /// Shadow name.
    pub name: String,
    /// State that the device reported; absent if it never did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<StoredDocument>,
    /// State that the device is asked for; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired: Option<StoredDocument>,
    /// Desired values that differ from the reported ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object, required = true))]
    pub delta: Option<Document>,
}

impl Shadow {
    pub fn new(id: &ShadowId, shadow: shadows::Shadow) -> Shadow {
        Shadow {
            id: id.id().to_owned(),
            name: id.name().to_owned(),
            reported: shadow.reported.map(StoredDocument::from),
            desired: shadow.desired.map(StoredDocument::from),
            delta: shadow.delta,
        }
    }
}

/// The delta of a shadow.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Delta {
    /// Device id.
    pub id: String,
    /// Shadow name.
    pub name: String,
    /// Version of the reported document; 0 if there is none.
    pub reported_version: i64,
    /// Version of the desired document; 0 if there is none.
    pub desired_version: i64,
    /// Desired values that differ from the reported ones; `{}` if none do.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub delta: Document,
}

impl Delta {
    pub fn new(id: &ShadowId, shadow: shadows::Shadow) -> Delta {
        let version = |document: Option<shadows::StoredDocument>| {
            document
                .map_or(Version::NONE, |document| document.version)
                .0
        };
        Delta {
            id: id.id().to_owned(),
            name: id.name().to_owned(),
            reported_version: version(shadow.reported),
            desired_version: version(shadow.desired),
            delta: shadow.delta.unwrap_or_default(),
        }
    }
}

/// Bytes of verdicts and of acknowledged pointers in a response. A Lambda response holds 6 MB, and the pointer of a value
/// can be far longer than the value.
const VERDICT_BYTES: usize = 3 * 1024 * 1024;
const ACKNOWLEDGED_BYTES: usize = 1024 * 1024;

/// The result of an update.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct UpdateResult {
    /// Device id.
    pub id: String,
    /// Shadow name.
    pub name: String,
    /// False if the update changed nothing; then nothing was written.
    pub written: bool,
    /// Version of the document after the update; 0 if it does not exist.
    pub version: i64,
    /// Number of attempts; more than 1 if other writers were faster.
    pub attempts: u32,
    /// Verdict for each value, in document order. Left out where the response would become too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<Verdict>>))]
    pub verdicts: Option<Box<RawValue>>,
    /// JSON pointers of desired values that the report acknowledged. Left out where the response would become too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Vec<String>>,
}

impl UpdateResult {
    pub fn new(id: &ShadowId, state: State, result: shadows::UpdateResult) -> UpdateResult {
        let changes = match state {
            State::Reported => &result.reported_changes,
            State::Desired => &result.desired_changes,
        };
        let verdicts = changes.as_ref();
        let verdicts = verdicts.and_then(|changes| changes.to_json(VERDICT_BYTES, |_| true));
        UpdateResult {
            id: id.id().to_owned(),
            name: id.name().to_owned(),
            written: result.written,
            version: result.version(state).0,
            attempts: result.attempts,
            verdicts: verdicts.and_then(|json| RawValue::from_string(json).ok()),
            acknowledged: result.acknowledged.pointers(ACKNOWLEDGED_BYTES),
        }
    }
}

/// The result of an update of both documents of a shadow.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ShadowUpdate {
    /// Device id.
    pub id: String,
    /// Shadow name.
    pub name: String,
    /// False if the update changed nothing; then nothing was written.
    pub written: bool,
    /// Number of attempts; more than 1 if other writers were faster.
    pub attempts: u32,
    /// The reported document after the update.
    pub reported: DocumentUpdate,
    /// The desired document after the update.
    pub desired: DocumentUpdate,
    /// JSON pointers of desired values that the report acknowledged. Left out where the response would become too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Vec<String>>,
}

/// One document in the result of an update.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct DocumentUpdate {
    /// Version after the update; 0 if the document does not exist.
    pub version: i64,
    /// Verdict for each value, if the document was sent. Left out where the response would become too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<Verdict>>))]
    pub verdicts: Option<Box<RawValue>>,
}

impl ShadowUpdate {
    /// Represents the result of an update, one of so many in a response.
    pub fn new(id: &ShadowId, result: &shadows::UpdateResult, results: usize) -> ShadowUpdate {
        let document = |state, changes: &Option<Changes>| {
            let bytes = VERDICT_BYTES / 2 / results;
            let verdicts = changes.as_ref();
            let verdicts = verdicts.and_then(|changes| changes.to_json(bytes, |_| true));
            DocumentUpdate {
                version: result.version(state).0,
                verdicts: verdicts.and_then(|json| RawValue::from_string(json).ok()),
            }
        };
        ShadowUpdate {
            id: id.id().to_owned(),
            name: id.name().to_owned(),
            written: result.written,
            attempts: result.attempts,
            reported: document(State::Reported, &result.reported_changes),
            desired: document(State::Desired, &result.desired_changes),
            acknowledged: result.acknowledged.pointers(ACKNOWLEDGED_BYTES / results),
        }
    }
}

/// Results of many updates, in the order of the request.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct BulkResults {
    /// The results.
    pub results: Vec<BulkResult>,
}

/// The result of one update among many.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct BulkResult {
    /// Device id, as it was sent.
    pub id: String,
    /// Shadow name.
    pub name: String,
    /// HTTP status that the update alone would have.
    pub status: u16,
    /// The result, if the update succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ShadowUpdate>,
    /// The problem, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<BulkError>,
}

/// The problem of one update among many.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct BulkError {
    /// Kind of the problem, to branch on.
    pub code: String,
    /// Reason of this failure, for people.
    pub detail: String,
}

/// The verdict for one value; see [`antumbra_shadow::Change`]. Describes the JSON only.
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[derive(Debug, Serialize)]
pub struct Verdict {
    /// JSON pointer of the value.
    pub pointer: String,
    /// `added`, `updated`, `removed`, or `kept` with the reason.
    pub verdict: String,
    /// Further detail.
    pub note: Option<String>,
    /// The stored value, if there was one.
    pub old: Option<serde_json::Value>,
    /// The sent value, if there was one.
    pub new: Option<serde_json::Value>,
}

/// A shadow in a listing.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ShadowName {
    /// Device id.
    pub id: String,
    /// Shadow name.
    pub name: String,
}

impl From<ShadowId> for ShadowName {
    fn from(shadow: ShadowId) -> ShadowName {
        ShadowName {
            id: shadow.id().to_owned(),
            name: shadow.name().to_owned(),
        }
    }
}

page! {
    /// A page of shadows, ordered by id and name.
    ShadowPage { shadows: ShadowName } from ShadowId
}

/// A document in a listing of shadows.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct DocumentSummary {
    /// Device id.
    pub id: String,
    /// Shadow name.
    pub name: String,
    /// `reported` or `desired`.
    pub state: &'static str,
    /// Number of writes.
    pub version: i64,
    /// Time of the last write.
    pub timestamp: Time,
}

impl From<shadows::DocumentSummary> for DocumentSummary {
    fn from(document: shadows::DocumentSummary) -> DocumentSummary {
        DocumentSummary {
            id: document.shadow.id().to_owned(),
            name: document.shadow.name().to_owned(),
            state: document.state.as_str(),
            version: document.version.0,
            timestamp: document.timestamp.into(),
        }
    }
}

page! {
    /// A page of documents.
    DocumentPage { documents: DocumentSummary } from shadows::DocumentSummary
}
