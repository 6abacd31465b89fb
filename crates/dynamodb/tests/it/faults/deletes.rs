//! Deletes whose response was lost.

use antumbra_service::shadows::{Delete, ExpectedVersion, Layout, StoreError, Version};
use antumbra_testkit::sample::{delete, delete_one, numbers, shadow, whole, write_one};

use super::{applied_but_lost, fails, operations};
use crate::store::shadows;

#[tokio::test]
async fn a_delete_whose_response_was_lost_succeeds() {
    let store = shadows(Layout::Separate).await;
    let version = Some(ExpectedVersion::Version(Version(1)));
    for (number, half) in [
        (version, None, "UpdateItem"),
        (None, version, "UpdateItem"),
        (version, version, "TransactWriteItems"),
        (Some(ExpectedVersion::Any), None, "UpdateItem"),
    ]
    .into_iter()
    .enumerate()
    {
        let (reported, desired, operation) = half;
        let lamp = shadow(&format!("lamp-{number}"));
        write_one(&*store, whole(&lamp, 1, 0)).await.unwrap();
        store.endpoint.take_calls();

        store.endpoint.script_next(operation, [applied_but_lost()]);
        let half = Delete {
            shadow: lamp.clone(),
            reported,
            desired,
            other_version: None,
            time: None,
        };
        assert_eq!(delete_one(&*store, half).await, Ok(()));
        let calls = store.endpoint.take_calls();
        assert_eq!(operations(&calls), [operation; 2]);
        let (left_reported, left_desired) = numbers(&*store, &lamp).await;
        assert_eq!(left_reported.is_none(), reported.is_some());
        assert_eq!(left_desired.is_none(), desired.is_some());
    }
}

#[tokio::test]
async fn a_throttled_delete_changes_nothing() {
    let store = shadows(Layout::Combined).await;
    let lamp = shadow("lamp");
    write_one(&*store, whole(&lamp, 1, 0)).await.unwrap();
    store
        .endpoint
        .script(|_| fails(400, "ProvisionedThroughputExceededException"));
    let deleted = delete_one(&*store, delete(&lamp, ExpectedVersion::Any)).await;
    assert_eq!(deleted, Err(StoreError::Throttled));
}
