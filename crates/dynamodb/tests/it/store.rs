//! Shadows in a new table behind an endpoint.

use antumbra_dynamodb::{DynamoDbShadows, MAIN, ShadowTableConfig};
use antumbra_service::shadows::Layout;
use antumbra_testkit::dynamodb::{Endpoint, TestTable};
use aws_sdk_dynamodb::Client;

/// A store and the endpoint of its calls.
pub(crate) struct Store {
    pub(crate) shadows: DynamoDbShadows,
    pub(crate) endpoint: Endpoint,
    pub(crate) client: Client,
    pub(crate) table: String,
}

impl Store {
    pub(crate) async fn fresh(layout: Layout) -> Store {
        let table = TestTable::create(MAIN).await;
        let config = ShadowTableConfig::new(&table.name).layout(layout);
        Store {
            shadows: DynamoDbShadows::new(table.client.clone(), config),
            endpoint: table.endpoint,
            client: table.client,
            table: table.name,
        }
    }
}
