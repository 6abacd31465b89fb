//! Reads a function's response to a batch, as Lambda does.
//!
//! An empty response, `null`, and a missing or empty list mean that everything succeeded. One item without a usable
//! identifier fails the whole batch.

use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BatchResult {
    Success,
    /// These failed: message ids or sequence numbers.
    Failures(Vec<String>),
    /// Invalid response: nothing of the batch counts as done.
    Invalid,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BatchResponse {
    batch_item_failures: Option<Vec<ItemFailure>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemFailure {
    item_identifier: Option<String>,
}

pub(crate) fn read(response: &[u8]) -> BatchResult {
    if response.trim_ascii().is_empty() {
        return BatchResult::Success;
    }
    let Ok(response) = serde_json::from_slice::<Option<BatchResponse>>(response) else {
        return BatchResult::Invalid;
    };
    let failures = response.and_then(|r| r.batch_item_failures);
    let Some(failures) = failures.filter(|list| !list.is_empty()) else {
        return BatchResult::Success;
    };
    let identifiers: Option<Vec<_>> = failures
        .into_iter()
        .map(|failure| failure.item_identifier.filter(|id| !id.is_empty()))
        .collect();
    identifiers.map_or(BatchResult::Invalid, BatchResult::Failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_read_as_lambda_reads_them() {
        let failures =
            |ids: &[&str]| BatchResult::Failures(ids.iter().map(ToString::to_string).collect());
        let cases: &[(&str, BatchResult)] = &[
            ("", BatchResult::Success),
            (" \n", BatchResult::Success),
            ("null", BatchResult::Success),
            ("{}", BatchResult::Success),
            (r#"{"unrelated":1}"#, BatchResult::Success),
            (r#"{"batchItemFailures":null}"#, BatchResult::Success),
            (r#"{"batchItemFailures":[]}"#, BatchResult::Success),
            (
                r#"{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"}]}"#,
                failures(&["a", "b"]),
            ),
            (
                r#"{"batchItemFailures":[{"itemIdentifier":""}]}"#,
                BatchResult::Invalid,
            ),
            (
                r#"{"batchItemFailures":[{"itemIdentifier":null}]}"#,
                BatchResult::Invalid,
            ),
            (
                r#"{"batchItemFailures":[{"id":"a"}]}"#,
                BatchResult::Invalid,
            ),
            (
                r#"{"batchItemFailures":[{"itemIdentifier":"a"},{}]}"#,
                BatchResult::Invalid,
            ),
            (r#"{"batchItemFailures":"a"}"#, BatchResult::Invalid),
            (r#""done""#, BatchResult::Invalid),
            ("{", BatchResult::Invalid),
        ];
        for (response, expected) in cases {
            assert_eq!(&read(response.as_bytes()), expected, "{response}");
        }
    }
}
