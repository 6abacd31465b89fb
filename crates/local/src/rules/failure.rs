//! The record that Lambda's failure destination receives for a failed asynchronous invocation.

use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Condition {
    #[serde(rename = "RetriesExhausted")]
    Failed,
    #[serde(rename = "EventAgeExceeded")]
    TooOld,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    version: &'static str,
    timestamp: String,
    request_context: RequestContext<'a>,
    request_payload: &'a RawValue,
    response_payload: ResponsePayload<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestContext<'a> {
    request_id: String,
    function_arn: &'a str,
    condition: Condition,
    approximate_invoke_count: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponsePayload<'a> {
    error_message: &'a str,
}

pub(super) fn record(
    function_arn: &str,
    condition: Condition,
    calls: u32,
    event: &[u8],
    reason: &str,
) -> String {
    let record = Record {
        version: "1.0",
        timestamp: jiff::Timestamp::now().to_string(),
        request_context: RequestContext {
            request_id: uuid::Uuid::new_v4().to_string(),
            function_arn,
            condition,
            approximate_invoke_count: calls,
        },
        // The result of a rule is always JSON.
        request_payload: serde_json::from_slice(event).unwrap_or(RawValue::NULL),
        response_payload: ResponsePayload {
            error_message: reason,
        },
    };
    // Strings and numbers always have a JSON form.
    serde_json::to_string(&record).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use antumbra_notify::redrive::{RedriveOptions, RedriveRoute};

    use super::*;

    #[test]
    fn a_failure_record_has_the_request_and_the_reason() {
        let event = br#"{"topic":"request/get/a/b"}"#;
        let record = record("arn", Condition::TooOld, 0, event, "it waited too long");
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        assert_eq!(record["requestContext"]["condition"], "EventAgeExceeded");
        assert_eq!(record["requestContext"]["approximateInvokeCount"], 0);
        assert_eq!(record["requestPayload"]["topic"], "request/get/a/b");
        assert_eq!(
            record["responsePayload"]["errorMessage"],
            "it waited too long"
        );
    }

    #[test]
    fn a_failed_update_can_be_redriven() {
        let event = br#"{"topic":"shadow/lamp/update","payload":"e30=","timestamp":1769860800000}"#;
        let arn = "arn:aws:lambda:us-east-1:000000000000:function:shadow-requests";
        let message = antumbra_service::redrive::FailedMessage {
            body: record(arn, Condition::Failed, 3, event, "throttled"),
            ..Default::default()
        };
        let route = RedriveRoute::of(&message, &RedriveOptions::default());
        assert!(matches!(route, RedriveRoute::Update(_)), "{route}");
    }
}
