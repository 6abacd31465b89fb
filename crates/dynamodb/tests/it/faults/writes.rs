//! Writes that are throttled, cancelled, or applied without a response.

use antumbra_service::shadows::{Layout, StoreError, Version, Written};
use antumbra_service::store::ErrorClass;
use antumbra_testkit::dynamodb::{Reply, failure};
use antumbra_testkit::sample::{numbers, report_of, shadow, whole, write_one};
use serde_json::{Value, json};

use super::{applied_but_lost, cancelled, fails, operations, reason, unavailable};
use crate::store::shadows;

/// A failed condition with this stored item.
fn failed_condition(item: Option<Value>) -> Reply {
    let (status, mut body) = failure(400, "ConditionalCheckFailedException");
    if let Some(item) = item {
        body["Item"] = item;
    }
    Reply::Respond(status, body)
}

#[tokio::test]
async fn a_throttled_write_is_retried_and_then_throttled() {
    let store = shadows(Layout::Separate).await;
    let lamp = shadow("lamp");
    for code in [
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "RequestLimitExceeded",
    ] {
        store.endpoint.script(move |_| fails(400, code));
        let written = write_one(&*store, report_of(&lamp, 1, 0)).await;
        assert_eq!(written, Err(StoreError::Throttled), "{code}");
        assert_eq!(store.endpoint.take_calls().len(), 3, "{code}");
        let written = write_one(&*store, whole(&lamp, 1, 0)).await;
        assert_eq!(written, Err(StoreError::Throttled), "{code}");
        store.endpoint.take_calls();
    }
    let throttle = || fails(400, "ThrottlingException");
    store
        .endpoint
        .script_next("PutItem", [throttle(), throttle()]);
    let written = write_one(&*store, report_of(&lamp, 1, 0)).await;
    assert_eq!(written.unwrap().reported, Some(Version(1)));
}

/// Another transaction holds the item: nothing was written, and a retry may succeed.
#[tokio::test]
async fn a_write_that_meets_a_transaction_is_throttled() {
    let store = shadows(Layout::Separate).await;
    store
        .endpoint
        .script(|_| fails(400, "TransactionConflictException"));
    let written = write_one(&*store, report_of(&shadow("lamp"), 1, 0)).await;
    assert_eq!(written, Err(StoreError::Throttled));
}

#[tokio::test]
async fn a_write_whose_response_was_lost_does_not_conflict_with_itself() {
    let losses = [
        applied_but_lost(),
        Reply::pass_then_fail(503, "ServiceUnavailable"),
        Reply::PassThenDisconnect,
    ];
    for layout in [Layout::Separate, Layout::Combined] {
        let store = shadows(layout).await;
        let lamp = shadow("lamp");
        for (version, loss) in losses.iter().enumerate() {
            let version = version as i64;
            store.endpoint.script_next("PutItem", [loss.clone()]);
            let sent = match layout {
                Layout::Separate => report_of(&lamp, version, version),
                Layout::Combined => whole(&lamp, version, version),
            };
            let written = write_one(&*store, sent).await.unwrap();
            assert_eq!(written.reported, Some(Version(version + 1)));
            let calls = store.endpoint.take_calls();
            assert_eq!(operations(&calls), ["PutItem", "PutItem"]);
            assert_eq!(numbers(&*store, &lamp).await.0.unwrap().1, version + 1);
            store.endpoint.take_calls();
        }
    }
}

/// DynamoDB recognises a repeated transaction by its token.
#[tokio::test]
async fn a_transaction_whose_response_was_lost_is_applied_once() {
    let store = shadows(Layout::Separate).await;
    let lamp = shadow("lamp");
    for (version, loss) in [applied_but_lost(), Reply::PassThenDisconnect]
        .iter()
        .enumerate()
    {
        let version = version as i64;
        store
            .endpoint
            .script_next("TransactWriteItems", [loss.clone()]);
        let written = write_one(&*store, whole(&lamp, version, version)).await;
        let next = Some(Version(version + 1));
        let expected = Written {
            reported: next,
            desired: next,
        };
        assert_eq!(written, Ok(expected));
        let calls = store.endpoint.take_calls();
        assert_eq!(operations(&calls), ["TransactWriteItems"; 2]);
        let token = &calls[0].body["ClientRequestToken"];
        assert!(token.is_string());
        assert_eq!(token, &calls[1].body["ClientRequestToken"]);
        let (reported, desired) = numbers(&*store, &lamp).await;
        assert_eq!(reported.unwrap().1, version + 1);
        assert_eq!(desired.unwrap().1, version + 1);
        store.endpoint.take_calls();
    }
}

