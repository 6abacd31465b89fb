//! Listings of sensors with their states, by location or all of them.
//!
//! The indexes hold whole sensors. States are read by key, 100 a call: a copy in an index would cost an
//! index write for every message.

use antumbra_service::paging::page_limit;
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

/// Items that one call examines at most.
const CALL_ITEMS: usize = 1000;
/// Factor by which the next call examines more items, if few of them are selected.
const GROWTH: usize = 4;
/// Calls for one page. A page that is not full by then is returned as it is, with a cursor.
const PAGE_CALLS: u32 = 8;

impl DynamoDbSensors {
    pub(super) async fn list_page(
        &self,
        list: &SensorQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorWithState>, SensorError> {
        page_limit(limit)?;
        match &list.place {
            Some(place) => self.list_place(list, place, limit, cursor).await,
            None => self.list_ids(list, limit, cursor).await,
        }
    }

    /// Sensors by id.
    async fn list_ids(
        &self,
        list: &SensorQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorWithState>, SensorError> {
        let listing = OrderedListing {
            name: &listing(list, ""),
            index: LISTED,
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
            let rows = self.with_states(items).await?.into_iter();
            let rows = rows.filter(|(_, row)| list.selects(&row.sensor, row.state.as_ref()));
            Ok(rows
                .map(|(_, row)| (row.sensor.id.to_string(), row))
                .collect())
        };
        Ok(self.table.ordered_page(&listing, cursor, select).await?)
    }

    /// Sensors of a place.
    async fn list_place(
        &self,
        list: &SensorQuery,
        place: &LocationPrefix,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorWithState>, SensorError> {
        let (mut query, place) = query(place);
        let listing = listing(list, &place);
        let index = query.index;
        query.start = self.table.open_cursor(&listing, index, cursor)?;
        let mut rows = Vec::new();
        let mut examine = limit;
        let mut next: Option<Item> = None;
        for _ in 0..PAGE_CALLS {
            let found = self.table.query_up_to(query.clone(), examine).await?;
            let mut examined = self.with_states(found.items).await?.into_iter().peekable();
            while rows.len() < limit
                && let Some((item, row)) = examined.next()
            {
                if list.selects(&row.sensor, row.state.as_ref()) {
                    rows.push(row);
                    next = Some(item);
                }
            }
            if examined.peek().is_none() {
                next = found.last;
            }
            if next.is_none() || rows.len() == limit {
                break;
            }
            query.start = next.clone();
            examine = (examine * GROWTH).min(CALL_ITEMS);
        }
        let next = self.table.seal_cursor(&listing, index, next.as_ref())?;
        Ok(Page { rows, next })
    }

    /// The sensors of items, with their states.
    async fn with_states(
        &self,
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
        sensors.into_iter().map(with_state).collect()
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
    let query = Query {
        index: Some(BY_LOCATION),
        ..Query::new("#cityKey = :city AND begins_with(#locationKey, :below)")
    };
    let query = query
        .value(":city", text(&city))
        .value(":below", text(&below));
    (query, format!("{city} {below}"))
}
