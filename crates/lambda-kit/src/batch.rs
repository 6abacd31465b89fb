//! The answer to a batch: which records are to be sent again.
//!
//! An empty list says that all succeeded, so a handler must never answer with less than it knows.

use serde::Serialize;

/// What Lambda's event sources read when `ReportBatchItemFailures` is on.
///
/// ```
/// use antumbra_lambda_kit::batch::BatchResponse;
/// let response = BatchResponse::failed(["222".to_owned()]);
/// assert_eq!(
///     serde_json::to_string(&response).unwrap(),
///     r#"{"batchItemFailures":[{"itemIdentifier":"222"}]}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchResponse {
    batch_item_failures: Vec<BatchItemFailure>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct BatchItemFailure {
    item_identifier: String,
}

impl BatchResponse {
    /// These are to be sent again: message ids of a queue, or the lowest sequence number of a stream.
    pub fn failed(items: impl IntoIterator<Item = String>) -> BatchResponse {
        let failure = |item_identifier| BatchItemFailure { item_identifier };
        BatchResponse {
            batch_item_failures: items.into_iter().map(failure).collect(),
        }
    }
}