#[tokio::test]
async fn errors_after_a_lost_response_are_unavailable() {
    let store = shadows(Layout::Separate).await;
    let lamp = shadow("lamp");
    let others = json!({
        "PK": {"S": "DS#lamp"}, "SK": {"S": "DSR#main"}, "version": {"N": "1"},
        "timestamp": {"N": "1"}, "reported": {"M": {"n": {"N": "1"}}},
    });
    let lost = || fails(500, "InternalServerError");
    let throttle = || fails(400, "ThrottlingException");
    for replies in [
        vec![lost(), throttle(), throttle()],
        vec![throttle(), lost(), throttle()],
        // It may be another writer's, or ours overwritten by another.
        vec![lost(), failed_condition(Some(others))],
        vec![lost(), failed_condition(None)],
    ] {
        store.endpoint.script_next("PutItem", replies);
        unavailable(write_one(&*store, report_of(&lamp, 1, 0)).await);
    }
    let transactions = [lost(), throttle(), throttle()];
    store
        .endpoint
        .script_next("TransactWriteItems", transactions);
    unavailable(write_one(&*store, whole(&lamp, 1, 0)).await);
    assert_eq!(numbers(&*store, &lamp).await, (None, None));
}

/// Throttling is a response: nothing was written, so the conflict is with another writer.
#[tokio::test]
async fn a_conflict_after_a_throttle_is_a_conflict() {
    let store = shadows(Layout::Separate).await;
    let lamp = shadow("lamp");
    write_one(&*store, report_of(&lamp, 1, 0)).await.unwrap();
    let throttle = fails(400, "ThrottlingException");
    store.endpoint.script_next("PutItem", [throttle]);
    let written = write_one(&*store, report_of(&lamp, 1, 0)).await;
    let conflict = StoreError::Conflict {
        expected: Version(0),
        actual: Some(Version(1)),
    };
    assert_eq!(written, Err(conflict));
}

#[tokio::test]
async fn every_cancellation_reason_has_its_own_error() {
    let store = shadows(Layout::Separate).await;
    let lamp = shadow("lamp");
    let none = || reason("None");
    let stored = json!({"version": {"N": "7"}});
    let conflict = json!({"Code": "ConditionalCheckFailed", "Item": stored});
    let too_large =
        json!({"Code": "ValidationError", "Message": "Item size has exceeded the maximum"});
    let conflict_at = |actual| StoreError::Conflict {
        expected: Version(0),
        actual,
    };
    let throttled = Some(StoreError::Throttled);
    let provisioned = reason("ProvisionedThroughputExceeded");
    let failed = reason("ConditionalCheckFailed");
    use ErrorClass::{Conflict, Invalid, TooLarge, Unavailable};
    for (reasons, class, expected) in [
        (
            [none(), conflict.clone()],
            Conflict,
            Some(conflict_at(Some(Version(7)))),
        ),
        ([failed, none()], Conflict, Some(conflict_at(None))),
        ([reason("ThrottlingError"), conflict], Conflict, None),
        (
            [none(), reason("TransactionConflict")],
            Unavailable,
            throttled.clone(),
        ),
        (
            [reason("ThrottlingError"), none()],
            Unavailable,
            throttled.clone(),
        ),
        ([none(), provisioned], Unavailable, throttled),
        ([none(), reason("ValidationError")], Invalid, None),
        ([too_large, none()], TooLarge, None),
        ([none(), reason("SomethingNew")], Unavailable, None),
    ] {
        let reply = cancelled(&reasons);
        store.endpoint.script(move |_| reply.clone());
        let error = write_one(&*store, whole(&lamp, 1, 0)).await.unwrap_err();
        assert_eq!(error.class(), class, "{reasons:?}: {error}");
        if let Some(expected) = expected {
            assert_eq!(error, expected, "{reasons:?}");
        }
    }
}
