//! Contracts of the ports, on DynamoDB.

use antumbra_dynamodb::{DynamoDbSensors, DynamoDbShadows, DynamoDbSuspensions};
use antumbra_service::shadows::Layout;
use antumbra_testkit::writers::{all_acknowledged_reports_are_kept, write_times_increase};

use crate::store;

async fn shadows(layout: Layout) -> DynamoDbShadows {
    store::shadows(layout).await.clone()
}

async fn sensors() -> DynamoDbSensors {
    store::sensors().await.clone()
}

antumbra_testkit::shadow_contract!(crate::contract::shadows);

mod of_sensors {
    antumbra_testkit::sensor_contract!(crate::contract::sensors);
}

#[tokio::test]
async fn suspensions_keep_the_contract() {
    let store = store::clients().await;
    let suspensions = DynamoDbSuspensions::new(store.client.clone(), &store.table);
    antumbra_testkit::suspensions::contract(&suspensions).await;
}

#[tokio::test]
async fn write_times_increase_whatever_the_clocks() {
    for layout in [Layout::Separate, Layout::Combined] {
        write_times_increase(shadows(layout).await, 7).await;
    }
}

#[tokio::test]
async fn concurrent_writers() {
    for layout in [Layout::Separate, Layout::Combined] {
        for shadow_count in [1, 20] {
            all_acknowledged_reports_are_kept(shadows(layout).await, shadow_count, 2, 7).await;
        }
    }
}
