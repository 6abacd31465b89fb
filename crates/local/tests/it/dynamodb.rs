use antumbra_dynamodb::{MAIN, MESSAGES, TableDefinition};
use antumbra_local::{
    dynamodb::{self, Storage},
    listen::StartError,
};
use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;

use crate::support::{exchange, tables, text};

#[tokio::test]
async fn tables_are_created_once_and_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let file = Storage::File(directory.path().join("tables.db"));

    let first = tables(file.clone()).await;
    let made = MAIN.ensure(&first.client).await.unwrap();
    MESSAGES.ensure(&first.client).await.unwrap();
    assert_eq!(MAIN.ensure(&first.client).await.unwrap(), made);
    first.put("s", &[]).await;
    first.server.stop().await;

    let second = tables(file).await;
    assert_eq!(MAIN.ensure(&second.client).await.unwrap(), made);
    assert!(made.stream_arn.is_some());
    let found = second.client.scan().table_name(MAIN.name).send().await;
    assert_eq!(found.unwrap().count, 1);
    let expiry = second.client.describe_time_to_live().table_name(MAIN.name);
    let expiry = expiry.send().await.unwrap().time_to_live_description;
    assert_eq!(expiry.unwrap().attribute_name.as_deref(), Some("ttl"));
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
    let query = here.client.query().table_name(MAIN.name);
    let query = query.key_condition_expression("PK = :p");
    let query = query.expression_attribute_values(":p", text(""));
    let error = query.send().await.unwrap_err();
    assert_eq!(error.code(), Some("ValidationException"), "{error:?}");

    let request = r#"{"TableName":"antumbra","KeyConditionExpression":"PK = :p","ExpressionAttributeValues":{":p":{"S":""}}}"#;
    let address = here.server.address();
    let request = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nx-amz-target: DynamoDB_20120810.Query\r\n\
         content-type: application/x-amz-json-1.0\r\ncontent-length: {}\r\n\r\n{request}",
        request.len()
    );
    let response = exchange(address, &request).await;
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
