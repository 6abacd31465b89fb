//! Use cases of sensors.

use std::sync::Arc;

use antumbra_shadow::Timestamp;

use super::id::{Generation, SensorId, SensorType};
use super::location::Location;
use super::ports::{
    ReadingStore, SensorError, SensorQuery, SensorStore, SensorWithState, StateStore, TimeRange,
};
use super::reading::{DEFAULT_LATEST, Reading};
use super::sensor::{Address, RegisteredSensor, Sensor, SilenceTimeout};
use super::signal::{Outcome, Recorded, Signal};
use super::signal_message::SignalPayload;
use super::state::State;
use crate::backoff;
use crate::clock::{Clock, SystemClock};
use crate::paging::{Cursor, Page};
use crate::store::{StoreError, Version};

/// Retries of a change after conflicts.
const RETRIES: u32 = 5;

/// Changes to a sensor; `None` leaves a field unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SensorPatch {
    pub address: Option<Address>,
    pub sensor_type: Option<SensorType>,
    pub silence_after: Option<SilenceTimeout>,
}

pub struct Sensors<S> {
    store: S,
    clock: Arc<dyn Clock>,
}

impl<S> Sensors<S> {
    /// Creates the use cases with the system clock.
    pub fn new(store: S) -> Sensors<S> {
        Sensors::with_clock(store, Arc::new(SystemClock))
    }

    pub fn with_clock(store: S, clock: Arc<dyn Clock>) -> Sensors<S> {
        Sensors { store, clock }
    }

    pub fn store(&self) -> &S {
        &self.store
    }
}

impl<S: SensorStore> Sensors<S> {
    /// Registers a sensor. Of concurrent calls one succeeds; the others and all later ones get
    /// [`SensorError::AlreadyRegistered`], also with the same data.
    pub async fn register(&self, sensor: Sensor) -> Result<RegisteredSensor, SensorError> {
        self.register_as(sensor, Generation::unique).await
    }

    /// The same, except that a request that is repeated within a day gets the sensor that it registered. `request`
    /// is a text of at most 32 letters and digits that no other request has.
    pub async fn register_once(
        &self,
        sensor: Sensor,
        request: &str,
    ) -> Result<RegisteredSensor, SensorError> {
        let generation = |now| Generation::of_request(now, request);
        self.register_as(sensor, generation).await
    }

    async fn register_as(
        &self,
        sensor: Sensor,
        generation: impl FnOnce(Timestamp) -> Generation,
    ) -> Result<RegisteredSensor, SensorError> {
        let registered_at = self.clock.now();
        let new = RegisteredSensor {
            sensor,
            version: Version::NONE.next(),
            registered_at,
            generation: generation(registered_at),
        };
        self.store.register(&new).await
    }

