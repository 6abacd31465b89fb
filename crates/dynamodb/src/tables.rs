//! The tables, as data, and making those that are missing: for tests and laptops. In production the
//! deployment makes them.

use std::collections::BTreeMap;
use std::time::Duration;

use antumbra_service::store::StoreError;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{BuildError, DisplayErrorContext};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType,
    LocalSecondaryIndex, Projection, ProjectionType, ScalarAttributeType, StreamSpecification,
    StreamViewType, TableStatus, TimeToLiveSpecification,
};

use crate::errors;
use crate::shadows::{PARTITION_KEY, SORT_KEY};

/// How long and how often to look whether a table is there.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// A second order of a table's items: those that have its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Index<'a> {
    /// The name on AWS and here.
    pub name: &'a str,
    /// The partition key's attribute, a string. The table's own makes it a local index, which is as
    /// consistent as the table; any other a global one, which lags behind a little.
    pub partition_key: &'a str,
    /// The sort key's attribute and what it holds.
    pub sort_key: (&'a str, Scalar),
    /// Whether it holds whole items, or their keys alone.
    pub whole: bool,
}

/// What a key attribute holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Scalar {
    Text,
    Number,
}

/// One table: its keys are strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table<'a> {
    /// The name on AWS and here.
    pub name: &'a str,
    /// The partition key's attribute.
    pub partition_key: &'a str,
    /// The sort key's attribute.
    pub sort_key: &'a str,
    /// The other orders.
    pub indexes: &'a [Index<'a>],
    /// Whether changes are streamed, with both images.
    pub streamed: bool,
    /// The attribute that holds an item's end in epoch seconds.
    pub expiry: Option<&'a str>,
}

/// Sensors by where they are.
pub const BY_LOCATION: Index<'static> = Index {
    name: "ByLocation",
    partition_key: "cityKey",
    sort_key: ("locationKey", Scalar::Text),
    whole: true,
};

/// Sensors by when to look whether they fell silent. Without their last contact, which would cost an
/// index write per message.
pub const LIVE: Index<'static> = Index {
    name: "Live",
    partition_key: "liveShard",
    sort_key: ("checkAt", Scalar::Number),
    whole: false,
};

/// What is listed as a whole: sensors, clients, and the deliveries of a sensor, which lie with their
/// clients.
pub const LISTED: Index<'static> = Index {
    name: "Listed",
    partition_key: "listKey",
    sort_key: ("listSort", Scalar::Text),
    whole: true,
};

/// Messages that were not deleted. What was leaves a tombstone in the table, and would otherwise have to
/// be read over again and again by whoever asks for the oldest message.
pub const UNDELETED: Index<'static> = Index {
    name: "Undeleted",
    partition_key: "uuid",
    sort_key: ("undeletedId", Scalar::Text),
    whole: false,
};

/// Shadows, and everything else that is listened to.
pub const MAIN: Table<'static> = Table {
    name: "antumbra",
    partition_key: PARTITION_KEY,
    sort_key: SORT_KEY,
    indexes: &[BY_LOCATION, LIVE, LISTED],
    streamed: true,
    expiry: Some("ttl"),
};

/// The inbox.
pub const MESSAGES: Table<'static> = Table {
    name: "antumbra-messages",
    partition_key: "uuid",
    sort_key: "messageId",
    indexes: &[UNDELETED],
    streamed: true,
    expiry: Some("ttl"),
};

/// A table could not be made or looked at.
#[derive(Debug, thiserror::Error)]
#[error("table {table}: {reason}")]
pub struct TableError {
    table: String,
    reason: String,
}

/// What there is to know of a table that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Existing {
    /// The stream to read its changes from, when it has one.
    pub stream_arn: Option<String>,
}

/// A client with the credentials, region and limits of an SDK configuration.
pub fn client(sdk: &aws_types::SdkConfig) -> Client {
    Client::new(sdk)
}

/// The stream of a table's changes, if it has one that goes on.
pub async fn stream_of(client: &Client, table: &str) -> Result<Option<String>, StoreError> {
    let described = client.describe_table().table_name(table).send().await;
    let described = described.map_err(|error| errors::of_call("DescribeTable", &error, 0))?;
    let streamed = described.table.filter(|table| {
        let stream = table.stream_specification();
        stream.is_some_and(|stream| stream.stream_enabled)
    });
    Ok(streamed.and_then(|table| table.latest_stream_arn))
}

