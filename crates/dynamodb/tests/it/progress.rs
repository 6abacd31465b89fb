//! Ingest progress: never decreases, and costs one call per operation.

use antumbra_dynamodb::DynamoDbProgress;
use antumbra_service::liveness::IngestProgress;
use antumbra_service::shadows::Layout;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_testkit::dynamodb::Reply;

use crate::store::shadows;

fn at(second: i128) -> Timestamp {
    Timestamp::from_nanoseconds(second * 1_000_000_000)
}

#[tokio::test]
async fn progress_only_increases_and_each_queue_has_its_own() {
    let store = shadows(Layout::Separate).await;
    let progress = DynamoDbProgress::new(store.client.clone(), &store.table);
    assert_eq!(progress.reached("signals").await, Ok(None));
    for (noted, reached) in [(100, 100), (90, 100), (100, 100), (101, 101)] {
        progress.note("signals", at(noted)).await.unwrap();
        assert_eq!(progress.reached("signals").await, Ok(Some(at(reached))));
    }
    assert_eq!(progress.reached("other").await, Ok(None));
    let calls = store.operations();
    let count = |operation: &str| calls.iter().filter(|call| *call == operation).count();
    assert_eq!((count("GetItem"), count("UpdateItem")), (6, 4));
    assert_eq!(calls.len(), 10);
}

#[tokio::test]
async fn concurrent_writers_leave_the_latest() {
    let store = shadows(Layout::Separate).await;
    let progress = &DynamoDbProgress::new(store.client.clone(), &store.table);
    let notes = (0..20).map(|second| progress.note("signals", at(7 * second % 20)));
    for noted in futures_util::future::join_all(notes).await {
        noted.unwrap();
    }
    assert_eq!(progress.reached("signals").await, Ok(Some(at(19))));
}

#[tokio::test]
async fn failures_are_returned() {
    let store = shadows(Layout::Separate).await;
    let progress = DynamoDbProgress::new(store.client.clone(), &store.table);
    let throttled = || vec![Reply::fail(400, "ThrottlingException"); 3];
    store.endpoint.script_next("UpdateItem", throttled());
    assert_eq!(
        progress.note("signals", at(1)).await,
        Err(StoreError::Throttled)
    );
    store.endpoint.script_next("GetItem", throttled());
    assert_eq!(
        progress.reached("signals").await,
        Err(StoreError::Throttled)
    );
}
