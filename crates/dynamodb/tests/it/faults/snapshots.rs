//! Read transactions that are cancelled because of one shadow.

use antumbra_service::shadows::{ReadConsistency, ShadowStore as _, StoreError};
use antumbra_testkit::dynamodb::{Call, Reply};
use serde_json::json;

use super::{cancelled, fails, lamps, reason};

fn items(call: &Call) -> usize {
    call.body["TransactItems"].as_array().unwrap().len()
}

/// Cancels transactions with this lamp and names its items.
fn busy(call: &Call, id: &str, code: &str) -> Reply {
    let partition = json!(format!("DS#{id}"));
    let items = call.body["TransactItems"].as_array().unwrap();
    let at_fault = |item: &serde_json::Value| item["Get"]["Key"]["PK"]["S"] == partition;
    if !items.iter().any(at_fault) {
        return Reply::Pass;
    }
    let reasons: Vec<_> = items
        .iter()
        .map(|item| reason(if at_fault(item) { code } else { "None" }))
        .collect();
    cancelled(&reasons)
}

#[tokio::test]
async fn a_shadow_being_written_is_read_again_and_delays_no_other() {
    let (store, shadows, reads) = lamps(5, 5).await;
    let mut calls = 0;
    store.endpoint.script(move |call| {
        calls += 1;
        if calls < 4 {
            busy(call, "lamp-2", "TransactionConflict")
        } else {
            Reply::Pass
        }
    });
    let found = shadows.read_many(&reads, ReadConsistency::Snapshot).await;
    assert!(found.iter().all(Result::is_ok), "{found:?}");
    let sizes: Vec<usize> = store.endpoint.take_calls().iter().map(items).collect();
    assert_eq!(sizes, [10, 8, 2, 2]);
}

#[tokio::test]
async fn only_the_shadow_that_stays_busy_is_throttled() {
    let (store, shadows, reads) = lamps(3, 2).await;
    for code in ["TransactionConflict", "ThrottlingError"] {
        store
            .endpoint
            .script(move |call| busy(call, "lamp-1", code));
        let found = shadows.read_many(&reads, ReadConsistency::Snapshot).await;
        assert!(found[0].is_ok() && found[2].is_ok());
        assert_eq!(found[1], Err(StoreError::Throttled), "{code}");
    }
}

#[tokio::test]
async fn a_transaction_that_is_too_large_is_split() {
    let (store, shadows, reads) = lamps(5, 5).await;
    store.endpoint.script(|call| {
        if items(call) > 4 {
            fails(400, "ValidationException")
        } else {
            Reply::Pass
        }
    });
    let found = shadows.read_many(&reads, ReadConsistency::Snapshot).await;
    assert!(found.iter().all(Result::is_ok), "{found:?}");

    store.endpoint.script(|_| fails(400, "ValidationException"));
    let found = shadows.read_many(&reads, ReadConsistency::Snapshot).await;
    for found in found {
        assert!(matches!(found, Err(StoreError::Invalid(_))));
    }
}
