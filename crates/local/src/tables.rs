//! The tables the product uses, as data, and making those that are missing.

use aws_sdk_dynamodb::{
    Client,
    error::DisplayErrorContext,
    types::{
        AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
        StreamSpecification, StreamViewType, TimeToLiveSpecification,
    },
};

/// One table: its keys are strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The name on AWS and here.
    pub name: &'static str,
    /// The partition key's attribute.
    pub partition_key: &'static str,
    /// The sort key's attribute.
    pub sort_key: &'static str,
    /// Whether changes are streamed, with both images.
    pub streamed: bool,
    /// The attribute that holds an item's end in epoch seconds.
    pub expiry: Option<&'static str>,
}

/// Shadows, sensors, clients and deliveries: everything that is listened to.
pub const MAIN: Table = Table {
    name: "antumbra",
    partition_key: "PK",
    sort_key: "SK",
    streamed: true,
    expiry: Some("ttl"),
};

/// The inbox.
pub const MESSAGES: Table = Table {
    name: "antumbra-messages",
    partition_key: "uuid",
    sort_key: "messageId",
    streamed: false,
    expiry: Some("ttl"),
};

/// A table could not be made or looked at.
#[derive(Debug, thiserror::Error)]
#[error("table {table}: {reason}")]
pub struct TableError {
    table: &'static str,
    reason: String,
}

/// What there is to know of a table that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Existing {
    /// The stream to read its changes from, when it has one.
    pub stream_arn: Option<String>,
}

impl Table {
    /// Makes the table if it is missing; a second call changes nothing.
    pub async fn ensure(&self, client: &Client) -> Result<Existing, TableError> {
        if self.describe(client).await?.is_none() {
            self.create(client).await?;
            if let Some(attribute) = self.expiry {
                self.expire_by(client, attribute).await?;
            }
        }
        let existing = self.describe(client).await?;
        existing.ok_or_else(|| self.error("gone right after it was made"))
    }

    async fn describe(&self, client: &Client) -> Result<Option<Existing>, TableError> {
        match client.describe_table().table_name(self.name).send().await {
            Ok(found) => Ok(Some(Existing {
                stream_arn: found.table.and_then(|table| table.latest_stream_arn),
            })),
            Err(error) => {
                let missing = error
                    .as_service_error()
                    .is_some_and(|cause| cause.is_resource_not_found_exception());
                if missing {
                    Ok(None)
                } else {
                    Err(self.error(DisplayErrorContext(error)))
                }
            }
        }
    }

    async fn create(&self, client: &Client) -> Result<(), TableError> {
        let mut request = client
            .create_table()
            .table_name(self.name)
            .billing_mode(BillingMode::PayPerRequest);
        for (name, kind) in [
            (self.partition_key, KeyType::Hash),
            (self.sort_key, KeyType::Range),
        ] {
            let attribute = AttributeDefinition::builder()
                .attribute_name(name)
                .attribute_type(ScalarAttributeType::S)
                .build()
                .map_err(|error| self.error(error))?;
            let key = KeySchemaElement::builder()
                .attribute_name(name)
                .key_type(kind)
                .build()
                .map_err(|error| self.error(error))?;
            request = request.attribute_definitions(attribute).key_schema(key);
        }
        if self.streamed {
            let stream = StreamSpecification::builder()
                .stream_enabled(true)
                .stream_view_type(StreamViewType::NewAndOldImages)
                .build()
                .map_err(|error| self.error(error))?;
            request = request.stream_specification(stream);
        }
        request
            .send()
            .await
            .map(drop)
            .map_err(|error| self.error(DisplayErrorContext(error)))
    }

    async fn expire_by(&self, client: &Client, attribute: &str) -> Result<(), TableError> {
        let expiry = TimeToLiveSpecification::builder()
            .enabled(true)
            .attribute_name(attribute)
            .build()
            .map_err(|error| self.error(error))?;
        client
            .update_time_to_live()
            .table_name(self.name)
            .time_to_live_specification(expiry)
            .send()
            .await
            .map(drop)
            .map_err(|error| self.error(DisplayErrorContext(error)))
    }

    fn error(&self, reason: impl std::fmt::Display) -> TableError {
        TableError {
            table: self.name,
            reason: reason.to_string(),
        }
    }
}
