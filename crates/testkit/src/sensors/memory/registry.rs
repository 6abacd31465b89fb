//! Registered sensors and readings in memory.

use antumbra_service::paging::{open_cursor, page_limit, seal_cursor};
use antumbra_service::sensors::reading_time::{
    ReadingTime, Sequence, from_milliseconds, milliseconds,
};
use antumbra_service::sensors::{
    Connection, Cursor, Page, Reading, ReadingStore, RegisteredSensor, Sensor, SensorError,
    SensorId, SensorQuery, SensorStore, SensorWithState, State, StoreError, TimeRange,
};
use antumbra_shadow::Timestamp;

use super::states::later;
use super::{Kept, MemorySensors};

/// The state of a sensor that was just registered.
fn fresh(registered: &RegisteredSensor) -> State {
    let sensor = &registered.sensor;
    let silence = sensor.silence_after.as_milliseconds();
    let deadline = later(registered.registered_at, silence);
    State {
        sensor: sensor.id.clone(),
        generation: registered.generation.clone(),
        registered_at: registered.registered_at,
        address: sensor.address.clone(),
        sensor_type: sensor.sensor_type.clone(),
        silence_after: sensor.silence_after,
        value: None,
        moment: None,
        since: None,
        last_seen: None,
        deadline,
        connection: Connection::Never,
        lost_at: None,
        changes: 0,
        contacts: 0,
        check_at: Some(deadline),
    }
}

impl SensorStore for MemorySensors {
    async fn register(&self, new: &RegisteredSensor) -> Result<RegisteredSensor, SensorError> {
        let mut inner = self.lock();
        if let Some(kept) = inner.sensors.get(&new.sensor.id) {
            return if kept.registered.is_made_by(new) {
                Ok(kept.registered.clone())
            } else {
                Err(SensorError::AlreadyRegistered)
            };
        }
        let registered = RegisteredSensor {
            registered_at: from_milliseconds(milliseconds(new.registered_at)),
            ..new.clone()
        };
        inner.insert(Kept {
            state: fresh(&registered),
            registered: registered.clone(),
            readings: Default::default(),
        });
        Ok(registered)
    }

    async fn get(&self, id: &SensorId) -> Result<RegisteredSensor, SensorError> {
        let inner = self.lock();
        let kept = inner.sensors.get(id).ok_or(SensorError::NotFound)?;
        Ok(kept.registered.clone())
    }

    async fn state(&self, id: &SensorId) -> Result<State, SensorError> {
        let inner = self.lock();
        let kept = inner.sensors.get(id).ok_or(SensorError::NotFound)?;
        Ok(kept.state.clone())
    }

    async fn change(
        &self,
        before: &RegisteredSensor,
        after: &Sensor,
        now: Timestamp,
    ) -> Result<RegisteredSensor, SensorError> {
        let mut inner = self.lock();
        let id = &before.sensor.id;
        if *id != after.id {
            let fault = "a sensor's id cannot change".to_owned();
            return Err(StoreError::Invalid(fault).into());
        }
        let kept = inner.sensors.get_mut(id).ok_or(SensorError::NotFound)?;
        as_read(&kept.registered, before)?;
        kept.registered.sensor = after.clone();
        kept.registered.version = before.version.next();
        let changed = kept.registered.clone();
        let mut state = kept.state.clone();
        state.address = after.address.clone();
        state.sensor_type = after.sensor_type.clone();
        if after.silence_after != before.sensor.silence_after {
            state.silence_after = after.silence_after;
            let from = state.last_seen.unwrap_or(state.registered_at);
            state.deadline = later(from, after.silence_after.as_milliseconds());
            state.check_at = Some(from_milliseconds(milliseconds(now)));
        }
        if state != kept.state {
            inner.write(id, state);
        }
        Ok(changed)
    }

    async fn unregister(&self, sensor: &RegisteredSensor, _: Timestamp) -> Result<(), SensorError> {
        let mut inner = self.lock();
        let id = &sensor.sensor.id;
        let kept = inner.sensors.get(id).ok_or(SensorError::NotFound)?;
        as_read(&kept.registered, sensor)?;
        inner.remove(id);
        Ok(())
    }

