//! Sensors on DynamoDB: the contract suite, and tests of DynamoDB's behaviour.

mod calls;
mod contract;
mod faults;
mod model;
mod purge;
mod storm;
mod volume;

use antumbra_dynamodb::{DynamoDbSensors, MAIN, SensorConfig};
use antumbra_testkit::dynamodb::{Endpoint, TestTable};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;

/// A store and the endpoint of its calls.
pub(crate) struct Store {
    pub(crate) sensors: DynamoDbSensors,
    pub(crate) endpoint: Endpoint,
    pub(crate) client: Client,
    pub(crate) table: String,
    pub(crate) stream: String,
}

impl Store {
    pub(crate) async fn fresh() -> Store {
        let table = TestTable::create(MAIN).await;
        let config = SensorConfig {
            shards: 4,
            ..SensorConfig::new(&table.name)
        };
        Store {
            sensors: DynamoDbSensors::new(table.client.clone(), config),
            endpoint: table.endpoint,
            client: table.client,
            table: table.name,
            stream: table.stream_arn,
        }
    }

    /// Puts a foreign item with these keys.
    pub(crate) async fn put(&self, partition: &str, sort: &str) {
        let put = self.client.put_item().table_name(&self.table);
        put.item("PK", AttributeValue::S(partition.to_owned()))
            .item("SK", AttributeValue::S(sort.to_owned()))
            .send()
            .await
            .unwrap();
    }

    /// The sort keys of a partition.
    pub(crate) async fn sort_keys(&self, partition: &str) -> Vec<String> {
        let query = self.client.query().table_name(&self.table);
        let pages = query
            .key_condition_expression("PK = :pk")
            .expression_attribute_values(":pk", AttributeValue::S(partition.to_owned()))
            .projection_expression("SK")
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        let items: Vec<_> = pages.collect::<Result<_, _>>().await.unwrap();
        let sort = |item: &std::collections::HashMap<String, AttributeValue>| {
            item["SK"].as_s().unwrap().clone()
        };
        items.iter().map(sort).collect()
    }
}
