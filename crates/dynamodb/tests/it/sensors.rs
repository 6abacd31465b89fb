//! Sensors on DynamoDB: the contract suite, and tests of DynamoDB's behaviour.

mod calls;
mod faults;
mod model;
mod purge;
mod storm;
mod volume;

use antumbra_dynamodb::DynamoDbSensors;

use crate::store::{Item, Store, text};

async fn sort_keys(store: &Store<DynamoDbSensors>, partition: &str) -> Vec<String> {
    let query = store.client.query().table_name(&store.table);
    let pages = query
        .key_condition_expression("PK = :pk")
        .expression_attribute_values(":pk", text(partition))
        .projection_expression("SK")
        .consistent_read(true)
        .into_paginator()
        .items()
        .send();
    let items: Vec<Item> = pages.collect::<Result<_, _>>().await.unwrap();
    items
        .iter()
        .map(|item| item["SK"].as_s().unwrap().clone())
        .collect()
}

/// Puts an item with only these keys.
async fn put(store: &Store<DynamoDbSensors>, partition: &str, sort: &str) {
    store.put(&[("PK", partition), ("SK", sort)]).await;
}
