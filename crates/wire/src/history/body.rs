//! The diffs and documents of an entry, as they are stored.

use antumbra_shadow::{Document, Patch, PatchError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::compress::{CompressError, PLAIN_BYTES, compress, decompress};
use super::entry::EntryDocument;

/// Bytes of a compressed body in one item, well below DynamoDB's limit of 400 KB.
pub const PART_BYTES: usize = 350 * 1024;

/// A body as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredBody {
    Text(String),
    /// Compressed; the first part is in the entry itself.
    Compressed(Vec<Vec<u8>>),
}

/// A stored body that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error(transparent)]
    Compress(#[from] CompressError),
    #[error("not the body of an entry: {0}")]
    Json(String),
    #[error(transparent)]
    Patch(#[from] PatchError),
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Body {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reported: Option<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    desired: Option<Part>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Part {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    diff: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    document: Option<Document>,
}

impl StoredBody {
    /// Encodes the documents of an entry, reported and desired; `None` if there is nothing to store.
    pub fn encode(documents: [&Option<EntryDocument>; 2]) -> Option<StoredBody> {
        let part = |document: &Option<EntryDocument>| {
            let document = document.as_ref()?;
            let diff = document.diff.as_ref();
            // The text of a patch is JSON.
            let diff = diff.and_then(|diff| RawValue::from_string(diff.to_json()).ok());
            let document = document.document.clone();
            Some(Part { diff, document })
        };
        let [reported, desired] = documents.map(part);
        if reported.is_none() && desired.is_none() {
            return None;
        }
        // Documents and raw JSON always have a JSON form.
        let text = serde_json::to_string(&Body { reported, desired }).unwrap_or_default();
        if text.len() <= PLAIN_BYTES {
            return Some(StoredBody::Text(text));
        }
        let bytes = compress(&text);
        let parts = bytes.chunks(PART_BYTES).map(<[u8]>::to_vec).collect();
        Some(StoredBody::Compressed(parts))
    }

    /// Decodes the documents of an entry, reported and desired.
    pub fn decode(&self) -> Result<[Option<EntryDocument>; 2], BodyError> {
        let body: Body = match self {
            StoredBody::Text(text) => read(text)?,
            StoredBody::Compressed(parts) => read(&decompress(&parts.concat())?)?,
        };
        let part = |part: Option<Part>| -> Result<_, BodyError> {
            let Some(Part { diff, document }) = part else {
                return Ok(None);
            };
            let diff = diff.map(|diff| Patch::parse(diff.get())).transpose()?;
            Ok(Some(EntryDocument { diff, document }))
        };
        Ok([part(body.reported)?, part(body.desired)?])
    }
}

fn read(text: &str) -> Result<Body, BodyError> {
    serde_json::from_str(text).map_err(|error| BodyError::Json(error.to_string()))
}
