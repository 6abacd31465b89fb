//! Readings of registered sensors.

use std::collections::HashMap;

use antumbra_service::paging::{open_cursor, page_limit, seal_cursor};
use antumbra_service::sensors::{
    Cursor, Generation, Owner, Page, Reading, RegisteredSensor, SensorError, SensorId, StoreError,
};
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{ConditionCheck, Put, TransactWriteItem};

use super::DynamoDbSensors;
use super::call::names;
use super::item::{self, Item, text};
use super::keys;
use super::registry::{Refused, built};
use crate::errors;
use crate::shadows::SORT_KEY;

/// Readings in one transaction of 100, beside the check of the sensor.
const SAVES_AT_ONCE: usize = 99;
const RANGE: &str = "#PK = :partition AND #SK BETWEEN :from AND :to";
const SAME_GENERATION: &str = "#generation = :generation";
/// Calls for one page. A page that is not full by then is given as it is, with where to go on.
const PAGE_CALLS: u32 = 8;
/// Tells these cursors from others.
const KIND: &str = "readings";

impl DynamoDbSensors {
    pub(super) async fn save_of_registered(
        &self,
        sensor: &RegisteredSensor,
        readings: &[Reading],
    ) -> Result<(), SensorError> {
        let owner = Owner {
            sensor: sensor.sensor.id.clone(),
            generation: sensor.generation.clone(),
            sensor_type: sensor.sensor.sensor_type.clone(),
        };
        // A transaction that names an item twice is refused; the last one counts.
        let mut items: HashMap<String, Item> = HashMap::new();
        for reading in readings {
            let item = item::of_reading(reading, &owner, &self.config.retention);
            items.insert(keys::reading(&reading.moment), item);
        }
        let items: Vec<Item> = items.into_values().collect();
        for some in items.chunks(SAVES_AT_ONCE) {
            let puts = some.iter().map(|item| self.put_reading(item));
            let all = std::iter::once(self.is_there(&owner)).chain(puts);
            match self.transact(built(all)?).await {
                Ok(()) => {}
                Err(Refused::Condition(..)) => return Err(SensorError::NotFound),
                Err(Refused::Store(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn put_reading(&self, item: &Item) -> Result<TransactWriteItem, BuildError> {
        let put = Put::builder()
            .table_name(&self.config.table)
            .set_item(Some(item.clone()));
        Ok(TransactWriteItem::builder().put(put.build()?).build())
    }

    fn is_there(&self, owner: &Owner) -> Result<TransactWriteItem, BuildError> {
        let check = ConditionCheck::builder()
            .table_name(&self.config.table)
            .set_key(Some(keys::key(&owner.sensor, keys::INFO)))
            .condition_expression(SAME_GENERATION)
            .set_expression_attribute_names(Some(names(&[SAME_GENERATION])))
            .expression_attribute_values(":generation", text(owner.generation.as_str()));
        Ok(TransactWriteItem::builder()
            .condition_check(check.build()?)
            .build())
    }

    /// One query backwards from the sensor. More only where a page of DynamoDB is full, or where readings
    /// of a former sensor of that id are not purged yet.
    pub(super) async fn latest_readings(
        &self,
        id: &SensorId,
        most: usize,
    ) -> Result<(RegisteredSensor, Vec<Reading>), SensorError> {
        page_limit(most)?;
        let mut sensor: Option<RegisteredSensor> = None;
        let mut readings = Vec::new();
        let mut start = None;
        loop {
            let wanted = most + usize::from(sensor.is_none()) - readings.len();
            let (from, to) = (keys::READING.to_owned(), keys::INFO.to_owned());
            let sent = self
                .range(id, from, to, wanted, start)
                .scan_index_forward(false)
                .set_expression_attribute_names(Some(names(&[RANGE])))
                .send()
                .await;
            let output = sent.map_err(|error| errors::of_call("Query", &error, 0))?;
            for found in output.items.unwrap_or_default() {
                match &sensor {
                    Some(sensor) if is_of(&found, &sensor.generation) => {
                        readings.push(item::reading(&found)?);
                    }
                    Some(_) => {}
                    None if item::word(&found, SORT_KEY) == Ok(keys::INFO) => {
                        sensor = Some(item::sensor(&found)?);
                    }
                    // A reading comes first: whose it was is gone.
                    None => return Err(SensorError::NotFound),
                }
            }
            start = output.last_evaluated_key;
            if readings.len() >= most || start.is_none() {
                let sensor = sensor.ok_or(SensorError::NotFound)?;
                return Ok((sensor, readings));
            }
        }
    }

    pub(super) async fn readings_between(
        &self,
        id: &SensorId,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Reading>, SensorError> {
        page_limit(limit)?;
        if from > to {
            return Err(StoreError::Invalid("from lies after to".to_owned()).into());
        }
        let generation = self.get_sensor(id).await?.generation;
        let (from, to) = (keys::readings_from(from)?, keys::readings_from(to)?);
        let subject = [
            &self.config.table,
            id.as_str(),
            generation.as_str(),
            &from,
            &to,
        ];
        let mut start = cursor.map(|cursor| open(cursor, subject)).transpose()?;
        let mut rows = Vec::new();
        for _ in 0..PAGE_CALLS {
            let wanted = limit - rows.len();
            let key = start.take().map(|sort: String| keys::key(id, &sort));
            let sent = self
                .range(id, from.clone(), to.clone(), wanted, key)
                .filter_expression(SAME_GENERATION)
                .expression_attribute_values(":generation", text(generation.as_str()))
                .set_expression_attribute_names(Some(names(&[RANGE, SAME_GENERATION])))
                .send()
                .await;
            let output = sent.map_err(|error| errors::of_call("Query", &error, 0))?;
            for found in output.items.unwrap_or_default() {
                rows.push(item::reading(&found)?);
            }
            start = match &output.last_evaluated_key {
                Some(key) => Some(item::word(key, SORT_KEY)?.to_owned()),
                None => None,
            };
            if start.is_none() || rows.len() >= limit {
                break;
            }
        }
        let next = start.map(|sort| {
            let [table, id, generation, from, to] = subject;
            seal_cursor(&[KIND, table, id, generation, from, to, &sort])
        });
        Ok(Page { rows, next })
    }

    /// Items of a sensor between two sort keys.
    fn range(
        &self,
        id: &SensorId,
        from: String,
        to: String,
        limit: usize,
        start: Option<Item>,
    ) -> QueryFluentBuilder {
        self.client
            .query()
            .table_name(&self.config.table)
            .key_condition_expression(RANGE)
            .expression_attribute_values(":partition", text(keys::partition(id)))
            .expression_attribute_values(":from", text(from))
            .expression_attribute_values(":to", text(to))
            .consistent_read(true)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .set_exclusive_start_key(start)
    }
}

fn is_of(item: &Item, generation: &Generation) -> bool {
    item::generation(item).is_ok_and(|found| found == *generation)
}

fn open(cursor: &Cursor, subject: [&str; 5]) -> Result<String, SensorError> {
    let parts = open_cursor(cursor)?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts[..] {
        [KIND, table, id, generation, from, to, sort]
            if [table, id, generation, from, to] == subject =>
        {
            Ok(sort.to_owned())
        }
        _ => {
            let fault = "the cursor belongs to another listing".to_owned();
            Err(StoreError::Invalid(fault).into())
        }
    }
}
