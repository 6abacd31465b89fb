use antumbra_dynamodb::{MAIN, MESSAGES, TableDefinition};
use antumbra_local::{
    dynamodb::{self, Storage},
    listen::StartError,
};
use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::types::AttributeValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

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

/// Through the endpoint, and through the configuration of the stack's own clients.
#[tokio::test]
async fn requests_that_dynamodb_rejects_are_rejected() {
    let here = tables(Storage::Memory).await;
    MAIN.ensure(&here.client).await.unwrap();
    let empty = AttributeValue::S(String::new());
    let query = here.client.query().table_name(MAIN.name);
    let query = query
        .key_condition_expression("PK = :p")
        .expression_attribute_values(":p", empty);
    let error = query.send().await.unwrap_err();
    assert_eq!(error.code(), Some("ValidationException"), "{error:?}");

    let request = r#"{"TableName":"antumbra","KeyConditionExpression":"PK = :p","ExpressionAttributeValues":{":p":{"S":""}}}"#;
    let address = here.server.address();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nx-amz-target: DynamoDB_20120810.Query\r\n\
         content-type: application/x-amz-json-1.0\r\ncontent-length: {}\r\n\r\n{request}",
        request.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 400"), "{response}");
    assert!(response.contains("ValidationException"), "{response}");
    here.server.stop().await;
}

#[tokio::test]
async fn a_taken_port_is_named_in_the_error() {
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
