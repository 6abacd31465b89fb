//! Listings of sensors with their states, by location or all of them.
//!
//! The indexes hold whole sensors. States are read by key, 100 a call: a copy in an index would cost an
//! index write for every message.

use antumbra_service::paging::page_limit;
use antumbra_service::sensors::{Cursor, Page, RegisteredSensor, SensorError, SensorWithState};

use super::DynamoDbSensors;
use super::item;
use super::keys;
use crate::table::{BatchRead, Query};

impl DynamoDbSensors {
    pub(super) async fn list(
        &self,
        listing: &[&str],
        mut query: Query,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorWithState>, SensorError> {
        page_limit(limit)?;
        let index = query.index;
        query.start = self.table.open_cursor(listing, index, cursor)?;
        let mut sensors: Vec<RegisteredSensor> = Vec::new();
        // A call returns at most one megabyte, which a page may exceed.
        loop {
            query.limit = Some(limit - sensors.len());
            let found = self.table.query(query.clone()).await?;
            for item in found.items {
                // One foreign item must not fail the page.
                match item::sensor(item) {
                    Ok(sensor) => sensors.push(sensor),
                    Err(error) => tracing::warn!(%error, "skipped a sensor in a listing"),
                }
            }
            query.start = found.last;
            if query.start.is_none() || sensors.len() >= limit {
                break;
            }
        }
        let last = query.start.as_ref();
        Ok(Page {
            next: self.table.seal_cursor(listing, index, last)?,
            rows: self.with_states(sensors).await?,
        })
    }

    async fn with_states(
        &self,
        sensors: Vec<RegisteredSensor>,
    ) -> Result<Vec<SensorWithState>, SensorError> {
        let keys = sensors.iter().map(|found| keys::state(&found.sensor.id));
        let states = self.table.get_many(keys.collect(), BatchRead::EVENTUAL);
        let states = states.await?;
        let with_state = |found: RegisteredSensor| {
            let state = states.get(&keys::state(&found.sensor.id));
            let state = state.map(item::state).transpose()?;
            Ok(SensorWithState {
                state: state.filter(|state| state.generation == found.generation),
                sensor: found.sensor,
            })
        };
        sensors.into_iter().map(with_state).collect()
    }
}
