//! The tables as data. They are created here for tests and local use, in production by the deployment.

use std::collections::BTreeMap;
use std::time::Duration;

use antumbra_service::store::StoreError;
use antumbra_wire::items::attributes::{FLEET_KEY, FLEET_SHARD};
use antumbra_wire::items::{MESSAGE_ID, MESSAGE_SOURCE, PARTITION_KEY, SORT_KEY};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{BuildError, DisplayErrorContext};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType,
    LocalSecondaryIndex, Projection, ProjectionType, ScalarAttributeType, StreamSpecification,
    StreamViewType, TableStatus, TimeToLiveSpecification,
};

use crate::error::store_error;

/// Checks whether a new table is active, and the time between them.
const ACTIVE_CHECKS: u32 = 100;
const BETWEEN_CHECKS: Duration = Duration::from_millis(50);

/// A secondary index: items that have its key attributes, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Index<'a> {
    /// The name on AWS and here.
    pub name: &'a str,
    /// The partition key's attribute, a string. With the table's partition key it is a local index, which
    /// can be read consistently; otherwise a global one, which is eventually consistent.
    pub partition_key: &'a str,
    /// The sort key's attribute and its type.
    pub sort_key: (&'a str, Scalar),
    /// Projection of whole items; otherwise of keys only.
    pub whole: bool,
}

/// Type of a key attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Scalar {
    Text,
    Number,
}

/// Definition of a table whose keys are strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TableDefinition<'a> {
    /// The name on AWS and here.
    pub name: &'a str,
    pub partition_key: &'a str,
    pub sort_key: &'a str,
    pub indexes: &'a [Index<'a>],
    /// Changes are streamed, with both images.
    pub streamed: bool,
    /// The attribute with an item's expiry, in seconds since 1970.
    pub expiry: Option<&'a str>,
}

/// Sensors by location.
pub const BY_LOCATION: Index<'static> = Index {
    name: "ByLocation",
    partition_key: "cityKey",
    sort_key: ("locationKey", Scalar::Text),
    whole: true,
};

/// Sensor states by the time of the next liveness check. The time of the last contact is not in the index,
/// as it would cost an index write per message.
pub const LIVE: Index<'static> = Index {
    name: "Live",
    partition_key: "liveShard",
    sort_key: ("checkAt", Scalar::Number),
    whole: false,
};

/// Listings across partitions: sensors, clients, and the deliveries of a sensor.
pub const LISTED: Index<'static> = Index {
    name: "Listed",
    partition_key: "listKey",
    sort_key: ("listSort", Scalar::Text),
    whole: true,
};

/// Shadows by id, in shards. It holds keys that a write of a shadow does not change: only creation and deletion write
/// the index.
pub const FLEET: Index<'static> = Index {
    name: "Fleet",
    partition_key: FLEET_SHARD,
    sort_key: (FLEET_KEY, Scalar::Text),
    whole: false,
};

/// Messages that are not deleted. Without it, every request for the oldest message would read all
/// tombstones.
pub const UNDELETED: Index<'static> = Index {
    name: "Undeleted",
    partition_key: MESSAGE_SOURCE,
    sort_key: ("undeletedId", Scalar::Text),
    whole: false,
};

/// The main table, whose changes are notified.
pub const MAIN: TableDefinition<'static> = TableDefinition {
    name: "antumbra",
    partition_key: PARTITION_KEY,
    sort_key: SORT_KEY,
    indexes: &[BY_LOCATION, LIVE, LISTED, FLEET],
    streamed: true,
    expiry: Some("ttl"),
};

/// The messages table of the inbox.
pub const MESSAGES: TableDefinition<'static> = TableDefinition {
    name: "antumbra-messages",
    partition_key: MESSAGE_SOURCE,
    sort_key: MESSAGE_ID,
    indexes: &[UNDELETED],
    streamed: true,
    expiry: Some("ttl"),
};

/// The history of shadows.
pub const HISTORY: TableDefinition<'static> = TableDefinition {
    name: "antumbra-history",
    partition_key: PARTITION_KEY,
    sort_key: SORT_KEY,
    indexes: &[],
    streamed: false,
    expiry: Some("ttl"),
};

/// The table of signing secrets. It has no stream, and only deliveries and the HTTP API read it.
pub const SECRETS: TableDefinition<'static> = TableDefinition {
    name: "antumbra-secrets",
    partition_key: PARTITION_KEY,
    sort_key: SORT_KEY,
    indexes: &[],
    streamed: false,
    expiry: None,
};

/// Returns the name or ARN of the table of secrets that belongs to a main table.
pub fn secrets_table(main: &str) -> String {
    format!("{main}-secrets")
}

/// A table could not be created or described.
#[derive(Debug, thiserror::Error)]
#[error("table {table}: {reason}")]
pub struct TableError {
    table: String,
    reason: String,
}

/// An active table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Existing {
    /// Its stream, if it has one.
    pub stream_arn: Option<String>,
}

/// A client with the credentials, region and limits of an SDK configuration.
pub fn client(sdk: &aws_types::SdkConfig) -> Client {
    Client::new(sdk)
}

/// The enabled stream of a table, if it has one.
pub async fn stream_of(client: &Client, table: &str) -> Result<Option<String>, StoreError> {
    let described = client.describe_table().table_name(table).send().await;
    let described = described.map_err(|error| store_error("DescribeTable", &error, 0))?;
    let streamed = described.table.filter(|table| {
        let stream = table.stream_specification();
        stream.is_some_and(|stream| stream.stream_enabled)
    });
    Ok(streamed.and_then(|table| table.latest_stream_arn))
}

impl TableDefinition<'_> {
    /// Creates the table if it is missing and waits until it is active.
    pub async fn ensure(&self, client: &Client) -> Result<Existing, TableError> {
        if self.describe(client).await?.is_none() {
            self.create(client).await?;
        }
        for _ in 0..ACTIVE_CHECKS {
            if let Some((existing, true)) = self.describe(client).await? {
                self.expire(client).await?;
                return Ok(existing);
            }
            tokio::time::sleep(BETWEEN_CHECKS).await;
        }
        Err(self.error("created, but not active in time"))
    }

    /// The table, and whether it is active.
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
                "it has no index {missing}; another program or an older version created it"
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

    fn attributes(&self) -> BTreeMap<&str, Scalar> {
        let own = [self.partition_key, self.sort_key].map(|name| (name, Scalar::Text));
        let indexes = self.indexes.iter();
        own.into_iter()
            .chain(indexes.flat_map(|index| [(index.partition_key, Scalar::Text), index.sort_key]))
            .collect()
    }

    /// Enables the expiry, also if an earlier start was interrupted before it did.
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
