//! Reading messages by their ids.

use std::collections::HashMap;

use antumbra_service::backoff;
use antumbra_service::inbox::{InboxMessage, MessageId, MessageReader, Source};
use antumbra_service::store::StoreError;
use aws_sdk_dynamodb::types::KeysAndAttributes;

use super::DynamoDbInbox;
use super::item::{Item, MESSAGE_ID, decode, key, string};
use crate::errors;

/// Keys in one call.
const BATCH_KEYS: usize = 100;
/// Calls in a row that may bring nothing.
const FRUITLESS: u32 = 5;

impl MessageReader for DynamoDbInbox {
    async fn get(
        &self,
        source: &Source,
        id: &MessageId,
    ) -> Result<Option<InboxMessage>, StoreError> {
        let call = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(key(source, id)))
            .consistent_read(true);
        let found = call.send().await;
        let found = found.map_err(|error| errors::of_call("GetItem", &error, 0))?;
        found.item.as_ref().map_or(Ok(None), decode)
    }

    async fn get_all(
        &self,
        source: &Source,
        ids: &[MessageId],
    ) -> Result<Vec<InboxMessage>, StoreError> {
        if ids.len() > BATCH_KEYS {
            let asked = ids.len();
            return Err(StoreError::Invalid(format!(
                "{asked} messages at once, the limit is {BATCH_KEYS}"
            )));
        }
        // The same key twice in one call is refused.
        let mut distinct: Vec<&MessageId> = ids.iter().collect();
        distinct.sort_unstable();
        distinct.dedup();
        let mut wanted: Vec<Item> = distinct.iter().map(|id| key(source, id)).collect();
        let mut found: HashMap<String, InboxMessage> = HashMap::new();
        let mut fruitless = 0;
        while !wanted.is_empty() {
            let asked = wanted.len();
            let (items, left) = self.batch(wanted).await?;
            for item in &items {
                if let Some(message) = decode(item)? {
                    found.insert(string(item, MESSAGE_ID)?.to_owned(), message);
                }
            }
            wanted = left;
            if wanted.is_empty() {
                break;
            }
            fruitless = if wanted.len() < asked {
                0
            } else {
                fruitless + 1
            };
            if fruitless >= FRUITLESS {
                let left = format!("BatchGetItem: left unprocessed {fruitless} times");
                return Err(StoreError::Unavailable(left));
            }
            tokio::time::sleep(backoff::delay(fruitless.max(1), fastrand::f64())).await;
        }
        Ok(ids
            .iter()
            .filter_map(|id| found.get(id.as_str()).cloned())
            .collect())
    }
}

impl DynamoDbInbox {
    /// The items at these keys, and the keys that DynamoDB did not get to.
    async fn batch(&self, keys: Vec<Item>) -> Result<(Vec<Item>, Vec<Item>), StoreError> {
        let keys = KeysAndAttributes::builder()
            .set_keys(Some(keys))
            .consistent_read(true)
            .build()
            .map_err(|error| StoreError::Invalid(error.to_string()))?;
        let call = self.client.batch_get_item();
        let found = call.request_items(&self.table, keys).send().await;
        let found = found.map_err(|error| errors::of_call("BatchGetItem", &error, 0))?;
        let items = found.responses.into_iter().flatten();
        let left = found.unprocessed_keys.into_iter().flatten();
        Ok((
            items.flat_map(|(_, items)| items).collect(),
            left.flat_map(|(_, left)| left.keys).collect(),
        ))
    }
}
