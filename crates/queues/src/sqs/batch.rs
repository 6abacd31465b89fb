//! Requests for up to ten messages, each of which succeeds or fails on its own.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::queue::is_name;

const MAX_ENTRIES: usize = 10;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Batch<T> {
    pub(super) queue_url: String,
    #[serde(default = "Vec::new")]
    pub(super) entries: Vec<Entry<T>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Entry<T> {
    #[serde(rename = "Id")]
    id: String,
    #[serde(flatten)]
    pub(super) fields: T,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct BatchResult<T> {
    successful: Vec<Entry<T>>,
    failed: Vec<Failure>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    id: String,
    code: String,
    message: String,
    sender_fault: bool,
}

impl<T> Batch<T> {
    /// Serves each entry and collects the results.
    pub(super) fn serve_each<R>(
        self,
        mut serve: impl FnMut(T) -> Result<R, ApiError>,
    ) -> Result<BatchResult<R>, ApiError> {
        self.check()?;
        let mut result = BatchResult {
            successful: Vec::new(),
            failed: Vec::new(),
        };
        for Entry { id, fields } in self.entries {
            match serve(fields) {
                Ok(fields) => result.successful.push(Entry { id, fields }),
                Err(error) => result.failed.push(Failure {
                    id,
                    code: error.query_code,
                    message: error.message,
                    sender_fault: error.sender,
                }),
            }
        }
        Ok(result)
    }

    fn check(&self) -> Result<(), ApiError> {
        let ids: BTreeSet<_> = self.entries.iter().map(|entry| &entry.id).collect();
        if ids.is_empty() {
            let text = "There should be at least one entry in the request.";
            Err(ApiError::sqs("EmptyBatchRequest", text))
        } else if self.entries.len() > MAX_ENTRIES {
            let text = "Maximum number of entries per request are 10.";
            Err(ApiError::sqs("TooManyEntriesInBatchRequest", text))
        } else if ids.len() < self.entries.len() {
            let text = "Id repeated in the batch.";
            Err(ApiError::sqs("BatchEntryIdsNotDistinct", text))
        } else if !ids.iter().all(|id| id.len() <= 80 && is_name(id)) {
            let text = "A batch entry id can only contain alphanumeric characters, hyphens and underscores. \
                 It can be at most 80 letters long.";
            Err(ApiError::sqs("InvalidBatchEntryId", text))
        } else {
            Ok(())
        }
    }
}
