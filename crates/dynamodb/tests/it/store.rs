//! A port on a new table behind an endpoint.

use std::collections::HashMap;
use std::ops::Deref;

use antumbra_dynamodb::{
    DynamoDbClients, DynamoDbInbox, DynamoDbSensors, DynamoDbShadows, MAIN, MESSAGES, SensorConfig,
    ShadowTableConfig, TableDefinition,
};
use antumbra_service::shadows::Layout;
use antumbra_testkit::dynamodb::{Endpoint, Reply, TestTable};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;

pub(crate) type Item = HashMap<String, AttributeValue>;

/// A port, and the endpoint of its calls.
pub(crate) struct Store<P> {
    port: P,
    pub(crate) endpoint: Endpoint,
    pub(crate) client: Client,
    pub(crate) table: String,
    pub(crate) stream: String,
}

impl<P> Deref for Store<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.port
    }
}

impl<P> Store<P> {
    async fn create(definition: TableDefinition<'_>, port: impl FnOnce(Client, &str) -> P) -> Self {
        let table = TestTable::create(definition).await;
        Store {
            port: port(table.client.clone(), &table.name),
            endpoint: table.endpoint,
            client: table.client,
            table: table.name,
            stream: table.stream_arn,
        }
    }

    /// Puts an item with these attributes into the table.
    pub(crate) async fn put(&self, attributes: &[(&str, &str)]) {
        let mut put = self.client.put_item().table_name(&self.table);
        for (name, value) in attributes {
            put = put.item(*name, text(value));
        }
        put.send().await.unwrap();
    }

    /// Returns all items of the table.
    pub(crate) async fn items(&self) -> Vec<Item> {
        let found = self.client.scan().table_name(&self.table).send().await;
        found.unwrap().items.unwrap_or_default()
    }

    /// The next call of an operation is applied, but its response is lost.
    pub(crate) fn lose_response(&self, operation: &'static str) {
        self.endpoint
            .script_next(operation, [Reply::PassThenDisconnect]);
    }

    /// Returns the operations since the last call.
    pub(crate) fn operations(&self) -> Vec<String> {
        self.endpoint.take_operations()
    }
}

pub(crate) async fn shadows(layout: Layout) -> Store<DynamoDbShadows> {
    let config = |table: &str| ShadowTableConfig::new(table).layout(layout);
    Store::create(MAIN, |client, table| {
        DynamoDbShadows::new(client, config(table))
    })
    .await
}

pub(crate) async fn sensors() -> Store<DynamoDbSensors> {
    let config = |table: &str| SensorConfig {
        shards: 4,
        ..SensorConfig::new(table)
    };
    Store::create(MAIN, |client, table| {
        DynamoDbSensors::new(client, config(table))
    })
    .await
}

pub(crate) async fn clients() -> Store<DynamoDbClients> {
    Store::create(MAIN, |client, table| DynamoDbClients::new(client, table)).await
}

pub(crate) async fn inbox() -> Store<DynamoDbInbox> {
    Store::create(MESSAGES, |client, table| DynamoDbInbox::new(client, table)).await
}

pub(crate) fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}
