//! Sensors by where they are, and all of them by id, with their state.
//!
//! The indexes hold the sensors whole. Their states are read by key, 100 a call, since a copy of the state
//! in an index would cost an index write per message.

use std::collections::HashMap;

use antumbra_service::backoff;
use antumbra_service::paging::{open_cursor, page_limit, seal_cursor};
use antumbra_service::sensors::{
    Cursor, LocationPrefix, Page, RegisteredSensor, SensorError, SensorId, SensorWithState, State,
    StoreError,
};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::types::KeysAndAttributes;
use futures_util::future;

use super::DynamoDbSensors;
use super::call::names;
use super::item::{self, Item, text};
use super::keys;
use crate::errors;
use crate::shadows::{PARTITION_KEY, SORT_KEY};
use crate::tables::{BY_LOCATION, Index, LISTED};

/// Keys in one call.
const BATCH_KEYS: usize = 100;
/// How often a key is asked for that DynamoDB leaves unprocessed.
const TRIES: u32 = 5;
/// Tells these cursors from others.
const KIND: &str = "place";

/// The states that were found.
type States = HashMap<SensorId, State>;

/// What is listed: a part of an index.
struct Listing {
    index: Index<'static>,
    condition: &'static str,
    partition: String,
    /// What the sort key begins with.
    below: String,
}

impl Listing {
    fn of_place(place: &LocationPrefix) -> Listing {
        Listing {
            index: BY_LOCATION,
            condition: "#cityKey = :partition AND begins_with(#locationKey, :below)",
            partition: keys::city(place.city()),
            below: keys::locations_in(place),
        }
    }

    fn of_all() -> Listing {
        Listing {
            index: LISTED,
            condition: "#listKey = :partition",
            partition: keys::SENSORS.to_owned(),
            below: String::new(),
        }
    }
}

impl DynamoDbSensors {
    pub(super) async fn list_place(
        &self,
        place: &LocationPrefix,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorWithState>, SensorError> {
        self.list(&Listing::of_place(place), limit, cursor).await
    }

    pub(super) async fn list_all(
        &self,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorWithState>, SensorError> {
        self.list(&Listing::of_all(), limit, cursor).await
    }

    async fn list(
        &self,
        listing: &Listing,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorWithState>, SensorError> {
        page_limit(limit)?;
        let mut start = cursor.map(|cursor| self.open(cursor, listing));
        let mut found: Vec<RegisteredSensor> = Vec::new();
        // A page of DynamoDB is a megabyte, which a page of ours may exceed.
        let next = loop {
            let mut query = self
                .client
                .query()
                .table_name(&self.config.table)
                .index_name(listing.index.name)
                .key_condition_expression(listing.condition)
                .set_expression_attribute_names(Some(names(&[listing.condition])))
                .expression_attribute_values(":partition", text(&listing.partition))
                .limit(i32::try_from(limit - found.len()).unwrap_or(i32::MAX))
                .set_exclusive_start_key(start.take().transpose()?);
            if !listing.below.is_empty() {
                query = query.expression_attribute_values(":below", text(&listing.below));
            }
            let sent = query.send().await;
            let output = sent.map_err(|error| errors::of_call("Query", &error, 0))?;
            for listed in output.items.unwrap_or_default() {
                // What others wrote under our keys must not hide all the rest.
                match item::sensor(&listed) {
                    Ok(sensor) => found.push(sensor),
                    Err(error) => tracing::warn!(%error, "left out of a listing"),
                }
            }
            match output.last_evaluated_key {
                Some(last) if found.len() >= limit => break Some(last),
                Some(last) => start = Some(Ok(last)),
                None => break None,
            }
        };
        let next = next.map(|last| self.seal(&last, listing));
        let ids: Vec<&SensorId> = found.iter().map(|found| &found.sensor.id).collect();
        let mut states = self.states_of(&ids).await?;
        let rows = found.into_iter().map(|found| SensorWithState {
            state: states
                .remove(&found.sensor.id)
                .filter(|state| state.generation == found.generation),
            sensor: found.sensor,
        });
        Ok(Page {
            rows: rows.collect(),
            next: next.transpose()?,
        })
    }

    async fn states_of(&self, ids: &[&SensorId]) -> Result<States, StoreError> {
        let calls = ids
            .chunks(BATCH_KEYS)
            .map(|some| self.batch_of_states(some));
        let found = future::try_join_all(calls).await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn batch_of_states(&self, ids: &[&SensorId]) -> Result<States, StoreError> {
        let mut wanted: Vec<Item> = ids.iter().map(|id| keys::key(id, keys::STATE)).collect();
        let mut states = States::new();
        for failures in 1..=TRIES {
            let asked = KeysAndAttributes::builder().set_keys(Some(wanted));
            let call = self.client.batch_get_item();
            let sent = match asked.build() {
                Ok(asked) => call.request_items(&self.config.table, asked).send().await,
                Err(error) => Err(SdkError::construction_failure(error)),
            };
            let output = sent.map_err(|error| errors::of_call("BatchGetItem", &error, 0))?;
            for found in output.responses.unwrap_or_default().into_values().flatten() {
                let state = item::state(&found)?;
                states.insert(state.sensor.clone(), state);
            }
            let left = output.unprocessed_keys.unwrap_or_default().into_values();
            wanted = left.flat_map(|left| left.keys).collect();
            if wanted.is_empty() {
                return Ok(states);
            }
            if failures < TRIES {
                tokio::time::sleep(backoff::delay(failures, fastrand::f64())).await;
            }
        }
        Err(StoreError::Throttled)
    }

    fn seal(&self, last: &Item, listing: &Listing) -> Result<Cursor, StoreError> {
        let partition = item::word(last, PARTITION_KEY)?;
        let sort = item::word(last, listing.index.sort_key.0)?;
        let table = &self.config.table;
        let Listing {
            partition: of,
            below,
            ..
        } = listing;
        Ok(seal_cursor(&[KIND, table, of, below, partition, sort]))
    }

    fn open(&self, cursor: &Cursor, listing: &Listing) -> Result<Item, SensorError> {
        let parts = open_cursor(cursor)?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let Listing {
            index,
            partition: of,
            below,
            ..
        } = listing;
        match parts[..] {
            [KIND, table, of_partition, of_below, partition, sort]
                if [table, of_partition, of_below] == [&self.config.table, of, below] =>
            {
                Ok(Item::from([
                    (PARTITION_KEY.to_owned(), text(partition)),
                    (SORT_KEY.to_owned(), text(keys::INFO)),
                    (index.partition_key.to_owned(), text(of)),
                    (index.sort_key.0.to_owned(), text(sort)),
                ]))
            }
            _ => {
                let fault = "the cursor belongs to another listing".to_owned();
                Err(StoreError::Invalid(fault).into())
            }
        }
    }
}