impl Table<'_> {
    /// Makes the table if it is missing and waits until it can be used; a second call changes nothing.
    pub async fn ensure(&self, client: &Client) -> Result<Existing, TableError> {
        if self.describe(client).await?.is_none() {
            self.create(client).await?;
        }
        for _ in 0..LOOKS {
            if let Some((existing, true)) = self.describe(client).await? {
                self.expire(client).await?;
                return Ok(existing);
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Err(self.error("made, but not active in time"))
    }

    /// What is there, and whether it can be used.
    async fn describe(&self, client: &Client) -> Result<Option<(Existing, bool)>, TableError> {
        let described = client.describe_table().table_name(self.name).send().await;
        let table = match described {
            Ok(described) => described.table,
            Err(error) => {
                let cause = error.as_service_error();
                if cause.is_some_and(|cause| cause.is_resource_not_found_exception()) {
                    return Ok(None);
                }
                return Err(self.error(DisplayErrorContext(error)));
            }
        };
        let Some(table) = table else { return Ok(None) };
        let global = table.global_secondary_indexes().iter();
        let local = table.local_secondary_indexes().iter();
        let there: Vec<_> = global
            .map(|index| index.index_name())
            .chain(local.map(|index| index.index_name()))
            .collect();
        let mut wanted = self.indexes.iter().map(|index| index.name);
        if let Some(missing) = wanted.find(|name| !there.contains(&Some(*name))) {
            return Err(self.error(format!(
                "it is there, but without its index {missing}: it was made by something else, or long ago"
            )));
        }
        let active = table.table_status == Some(TableStatus::Active);
        let existing = Existing {
            stream_arn: table.latest_stream_arn,
        };
        Ok(Some((existing, active)))
    }

    async fn create(&self, client: &Client) -> Result<(), TableError> {
        let unbuilt = |error: BuildError| self.error(error);
        let mut request = client
            .create_table()
            .table_name(self.name)
            .billing_mode(BillingMode::PayPerRequest);
        for (name, scalar) in self.attributes() {
            let attribute = AttributeDefinition::builder()
                .attribute_name(name)
                .attribute_type(match scalar {
                    Scalar::Text => ScalarAttributeType::S,
                    Scalar::Number => ScalarAttributeType::N,
                });
            request = request.attribute_definitions(attribute.build().map_err(unbuilt)?);
        }
        let schema = keys(self.partition_key, self.sort_key).map_err(unbuilt)?;
        request = request.set_key_schema(Some(schema));
        for index in self.indexes {
            let schema = keys(index.partition_key, index.sort_key.0).map_err(unbuilt)?;
            let projection = Projection::builder().projection_type(if index.whole {
                ProjectionType::All
            } else {
                ProjectionType::KeysOnly
            });
            request = if index.partition_key == self.partition_key {
                let local = LocalSecondaryIndex::builder()
                    .index_name(index.name)
                    .set_key_schema(Some(schema))
                    .projection(projection.build());
                request.local_secondary_indexes(local.build().map_err(unbuilt)?)
            } else {
                let global = GlobalSecondaryIndex::builder()
                    .index_name(index.name)
                    .set_key_schema(Some(schema))
                    .projection(projection.build());
                request.global_secondary_indexes(global.build().map_err(unbuilt)?)
            };
        }
        if self.streamed {
            let stream = StreamSpecification::builder()
                .stream_enabled(true)
                .stream_view_type(StreamViewType::NewAndOldImages);
            request = request.stream_specification(stream.build().map_err(unbuilt)?);
        }
        let created = request.send().await;
        created
            .map(drop)
            .map_err(|error| self.error(DisplayErrorContext(error)))
    }

    /// Every attribute that is part of a key, once.
    fn attributes(&self) -> BTreeMap<&str, Scalar> {
        let own = [self.partition_key, self.sort_key].map(|name| (name, Scalar::Text));
        let indexes = self.indexes.iter();
        own.into_iter()
            .chain(indexes.flat_map(|index| [(index.partition_key, Scalar::Text), index.sort_key]))
            .collect()
    }

    /// Sets the expiry where it is not set yet, also when an earlier start ended before it could.
    async fn expire(&self, client: &Client) -> Result<(), TableError> {
        let Some(attribute) = self.expiry else {
            return Ok(());
        };
        let set = client
            .describe_time_to_live()
            .table_name(self.name)
            .send()
            .await;
        let set = set.map_err(|error| self.error(DisplayErrorContext(error)))?;
        if set
            .time_to_live_description
            .is_some_and(|set| set.attribute_name.is_some())
        {
            return Ok(());
        }
        let expiry = TimeToLiveSpecification::builder()
            .enabled(true)
            .attribute_name(attribute);
        let expiry = expiry.build().map_err(|error| self.error(error))?;
        let request = client
            .update_time_to_live()
            .table_name(self.name)
            .time_to_live_specification(expiry);
        request
            .send()
            .await
            .map(drop)
            .map_err(|error| self.error(DisplayErrorContext(error)))
    }

    fn error(&self, reason: impl std::fmt::Display) -> TableError {
        TableError {
            table: self.name.to_owned(),
            reason: reason.to_string(),
        }
    }
}

fn keys(partition: &str, sort: &str) -> Result<Vec<KeySchemaElement>, BuildError> {
    [(partition, KeyType::Hash), (sort, KeyType::Range)]
        .map(|(name, kind)| {
            KeySchemaElement::builder()
                .attribute_name(name)
                .key_type(kind)
                .build()
        })
        .into_iter()
        .collect()
}
