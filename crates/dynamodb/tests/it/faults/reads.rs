//! Unprocessed keys and failed batches.

use antumbra_service::shadows::{DocumentSet, Read, ReadConsistency, ShadowStore as _, StoreError};
use antumbra_testkit::dynamodb::{Call, Reply};
use antumbra_testkit::sample::shadow;
use serde_json::{Value, json};

use super::{fails, lamps, unavailable};

/// A response without items and with these keys unprocessed.
fn unprocessed(call: &Call, left: impl Fn(usize, &Value) -> bool) -> Reply {
    let requested = call.body["RequestItems"].as_object().unwrap();
    let (table, requested) = requested.iter().next().unwrap();
    let keys = requested["Keys"].as_array().unwrap().iter().enumerate();
    let keys: Vec<&Value> = keys
        .filter(|(place, key)| left(*place, key))
        .map(|(_, key)| key)
        .collect();
    let left = if keys.is_empty() {
        json!({})
    } else {
        json!({table: {"Keys": keys, "ConsistentRead": true}})
    };
    Reply::Respond(200, json!({"Responses": {}, "UnprocessedKeys": left}))
}

fn is_of(key: &Value, id: &str) -> bool {
    key["PK"]["S"] == json!(format!("DS#{id}"))
}

#[tokio::test]
async fn unprocessed_keys_are_requested_again() {
    let (store, shadows, reads) = lamps(3, 5).await;
    let mut calls = 0;
    store.endpoint.script(move |call| {
        calls += 1;
        match calls {
            1 | 2 => unprocessed(call, |_, _| true),
            _ => Reply::Pass,
        }
    });
    let found = shadows.read_many(&reads, ReadConsistency::Strong).await;
    assert!(found.iter().all(Result::is_ok), "{found:?}");
    let calls = store.endpoint.take_calls();
    assert_eq!(calls.len(), 3);
    let requested = &calls[2].body["RequestItems"][&store.table];
    assert_eq!(requested["ConsistentRead"], json!(true), "as at first");
}

#[tokio::test]
async fn only_keys_that_stay_unprocessed_are_unavailable() {
    let (store, shadows, reads) = lamps(3, 2).await;
    let mut calls = 0;
    store.endpoint.script(move |call| {
        calls += 1;
        // A call after a complete response would return nothing.
        match calls {
            1 => Reply::Pass,
            _ => unprocessed(call, |_, _| true),
        }
    });
    let first = shadows.read_many(&reads, ReadConsistency::Strong).await;
    assert!(first.iter().all(Result::is_ok));

    store
        .endpoint
        .script(move |call| unprocessed(call, |_, key| is_of(key, "lamp-1")));
    store.endpoint.take_calls();
    let found = shadows.read_many(&reads, ReadConsistency::Strong).await;
    assert_eq!(found[0], Err(StoreError::NotFound));
    assert_eq!(found[2], Err(StoreError::NotFound));
    let text = unavailable(found[1].clone());
    assert_eq!(text, "BatchGetItem: left unprocessed 2 times");
    let calls = store.endpoint.take_calls();
    let requested: Vec<usize> = calls
        .iter()
        .map(|call| {
            let requested = &call.body["RequestItems"][&store.table]["Keys"];
            requested.as_array().unwrap().len()
        })
        .collect();
    assert_eq!(
        requested,
        [6, 2, 2],
        "a try that brought something is not counted"
    );
}

#[tokio::test]
async fn reads_continue_while_there_is_progress() {
    let (store, shadows, reads) = lamps(4, 1).await;
    store
        .endpoint
        .script(|call| unprocessed(call, |place, _| place > 0));
    let found = shadows.read_many(&reads, ReadConsistency::Strong).await;
    let absent = vec![Err(StoreError::NotFound); 4];
    assert_eq!(found, absent);
    assert_eq!(store.endpoint.take_calls().len(), 8);
}

#[tokio::test]
async fn a_failed_call_fails_only_its_own_keys() {
    let (store, shadows, _) = lamps(1, 5).await;
    let reads: Vec<Read> = (0..150)
        .map(|n| Read {
            shadow: shadow(&format!("lamp-{n}")),
            parts: DocumentSet::Reported,
        })
        .collect();
    store.endpoint.script(|call| {
        let text = call.body.to_string();
        if text.contains("DS#lamp-120") {
            fails(400, "AccessDeniedException")
        } else {
            Reply::Pass
        }
    });
    let found = shadows.read_many(&reads, ReadConsistency::Strong).await;
    assert!(found[0].is_ok());
    assert_eq!(found[99], Err(StoreError::NotFound));
    for failed in &found[100..] {
        let text = unavailable(failed.clone());
        assert_eq!(text, "BatchGetItem: AccessDeniedException");
    }
}
