use std::collections::HashMap;

use antumbra_service::paging::page_limit;
use antumbra_service::sensors::{
    Cursor, Owner, Page, Reading, ReadingStore, RegisteredSensor, SensorError, SensorId,
    SensorStore as _, TimeRange,
};
use antumbra_wire::items::{ItemKind, SORT_KEY};

use super::DynamoDbSensors;
use super::item;
use super::keys;
use crate::table::{Item, Outcome, Write};
use crate::value::{read_text, text};

/// Readings of one transaction of 100 writes, beside the check of the sensor.
const READINGS_AT_ONCE: usize = 99;

impl ReadingStore for DynamoDbSensors {
    async fn save(
        &self,
        sensor: &RegisteredSensor,
        readings: &[Reading],
    ) -> Result<(), SensorError> {
        let owner = Owner {
            sensor: sensor.sensor.id.clone(),
            generation: sensor.generation.clone(),
            sensor_type: sensor.sensor.sensor_type.clone(),
        };
        // DynamoDB rejects a transaction that names an item twice; the last reading counts.
        let mut items: HashMap<String, Item> = HashMap::new();
        for reading in readings {
            let item = item::of_reading(&self.table, reading, &owner, &self.config.retention);
            items.insert(reading.moment.to_string(), item);
        }
        let items: Vec<Item> = items.into_values().collect();
        for chunk in items.chunks(READINGS_AT_ONCE) {
            let check = Write::check(keys::sensor(&owner.sensor), "#generation = :generation")
                .value(":generation", text(owner.generation.as_str()));
            let puts = chunk.iter().cloned().map(Write::put);
            let writes = std::iter::once(check).chain(puts).collect();
            if let Outcome::Refused(_) = self.table.transact(writes).await? {
                return Err(SensorError::NotFound);
            }
        }
        Ok(())
    }

    /// One query backwards from the sensor. More calls only if a page of DynamoDB is full, or if readings
    /// of a former sensor of that id are not purged yet.
    async fn latest_page(
        &self,
        id: &SensorId,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<(RegisteredSensor, Page<Reading>), SensorError> {
        page_limit(limit)?;
        let info = ItemKind::SensorInfo.sort_prefix();
        let first = ItemKind::Reading.sort_prefix();
        let mut query = item::range(id, first, info).descending(true);
        let mut sensor: Option<RegisteredSensor> = None;
        if cursor.is_some() {
            let found = self.get(id).await?;
            let listing = ["latest", id.as_str(), found.generation.as_str()];
            query.start = self.table.open_cursor(&listing, None, cursor)?;
            sensor = Some(found);
        }
        let mut rows = Vec::new();
        loop {
            let count = limit + usize::from(sensor.is_none()) - rows.len();
            let found = self.table.query_up_to(query.clone(), count).await?;
            for found in found.items {
                match &sensor {
                    Some(sensor) => {
                        if item::generation(&found).as_ref() == Ok(&sensor.generation) {
                            rows.push(item::reading(&found)?);
                        }
                    }
                    None if read_text(&found, SORT_KEY) == Ok(info) => {
                        sensor = Some(item::sensor(found)?);
                    }
                    // Only readings of an unregistered sensor.
                    None => return Err(SensorError::NotFound),
                }
            }
            query.start = found.last;
            if rows.len() >= limit || query.start.is_none() {
                break;
            }
        }
        let sensor = sensor.ok_or(SensorError::NotFound)?;
        let listing = ["latest", id.as_str(), sensor.generation.as_str()];
        let last = query.start.as_ref();
        let next = self.table.seal_cursor(&listing, None, last)?;
        Ok((sensor, Page { rows, next }))
    }

    async fn in_range(
        &self,
        id: &SensorId,
        range: &TimeRange,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<(RegisteredSensor, Page<Reading>), SensorError> {
        page_limit(limit)?;
        range.check()?;
        let sensor = self.get(id).await?;
        let generation = sensor.generation.as_str();
        let from = keys::readings_from(range.from)?;
        let to = keys::readings_from(range.to)?;
        let order = match range.newest_first {
            true => "newest first",
            false => "oldest first",
        };
        let listing = ["readings", id.as_str(), generation, &from, &to, order];
        let query = item::range(id, &from, &to)
            .descending(range.newest_first)
            .filter("#generation = :generation")
            .value(":generation", text(generation));
        let decode = |items: Vec<Item>| async {
            let decode = |item| item::reading(&item).map(|reading| (item, reading));
            items.into_iter().map(decode).collect()
        };
        let page = self
            .table
            .selected_page(&listing, query, limit, cursor, decode)
            .await?;
        Ok((sensor, page))
    }
}