    async fn list(
        &self,
        query: &SensorQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorWithState>, SensorError> {
        page_limit(limit)?;
        let subject = format!("{query:?}");
        let from = cursor.map(|cursor| open(cursor, &subject)).transpose()?;
        let key = |sensor: &Sensor| match &query.place {
            Some(_) => key_in_city(sensor),
            None => sensor.id.to_string(),
        };
        let inner = self.lock();
        let held = inner.sensors.values();
        let mut held: Vec<&Kept> = held
            .filter(|kept| {
                let sensor = &kept.registered.sensor;
                let is_there = query.place.as_ref().is_none_or(|place| {
                    let location = sensor.location.as_ref();
                    location.is_some_and(|location| place.holds(location))
                });
                is_there && query.selects(sensor, Some(&kept.state))
            })
            .collect();
        held.sort_by_key(|kept| key(&kept.registered.sensor));
        held.retain(|kept| {
            let key = key(&kept.registered.sensor);
            from.as_ref().is_none_or(|from| key > *from)
        });
        let more = held.len() > limit;
        held.truncate(limit);
        let last = held.last().filter(|_| more);
        let next =
            last.map(|kept| seal_cursor(&["place", &subject, &key(&kept.registered.sensor)]));
        let rows = held.into_iter().map(|kept| SensorWithState {
            sensor: kept.registered.sensor.clone(),
            state: Some(kept.state.clone()),
        });
        Ok(Page {
            rows: rows.collect(),
            next,
        })
    }
}

/// Sort key of the sensors of a city.
fn key_in_city(sensor: &Sensor) -> String {
    let Some(at) = &sensor.location else {
        return String::new();
    };
    let parts = [&at.building, &at.floor, &at.room];
    let escape = antumbra_service::sensors::escape::escape;
    let levels = parts.map(|part| escape(part.as_str()) + "#").concat();
    format!("{levels}{}", sensor.id)
}

fn as_read(stored: &RegisteredSensor, read: &RegisteredSensor) -> Result<(), SensorError> {
    if (stored.version, &stored.generation) == (read.version, &read.generation) {
        return Ok(());
    }
    Err(SensorError::Conflict {
        expected: read.version,
        actual: stored.version,
    })
}

fn open(cursor: &Cursor, subject: &str) -> Result<String, SensorError> {
    let parts = open_cursor(cursor)?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts[..] {
        ["place" | "readings", of, from] if of == subject => Ok(from.to_owned()),
        _ => {
            let fault = "the cursor belongs to another listing".to_owned();
            Err(StoreError::Invalid(fault).into())
        }
    }
}

impl ReadingStore for MemorySensors {
    async fn save(
        &self,
        sensor: &RegisteredSensor,
        readings: &[Reading],
    ) -> Result<(), SensorError> {
        let mut inner = self.lock();
        let kept = inner.sensors.get_mut(&sensor.sensor.id);
        let kept = kept.filter(|kept| kept.registered.generation == sensor.generation);
        let kept = kept.ok_or(SensorError::NotFound)?;
        for reading in readings {
            kept.readings
                .insert(reading.moment.clone(), reading.clone());
        }
        Ok(())
    }

    async fn latest_page(
        &self,
        id: &SensorId,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<(RegisteredSensor, Page<Reading>), SensorError> {
        page_limit(limit)?;
        let subject = format!("latest {id}");
        let before = cursor.map(|cursor| open(cursor, &subject)).transpose()?;
        let inner = self.lock();
        let kept = inner.sensors.get(id).ok_or(SensorError::NotFound)?;
        let readings = kept.readings.values().rev().filter(|reading| {
            let before = before.as_ref();
            before.is_none_or(|before| reading.moment.to_string() < *before)
        });
        let mut readings = readings.cloned();
        let rows: Vec<Reading> = readings.by_ref().take(limit).collect();
        let last = rows.last().filter(|_| readings.next().is_some());
        let next = last.map(|last| seal_cursor(&["readings", &subject, &last.moment.to_string()]));
        Ok((kept.registered.clone(), Page { rows, next }))
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
        let TimeRange {
            from,
            to,
            newest_first,
        } = *range;
        for time in [from, to] {
            ReadingTime::new(time, Sequence::Number(0))
                .map_err(|error| StoreError::Invalid(error.to_string()))?;
        }
        let subject = format!("{id} {from} {to} {newest_first}");
        let start = cursor.map(|cursor| open(cursor, &subject)).transpose()?;
        let inner = self.lock();
        let kept = inner.sensors.get(id).ok_or(SensorError::NotFound)?;
        let found = kept.readings.iter();
        let found = found.filter(|(moment, _)| (from..to).contains(&moment.time()));
        let mut found: Vec<&Reading> = found.map(|(_, reading)| reading).collect();
        if newest_first {
            found.reverse();
        }
        if let Some(start) = start {
            found.retain(|reading| match newest_first {
                true => reading.moment.to_string() < start,
                false => reading.moment.to_string() > start,
            });
        }
        let rows: Vec<Reading> = found.iter().take(limit).copied().cloned().collect();
        let last = rows.last().filter(|_| found.len() > limit);
        let next = last.map(|last| seal_cursor(&["readings", &subject, &last.moment.to_string()]));
        Ok((kept.registered.clone(), Page { rows, next }))
    }
}
