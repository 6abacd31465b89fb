use antumbra_dynamodb::{MAIN, MESSAGES, TableDefinition};
use antumbra_local::{
    dynamodb::{self, Storage},
    listen::StartError,
};
use aws_sdk_dynamodb::types::AttributeValue;

use crate::support::tables;

#[tokio::test]
async fn tables_are_created_once_and_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let file = Storage::File(directory.path().join("tables.db"));

    let first = tables(file.clone()).await;
    let made = MAIN.ensure(&first.client).await.unwrap();
    MESSAGES.ensure(&first.client).await.unwrap();
    assert_eq!(MAIN.ensure(&first.client).await.unwrap(), made);
    let put = first.client.put_item().table_name(MAIN.name);
    put.item("PK", AttributeValue::S("p".into()))
        .item("SK", AttributeValue::S("s".into()))
        .send()
        .await
        .unwrap();
    first.server.stop().await;

    let second = tables(file).await;
    assert_eq!(MAIN.ensure(&second.client).await.unwrap(), made);
    assert!(made.stream_arn.is_some());
    let found = second
        .client
        .scan()
        .table_name(MAIN.name)
        .send()
        .await
        .unwrap();
    assert_eq!(found.count, 1);
    let expiry = second.client.describe_time_to_live().table_name(MAIN.name);
    let expiry = expiry
        .send()
        .await
        .unwrap()
        .time_to_live_description
        .unwrap();
    assert_eq!(expiry.attribute_name.as_deref(), Some("ttl"));
    second.server.stop().await;
}

#[tokio::test]
async fn an_existing_table_without_its_indexes_is_rejected() {
    let here = tables(Storage::Memory).await;
    let bare = TableDefinition {
        indexes: &[],
        ..MAIN
    };
    bare.ensure(&here.client).await.unwrap();
    let error = MAIN.ensure(&here.client).await.unwrap_err().to_string();
    assert!(error.contains("it has no index ByLocation"), "{error}");
    here.server.stop().await;
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let first = dynamodb::start(Storage::Memory, 0).await.unwrap();
    let port = first.address().port();
    let error = dynamodb::start(Storage::Memory, port).await.err().unwrap();
    assert!(matches!(error, StartError::PortTaken { port: p, .. } if p == port));
    first.stop().await;
    let again = dynamodb::start(Storage::Memory, port).await.unwrap();
    again.stop().await;
}

#[tokio::test]
async fn an_unusable_file_is_named_in_the_error() {
    let error = dynamodb::start(Storage::File("/dev/null/tables.db".into()), 0).await;
    let text = error.err().unwrap().to_string();
    assert!(text.contains("/dev/null/tables.db"), "{text}");
}
