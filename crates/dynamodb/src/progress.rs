//! How far queues have been read: one item per queue in the main table.
//!
//! | PK | SK | holds |
//! |---|---|---|
//! | `LIVENESS` | `QUEUE#{name}` | `reached`, in milliseconds since 1970 |

use antumbra_service::liveness::IngestProgress;
use antumbra_service::sensors::moment::{from_milliseconds, milliseconds};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::errors;
use crate::shadows::{PARTITION_KEY, SORT_KEY};

const PARTITION: &str = "LIVENESS";
const REACHED: &str = "reached";

/// Progress in a table.
#[derive(Debug, Clone)]
pub struct DynamoDbProgress {
    client: Client,
    table: String,
}

impl DynamoDbProgress {
    /// In this table, through this client.
    pub fn new(client: Client, table: impl Into<String>) -> DynamoDbProgress {
        DynamoDbProgress {
            client,
            table: table.into(),
        }
    }
}

fn sort_key(queue: &str) -> AttributeValue {
    AttributeValue::S(format!("QUEUE#{queue}"))
}

impl IngestProgress for DynamoDbProgress {
    /// One conditional write; one that comes too late changes nothing.
    async fn note(&self, queue: &str, sent: Timestamp) -> Result<(), StoreError> {
        let request = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(PARTITION_KEY, AttributeValue::S(PARTITION.to_owned()))
            .key(SORT_KEY, sort_key(queue))
            .update_expression("SET #reached = :sent")
            .condition_expression("attribute_not_exists(#reached) OR #reached < :sent")
            .expression_attribute_names("#reached", REACHED)
            .expression_attribute_values(
                ":sent",
                AttributeValue::N(milliseconds(sent).to_string()),
            );
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(()),
                _ => Err(errors::of_call("UpdateItem", &error, 0)),
            },
        }
    }

    /// One consistent read of the smallest item there is.
    async fn reached(&self, queue: &str) -> Result<Option<Timestamp>, StoreError> {
        let request = self
            .client
            .get_item()
            .table_name(&self.table)
            .key(PARTITION_KEY, AttributeValue::S(PARTITION.to_owned()))
            .key(SORT_KEY, sort_key(queue))
            .consistent_read(true);
        let found = request.send().await;
        let found = found.map_err(|error| errors::of_call("GetItem", &error, 0))?;
        let Some(item) = found.item else {
            return Ok(None);
        };
        let reached = item.get(REACHED).and_then(|reached| reached.as_n().ok());
        let reached = reached.and_then(|number| number.parse().ok());
        match reached {
            Some(reached) => Ok(Some(from_milliseconds(reached))),
            None => Err(StoreError::Invalid(
                "the progress of a queue is no number".to_owned(),
            )),
        }
    }
}
