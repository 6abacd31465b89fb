//! What an unregistered sensor left behind is deleted, a page at a time.
//!
//! The purge remembers how far it came, so each reading is looked at once however often it stops. When it
//! reached the end it waits until nothing can come any more, and looks a last time.

use antumbra_service::sensors::moment::milliseconds;
use antumbra_service::sensors::{Purge, StoreError};
use antumbra_shadow::Timestamp;

use super::DynamoDbSensors;
use super::call::{Update, names};
use super::item::{self, Item, number, text};
use super::keys;
use super::unregister::KEPT_UNTIL;
use crate::errors;

/// Where to go on.
const POSITION: &str = "position";
/// Readings looked at in one go.
const AT_ONCE: i32 = 1000;
const READINGS: &str = "#PK = :partition AND #SK BETWEEN :from AND :to";
const OURS: &str = "#generation = :generation";

impl DynamoDbSensors {
    pub(super) async fn purge_some(
        &self,
        purge: &Purge,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let key = keys::key(&purge.sensor, &keys::purge(&purge.generation));
        let call = self.client.get_item().table_name(&self.config.table);
        let sent = call
            .set_key(Some(key.clone()))
            .consistent_read(true)
            .send()
            .await;
        let found = sent.map_err(|error| errors::of_call("GetItem", &error, 0))?;
        let Some(stored) = found.item else {
            return Ok(true);
        };
        self.delete_orphaned_links(&purge.sensor).await?;
        let position = stored.get(POSITION).and_then(|at| at.as_s().ok());
        let (found, next) = self.left_behind(purge, position).await?;
        self.delete_all(&found).await?;
        let now = milliseconds(now);
        match next {
            Some(position) => {
                let values = [(":position", text(position)), (":now", number(now))];
                let update = "SET #position = :position, #checkAt = :now";
                self.update(of_purge(key, update, values)).await?;
                Ok(false)
            }
            None if now < item::whole(&stored, KEPT_UNTIL)? => {
                let update = "SET #checkAt = #keptUntil REMOVE #position";
                self.update(of_purge(key, update, [])).await?;
                Ok(false)
            }
            None => self.forget(key).await,
        }
    }

    /// Readings of that generation from a position on, and where to go on.
    async fn left_behind(
        &self,
        purge: &Purge,
        position: Option<&String>,
    ) -> Result<(Vec<Item>, Option<String>), StoreError> {
        let sent = self
            .client
            .query()
            .table_name(&self.config.table)
            .key_condition_expression(READINGS)
            .filter_expression(OURS)
            .projection_expression("#PK, #SK")
            .set_expression_attribute_names(Some(names(&[READINGS, OURS])))
            .expression_attribute_values(":partition", text(keys::partition(&purge.sensor)))
            .expression_attribute_values(":from", text(keys::READING))
            .expression_attribute_values(":to", text(keys::BEHIND_READINGS))
            .expression_attribute_values(":generation", text(purge.generation.as_str()))
            .set_exclusive_start_key(position.map(|sort| keys::key(&purge.sensor, sort)))
            .consistent_read(true)
            .limit(AT_ONCE)
            .send()
            .await;
        let output = sent.map_err(|error| errors::of_call("Query", &error, 0))?;
        let last = output.last_evaluated_key.as_ref();
        let next = last.and_then(|key| item::word(key, crate::shadows::SORT_KEY).ok());
        let next = next.map(str::to_owned);
        Ok((output.items.unwrap_or_default(), next))
    }

    async fn forget(&self, key: Item) -> Result<bool, StoreError> {
        let call = self.client.delete_item().table_name(&self.config.table);
        let sent = call.set_key(Some(key)).send().await;
        sent.map_err(|error| errors::of_call("DeleteItem", &error, 0))?;
        Ok(true)
    }
}

/// An update of a purge that is still there; of one that is not there is nothing to remember.
fn of_purge<const N: usize>(
    key: Item,
    update: &str,
    values: [(&str, aws_sdk_dynamodb::types::AttributeValue); N],
) -> Update {
    Update {
        key,
        update: update.to_owned(),
        condition: "attribute_exists(#PK)".to_owned(),
        values: values
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        other_names: std::collections::HashMap::new(),
    }
}
