//! Listings of sensors with their states, by location or all of them.
//!
//! The indexes hold whole sensors. States are read by key, 100 a call: a copy in an index would cost an
//! index write for every message.

use antumbra_service::sensors::{
    Connection, Cursor, LocationPrefix, Page, RegisteredSensor, SensorError, SensorId, SensorQuery,
    SensorType, SensorWithState, StoreError,
};
use antumbra_wire::items::index_keys::{self, LIST_SHARDS};

use super::DynamoDbSensors;
use super::item;
use super::keys;
use crate::table::{BatchRead, Item, OrderedListing, Query};
use crate::tables::{BY_LOCATION, LISTED};
use crate::value::text;

impl DynamoDbSensors {
    /// Sensors by id.
    pub(super) async fn list_ids(
        &self,
        list: &SensorQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorWithState>, SensorError> {
        let listing = OrderedListing {
            name: &listing(list, ""),
            index: Some(LISTED),
            shards: (0..LIST_SHARDS).map(index_keys::sensors).collect(),
            shard_of: &|id| {
                let id = SensorId::new(id);
                id.map_or(0, |id| id.shard(LIST_SHARDS) as usize)
            },
            ids: list.within.below(&list.id_prefix),
            limit,
        };
        let select = move |items: Vec<(String, Item)>| async move {
            let items = items.into_iter().map(|(_, item)| item).collect();
            let rows = self.select(list, items).await?.into_iter();
            Ok(rows
                .map(|(_, row)| (row.sensor.id.to_string(), row))
                .collect())
        };
        Ok(self.table.ordered_page(&listing, cursor, select).await?)
    }

    /// Sensors of a place.
    pub(super) async fn list_place(
        &self,
        list: &SensorQuery,
        place: &LocationPrefix,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorWithState>, SensorError> {
        let (query, place) = query(place);
        let select = |items| self.select(list, items);
        let listing = listing(list, &place);
        let page = self
            .table
            .selected_page(&listing, query, limit, cursor, select);
        Ok(page.await?)
    }

    /// The sensors of items that are selected, with their states.
    async fn select(
        &self,
        list: &SensorQuery,
        items: Vec<Item>,
    ) -> Result<Vec<(Item, SensorWithState)>, StoreError> {
        let mut sensors: Vec<(Item, RegisteredSensor)> = Vec::with_capacity(items.len());
        for item in items {
            // One foreign item must not fail the page.
            match item::sensor(item.clone()) {
                Ok(sensor) => sensors.push((item, sensor)),
                Err(error) => tracing::warn!(%error, "skipped a sensor in a listing"),
            }
        }
        let keys = sensors
            .iter()
            .map(|(_, found)| keys::state(&found.sensor.id));
        let states = self.table.get_many(keys.collect(), BatchRead::EVENTUAL);
        let states = states.await?;
        let with_state = |(item, found): (Item, RegisteredSensor)| {
            let state = states.get(&keys::state(&found.sensor.id));
            let state = state.map(item::state).transpose()?;
            let row = SensorWithState {
                state: state.filter(|state| state.generation == found.generation),
                sensor: found.sensor,
            };
            Ok((item, row))
        };
        let rows: Result<Vec<_>, StoreError> = sensors.into_iter().map(with_state).collect();
        let mut rows = rows?;
        rows.retain(|(_, row)| list.selects(&row.sensor, row.state.as_ref()));
        Ok(rows)
    }
}

/// The texts that identify a listing in its cursors.
fn listing<'a>(list: &'a SensorQuery, place: &'a str) -> [&'a str; 5] {
    [
        "sensors",
        place,
        &list.id_prefix,
        list.sensor_type.as_ref().map_or("", SensorType::as_str),
        list.connection.map_or("", Connection::as_str),
    ]
}

/// The query of a place, and the place as part of the cursor.
fn query(place: &LocationPrefix) -> (Query, String) {
    let (city, below) = (keys::city(place.city()), keys::locations_in(place));
    let query = Query::new("#cityKey = :city AND begins_with(#locationKey, :below)")
        .index(BY_LOCATION)
        .value(":city", text(&city))
        .value(":below", text(&below));
    (query, format!("{city} {below}"))
}
