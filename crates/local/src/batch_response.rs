//! Reads a function's response to a batch, as Lambda does.
//!
//! An empty response, `null`, and a missing or empty list mean that everything succeeded. One item without a usable
//! identifier fails the whole batch.

use serde::Deserialize;

/// A function's response to its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Everything succeeded.
    Success,
    /// These failed: message ids or sequence numbers.
    Failures(Vec<String>),
    /// Invalid response: nothing of the batch counts as done.
    Invalid,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BatchResponse {
    #[serde(default)]
    batch_item_failures: Option<Vec<ItemFailure>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemFailure {
    #[serde(default)]
    item_identifier: Option<String>,
}

pub(crate) fn read(response: &[u8]) -> Answer {
    if response.trim_ascii().is_empty() {
        return Answer::Success;
    }
    let Ok(response) = serde_json::from_slice::<Option<BatchResponse>>(response) else {
        return Answer::Invalid;
    };
    let failures = response.and_then(|r| r.batch_item_failures);
    let Some(failures) = failures.filter(|list| !list.is_empty()) else {
        return Answer::Success;
    };
    let identifiers: Option<Vec<_>> = failures
        .into_iter()
        .map(|failure| failure.item_identifier.filter(|id| !id.is_empty()))
        .collect();
    identifiers.map_or(Answer::Invalid, Answer::Failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_mean_what_they_mean_to_lambda() {
        let failures =
            |ids: &[&str]| Answer::Failures(ids.iter().map(ToString::to_string).collect());
        let cases: &[(&str, Answer)] = &[
            ("", Answer::Success),
            (" \n", Answer::Success),
            ("null", Answer::Success),
            ("{}", Answer::Success),
            (r#"{"unrelated":1}"#, Answer::Success),
            (r#"{"batchItemFailures":null}"#, Answer::Success),
            (r#"{"batchItemFailures":[]}"#, Answer::Success),
            (
                r#"{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"}]}"#,
                failures(&["a", "b"]),
            ),
            (
                r#"{"batchItemFailures":[{"itemIdentifier":""}]}"#,
                Answer::Invalid,
            ),
            (
                r#"{"batchItemFailures":[{"itemIdentifier":null}]}"#,
                Answer::Invalid,
            ),
            (r#"{"batchItemFailures":[{"id":"a"}]}"#, Answer::Invalid),
            (
                r#"{"batchItemFailures":[{"itemIdentifier":"a"},{}]}"#,
                Answer::Invalid,
            ),
            (r#"{"batchItemFailures":"a"}"#, Answer::Invalid),
            (r#""done""#, Answer::Invalid),
            ("{", Answer::Invalid),
        ];
        for (response, expected) in cases {
            assert_eq!(&read(response.as_bytes()), expected, "{response}");
        }
    }
}
