//! Writes that are throttled, cancelled, or done although nobody heard.

use antumbra_service::shadows::{Layout, ShadowId, StoreError, Version, Write, Written};
use antumbra_service::store::ErrorClass;
use antumbra_testkit::dynamodb::{Reply, failure};
use antumbra_testkit::sample::{new, number, numbers, shadow, whole, write, write_one};
use serde_json::{Value, json};

use super::{cancelled, done_but_lost, fails, operations, reason, unavailable};
use crate::store::Store;

fn reported(lamp: &ShadowId, n: i64, expected: i64) -> Write {
    Write {
        reported: new(number(n), expected),
        ..write(lamp)
    }
}

/// DynamoDB says that a condition failed, and that this is stored.
fn refused(item: Option<Value>) -> Reply {
    let (status, mut body) = failure(400, "ConditionalCheckFailedException");
    if let Some(item) = item {
        body["Item"] = item;
    }
    Reply::Respond(status, body)
}

#[tokio::test]
async fn a_throttled_write_is_tried_again_and_then_throttled() {
    let store = Store::fresh(Layout::Separate).await;
    let lamp = shadow("lamp");
    for code in [
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "RequestLimitExceeded",
    ] {
        store.endpoint.script(move |_| fails(400, code));
        let written = write_one(&store.shadows, reported(&lamp, 1, 0)).await;
        assert_eq!(written, Err(StoreError::Throttled), "{code}");
        assert_eq!(store.endpoint.take_calls().len(), 3, "{code}");
        let written = write_one(&store.shadows, whole(&lamp, 1, 0)).await;
        assert_eq!(written, Err(StoreError::Throttled), "{code}");
        store.endpoint.take_calls();
    }
    let throttle = || fails(400, "ThrottlingException");
    store
        .endpoint
        .script_next("PutItem", [throttle(), throttle()]);
    let written = write_one(&store.shadows, reported(&lamp, 1, 0)).await;
    assert_eq!(written.unwrap().reported, Some(Version(1)));
}

/// Another transaction is at the same item: nothing was written, and a moment later it may be.
#[tokio::test]
async fn a_write_into_a_running_transaction_is_throttled() {
    let store = Store::fresh(Layout::Separate).await;
    store
        .endpoint
        .script(|_| fails(400, "TransactionConflictException"));
    let written = write_one(&store.shadows, reported(&shadow("lamp"), 1, 0)).await;
    assert_eq!(written, Err(StoreError::Throttled));
}

#[tokio::test]
async fn an_answer_that_was_lost_is_no_conflict_with_ourselves() {
    let losses = [
        done_but_lost(),
        Reply::pass_then_fail(503, "ServiceUnavailable"),
        Reply::PassThenDisconnect,
    ];
    for layout in [Layout::Separate, Layout::Combined] {
        let store = Store::fresh(layout).await;
        let lamp = shadow("lamp");
        for (version, loss) in losses.iter().enumerate() {
            let version = version as i64;
            store.endpoint.script_next("PutItem", [loss.clone()]);
            let sent = match layout {
                Layout::Separate => reported(&lamp, version, version),
                Layout::Combined => whole(&lamp, version, version),
            };
            let written = write_one(&store.shadows, sent).await.unwrap();
            assert_eq!(written.reported, Some(Version(version + 1)));
            let calls = store.endpoint.take_calls();
            assert_eq!(operations(&calls), ["PutItem", "PutItem"]);
            assert_eq!(
                numbers(&store.shadows, &lamp).await.0.unwrap().1,
                version + 1
            );
            store.endpoint.take_calls();
        }
    }
}

/// A transaction carries a token by which DynamoDB knows it again.
#[tokio::test]
async fn a_transaction_whose_answer_was_lost_is_made_once() {
    let store = Store::fresh(Layout::Separate).await;
    let lamp = shadow("lamp");
    for (version, loss) in [done_but_lost(), Reply::PassThenDisconnect]
        .iter()
        .enumerate()
    {
        let version = version as i64;
        store
            .endpoint
            .script_next("TransactWriteItems", [loss.clone()]);
        let written = write_one(&store.shadows, whole(&lamp, version, version)).await;
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
        let (reported, desired) = numbers(&store.shadows, &lamp).await;
        assert_eq!(reported.unwrap().1, version + 1);
        assert_eq!(desired.unwrap().1, version + 1);
        store.endpoint.take_calls();
    }
}

#[tokio::test]
async fn after_a_lost_answer_only_unavailable_is_sure() {
    let store = Store::fresh(Layout::Separate).await;
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
        // Somebody else's, or ours with another's over it: there is no telling.
        vec![lost(), refused(Some(others))],
        vec![lost(), refused(None)],
    ] {
        store.endpoint.script_next("PutItem", replies);
        unavailable(write_one(&store.shadows, reported(&lamp, 1, 0)).await);
    }
    let transactions = [lost(), throttle(), throttle()];
    store
        .endpoint
        .script_next("TransactWriteItems", transactions);
    unavailable(write_one(&store.shadows, whole(&lamp, 1, 0)).await);
    assert_eq!(numbers(&store.shadows, &lamp).await, (None, None));
}

/// To be throttled is an answer: nothing was done, and the conflict is with somebody else.
#[tokio::test]
async fn a_conflict_after_a_throttle_is_a_conflict() {
    let store = Store::fresh(Layout::Separate).await;
    let lamp = shadow("lamp");
    write_one(&store.shadows, reported(&lamp, 1, 0))
        .await
        .unwrap();
    let throttle = fails(400, "ThrottlingException");
    store.endpoint.script_next("PutItem", [throttle]);
    let written = write_one(&store.shadows, reported(&lamp, 1, 0)).await;
    let conflict = StoreError::Conflict {
        expected: Version(0),
        actual: Some(Version(1)),
    };
    assert_eq!(written, Err(conflict));
}

#[tokio::test]
async fn every_reason_of_a_cancelled_transaction_is_told_apart() {
    let store = Store::fresh(Layout::Separate).await;
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
    for (reasons, status, expected) in [
        (
            [none(), conflict.clone()],
            ErrorClass::Conflict,
            Some(conflict_at(Some(Version(7)))),
        ),
        (
            [reason("ConditionalCheckFailed"), none()],
            ErrorClass::Conflict,
            Some(conflict_at(None)),
        ),
        (
            [reason("ThrottlingError"), conflict],
            ErrorClass::Conflict,
            None,
        ),
        (
            [none(), reason("TransactionConflict")],
            ErrorClass::Unavailable,
            Some(StoreError::Throttled),
        ),
        (
            [reason("ThrottlingError"), none()],
            ErrorClass::Unavailable,
            Some(StoreError::Throttled),
        ),
        (
            [none(), reason("ProvisionedThroughputExceeded")],
            ErrorClass::Unavailable,
            Some(StoreError::Throttled),
        ),
        (
            [none(), reason("ValidationError")],
            ErrorClass::Invalid,
            None,
        ),
        ([too_large, none()], ErrorClass::TooLarge, None),
        (
            [none(), reason("SomethingNew")],
            ErrorClass::Unavailable,
            None,
        ),
    ] {
        let reply = cancelled(&reasons);
        store.endpoint.script(move |_| reply.clone());
        let error = write_one(&store.shadows, whole(&lamp, 1, 0))
            .await
            .unwrap_err();
        assert_eq!(error.class(), status, "{reasons:?}: {error}");
        if let Some(expected) = expected {
            assert_eq!(error, expected, "{reasons:?}");
        }
    }
}