    /// Replaces the data of a sensor, or registers it. Also returns whether this call registered it.
    pub async fn put(&self, sensor: Sensor) -> Result<(RegisteredSensor, bool), SensorError> {
        // Another caller may register or unregister it between the two steps.
        for _ in 0..RETRIES {
            match self.replace(&sensor, None).await {
                Err(SensorError::NotFound) => {}
                replaced => return Ok((replaced?, false)),
            }
            match self.register(sensor.clone()).await {
                Err(SensorError::AlreadyRegistered) => {}
                registered => return Ok((registered?, true)),
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// Replaces the data of a registered sensor.
    pub async fn replace(
        &self,
        sensor: &Sensor,
        expected: Option<Version>,
    ) -> Result<RegisteredSensor, SensorError> {
        self.change(&sensor.id, expected, |_| sensor.clone()).await
    }

    pub async fn get(&self, id: &SensorId) -> Result<RegisteredSensor, SensorError> {
        self.store.get(id).await
    }

    pub async fn state(&self, id: &SensorId) -> Result<State, SensorError> {
        self.store.state(id).await
    }

    pub async fn move_to(
        &self,
        id: &SensorId,
        location: Location,
        expected: Option<Version>,
    ) -> Result<RegisteredSensor, SensorError> {
        let there = |sensor: &Sensor| Sensor {
            location: Some(location.clone()),
            ..sensor.clone()
        };
        self.change(id, expected, there).await
    }

    /// Changes a sensor without moving it.
    pub async fn update(
        &self,
        id: &SensorId,
        patch: SensorPatch,
        expected: Option<Version>,
    ) -> Result<RegisteredSensor, SensorError> {
        let patched = |sensor: &Sensor| {
            let (address, sensor_type) = (patch.address.clone(), patch.sensor_type.clone());
            Sensor {
                address: address.unwrap_or_else(|| sensor.address.clone()),
                sensor_type: sensor_type.unwrap_or_else(|| sensor.sensor_type.clone()),
                silence_after: patch.silence_after.unwrap_or(sensor.silence_after),
                ..sensor.clone()
            }
        };
        self.change(id, expected, patched).await
    }

    /// Reads, changes and writes; after a conflict again, unless the caller expects a version. A change without
    /// effect is not written.
    async fn change(
        &self,
        id: &SensorId,
        expected: Option<Version>,
        change: impl Fn(&Sensor) -> Sensor,
    ) -> Result<RegisteredSensor, SensorError> {
        let mut failures = 0;
        loop {
            let before = self.as_expected(id, expected).await?;
            let after = change(&before.sensor);
            if after == before.sensor {
                return Ok(before);
            }
            match self.store.change(&before, &after, self.clock.now()).await {
                Err(SensorError::Conflict { .. }) if expected.is_none() && failures < RETRIES => {
                    failures += 1;
                    let wait = backoff::delay(failures, fastrand::f64());
                    self.clock.sleep(wait).await;
                }
                result => return result,
            }
        }
    }

    /// Unregisters a sensor with its state and links; its readings are purged later.
    pub async fn unregister(
        &self,
        id: &SensorId,
        expected: Option<Version>,
    ) -> Result<(), SensorError> {
        let mut failures = 0;
        loop {
            let sensor = self.as_expected(id, expected).await?;
            match self.store.unregister(&sensor, self.clock.now()).await {
                Err(SensorError::Conflict { .. }) if expected.is_none() && failures < RETRIES => {
                    failures += 1;
                    let wait = backoff::delay(failures, fastrand::f64());
                    self.clock.sleep(wait).await;
                }
                result => return result,
            }
        }
    }

    async fn as_expected(
        &self,
        id: &SensorId,
        expected: Option<Version>,
    ) -> Result<RegisteredSensor, SensorError> {
        let found = self.store.get(id).await?;
        match expected {
            Some(expected) if expected != found.version => Err(SensorError::Conflict {
                expected,
                actual: found.version,
            }),
            _ => Ok(found),
        }
    }

    /// Lists sensors with their states, at most `limit` (1 to 1000) per page. A sensor that was registered or moved a
    /// moment ago may be missing.
    pub async fn list(
        &self,
        query: &SensorQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorWithState>, SensorError> {
        self.store.list(query, limit, cursor).await
    }
}

impl<S: SensorStore + ReadingStore + StateStore> Sensors<S> {
    /// Saves readings of a registered sensor. They count as a contact, and the newest becomes the state unless
    /// the state is newer.
    pub async fn save(
        &self,
        id: &SensorId,
        readings: &[Reading],
    ) -> Result<RegisteredSensor, SensorError> {
        let sensor = self.store.get(id).await?;
        self.store.save(&sensor, readings).await?;
        let newest = readings.iter().max_by_key(|reading| &reading.moment);
        if let Some(newest) = newest {
            let signal = Signal::of_reading(id.clone(), newest, self.clock.now());
            let recorded = self.store.record(&signal).await?;
            recorded.ok_or(SensorError::NotFound)?;
        }
        Ok(sensor)
    }
}

impl<S: StateStore> Sensors<S> {
    /// Records a signal that arrived now, with its reading. `message_id` distinguishes signals of one moment.
    pub async fn signal(
        &self,
        payload: SignalPayload,
        message_id: &str,
    ) -> Result<Outcome, SensorError> {
        let signal = Signal::new(
            payload.sensor_id,
            payload.data,
            payload.ts,
            payload.seq,
            self.clock.now(),
            message_id,
        );
        let signal = signal.map_err(|error| StoreError::Invalid(error.to_string()))?;
        let signal = signal.with_fields(payload.fields);
        let recorded = self.store.record(&signal).await?;
        let Recorded { outcome, owner } = recorded.ok_or(SensorError::NotFound)?;
        let saved = self.store.save_readings(&[signal.reading(owner)]).await;
        saved.into_iter().collect::<Result<(), _>>()?;
        Ok(outcome)
    }
}

impl<S: SensorStore + ReadingStore> Sensors<S> {
    /// Returns the sensor and a page of its readings, newest first: 10 by default (1 to 1000).
    pub async fn latest(
        &self,
        id: &SensorId,
        most: Option<usize>,
        cursor: Option<&Cursor>,
    ) -> Result<(RegisteredSensor, Page<Reading>), SensorError> {
        let most = most.unwrap_or(DEFAULT_LATEST);
        self.store.latest_page(id, most, cursor).await
    }

    /// Returns the sensor and a page of its readings of a time range.
    pub async fn in_range(
        &self,
        id: &SensorId,
        range: &TimeRange,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<(RegisteredSensor, Page<Reading>), SensorError> {
        self.store.in_range(id, range, limit, cursor).await
    }

    /// Returns the sensor and a page of its readings from a time until just before another, oldest first.
    pub async fn between(
        &self,
        id: &SensorId,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<(RegisteredSensor, Page<Reading>), SensorError> {
        self.store.between(id, from, to, limit, cursor).await
    }
}
