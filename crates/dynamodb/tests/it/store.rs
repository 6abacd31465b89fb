//! A fresh table, and an endpoint before it.

use antumbra_dynamodb::{DynamoDbShadows, MAIN, ShadowTableConfig, Table};
use antumbra_service::shadows::Layout;
use antumbra_testkit::dynamodb::{Endpoint, address, client, table_name};
use aws_sdk_dynamodb::Client;

/// A store with the endpoint its calls pass.
pub(crate) struct Store {
    pub(crate) shadows: DynamoDbShadows,
    pub(crate) endpoint: Endpoint,
    pub(crate) client: Client,
    pub(crate) table: String,
}

impl Store {
    pub(crate) async fn fresh(layout: Layout) -> Store {
        let endpoint = Endpoint::start(address()).await;
        let client = client(&endpoint);
        let table = table_name();
        Table {
            name: &table,
            ..MAIN
        }
        .ensure(&client)
        .await
        .unwrap();
        endpoint.take_calls();
        let config = ShadowTableConfig::new(&table).layout(layout);
        Store {
            shadows: DynamoDbShadows::new(client.clone(), config),
            endpoint,
            client,
            table,
        }
    }
}
