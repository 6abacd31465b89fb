//! The record that Lambda's failure destination receives for a failed asynchronous invocation.

use serde::Serialize;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Condition {
    #[serde(rename = "RetriesExhausted")]
    Failed,
    #[serde(rename = "EventAgeExceeded")]
    TooOld,
}

pub(super) fn record(
    function_arn: &str,
    condition: Condition,
    calls: u32,
    event: &[u8],
    reason: &str,
) -> String {
    let record = json!({
        "version": "1.0",
        "timestamp": jiff::Timestamp::now().to_string(),
        "requestContext": {
            "requestId": uuid::Uuid::new_v4().to_string(),
            "functionArn": function_arn,
            "condition": condition,
            "approximateInvokeCount": calls,
        },
        // The result of a rule is always JSON.
        "requestPayload": serde_json::from_slice::<Value>(event).unwrap_or_default(),
        "responsePayload": { "errorMessage": reason },
    });
    record.to_string()
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
