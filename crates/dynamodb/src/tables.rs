//! The table shadows lie in, for tests and laptops. In production the deployment makes it.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{BuildError, DisplayErrorContext};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
    StreamSpecification, StreamViewType, TableStatus,
};

use crate::shadows::{PARTITION_KEY, SORT_KEY};

/// How long and how often to look whether the table is there.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The table could not be made.
#[derive(Debug, thiserror::Error)]
#[error("table {table}: {reason}")]
pub struct TableError {
    table: String,
    reason: String,
}

/// Makes a table for shadows, with its stream of old and new images, and waits until it can be used.
pub async fn create_table(client: &Client, name: &str) -> Result<(), TableError> {
    let failed = |reason: String| TableError {
        table: name.to_owned(),
        reason,
    };
    let unbuilt = |error: BuildError| failed(error.to_string());
    let mut request = client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .stream_specification(
            StreamSpecification::builder()
                .stream_enabled(true)
                .stream_view_type(StreamViewType::NewAndOldImages)
                .build()
                .map_err(unbuilt)?,
        );
    for (attribute, kind) in [(PARTITION_KEY, KeyType::Hash), (SORT_KEY, KeyType::Range)] {
        let definition = AttributeDefinition::builder()
            .attribute_name(attribute)
            .attribute_type(ScalarAttributeType::S);
        let key = KeySchemaElement::builder()
            .attribute_name(attribute)
            .key_type(kind);
        request = request
            .attribute_definitions(definition.build().map_err(unbuilt)?)
            .key_schema(key.build().map_err(unbuilt)?);
    }
    let created = request.send().await;
    created.map_err(|error| failed(DisplayErrorContext(error).to_string()))?;

    for _ in 0..LOOKS {
        let described = client.describe_table().table_name(name).send().await;
        let described =
            described.map_err(|error| failed(DisplayErrorContext(error).to_string()))?;
        let status = described.table.and_then(|table| table.table_status);
        if status == Some(TableStatus::Active) {
            return Ok(());
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    Err(failed("made, but not active in time".to_owned()))
}
