//! Concurrent writers on DynamoDB.

use antumbra_service::shadows::Layout;
use antumbra_testkit::writers::all_acknowledged_reports_are_kept;

use crate::contract::fresh;

#[tokio::test]
async fn concurrent_writers_of_one_shadow() {
    for layout in [Layout::Separate, Layout::Combined] {
        all_acknowledged_reports_are_kept(fresh(layout).await, 1, 2, 7).await;
    }
}

#[tokio::test]
async fn concurrent_writers_of_many_shadows() {
    for layout in [Layout::Separate, Layout::Combined] {
        all_acknowledged_reports_are_kept(fresh(layout).await, 20, 2, 7).await;
    }
}
