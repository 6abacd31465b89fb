//! Ports of sensors, one per role: the ports that a function takes are its permissions.

use antumbra_shadow::Timestamp;

use super::id::{SensorId, SensorType};
use super::location::LocationPrefix;
use super::reading::{OwnedReading, Reading};
use super::sensor::{RegisteredSensor, Sensor};
use super::signal::{Recorded, Signal};
use super::state::{Connection, State};
use crate::access::IdRanges;
use crate::paging::{Cursor, InvalidCursor, Page};
use crate::store::{ErrorClass, SendFuture, StoreError, Version};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SensorError {
    #[error("already registered")]
    AlreadyRegistered,
    #[error("not found")]
    NotFound,
    #[error("version {expected} expected, {actual} stored")]
    Conflict { expected: Version, actual: Version },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SensorError {
    pub fn class(&self) -> ErrorClass {
        match self {
            SensorError::AlreadyRegistered | SensorError::Conflict { .. } => ErrorClass::Conflict,
            SensorError::NotFound => ErrorClass::NotFound,
            SensorError::Store(error) => error.class(),
        }
    }
}

impl From<InvalidCursor> for SensorError {
    fn from(error: InvalidCursor) -> SensorError {
        SensorError::Store(StoreError::Invalid(error.to_string()))
    }
}

/// A sensor in a listing, with its state, which may lag behind by a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SensorWithState {
    pub sensor: Sensor,
    /// Its state; `None` if it was unregistered meanwhile.
    pub state: Option<State>,
}

/// Selection of sensors in a listing. The default selects all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SensorQuery {
    /// Place of the sensors.
    pub place: Option<LocationPrefix>,
    /// Start of their ids.
    pub id_prefix: String,
    /// Ids that they may have; entries of others are not read.
    pub within: IdRanges,
    pub sensor_type: Option<SensorType>,
    pub connection: Option<Connection>,
}

impl SensorQuery {
    pub fn in_place(place: LocationPrefix) -> SensorQuery {
        SensorQuery {
            place: Some(place),
            ..SensorQuery::default()
        }
    }

    /// Returns whether a sensor is selected, apart from its place.
    pub fn selects(&self, sensor: &Sensor, state: Option<&State>) -> bool {
        let connection = state.map(|state| state.connection);
        let is_type = |selected: &SensorType| *selected == sensor.sensor_type;
        sensor.id.as_str().starts_with(&self.id_prefix)
            && self.within.contains(sensor.id.as_str())
            && self.sensor_type.as_ref().is_none_or(is_type)
            && self
                .connection
                .is_none_or(|selected| connection == Some(selected))
    }
}

/// Laws, kept by every implementation:
/// - A sensor and its [`State`] exist together or not at all.
/// - Registering a sensor again is [`SensorError::AlreadyRegistered`], also with the same data. Of concurrent
///   registrations one succeeds. A registration of the same generation is the same one, sent again: it changes
///   nothing and succeeds.
/// - A change is conditional on version and generation, and increments the version. The copies in the state
///   change in the same write. A shorter silence timeout counts from the last contact; the next sweep checks
///   the sensor.
/// - Unregistering removes sensor, state and links at once and leaves the readings to a
///   [`PurgeQueue`](crate::purges::PurgeQueue). A later registration of the same id does not see them.
/// - A listing returns each sensor that did not move exactly once: in a place by building, floor, room and id,
///   otherwise by id. It may lag behind by a moment. A sensor that moves while a place is listed may be missing
///   or appear twice.
pub trait SensorStore: Send + Sync {
    /// Registers a sensor, with a state that awaits its first signal.
    fn register(
        &self,
        new: &RegisteredSensor,
    ) -> impl SendFuture<Result<RegisteredSensor, SensorError>>;

    /// Returns a sensor; sees every earlier completed write.
    fn get(&self, id: &SensorId) -> impl SendFuture<Result<RegisteredSensor, SensorError>>;

    /// Returns the state of a sensor; sees every earlier completed write.
    fn state(&self, id: &SensorId) -> impl SendFuture<Result<State, SensorError>>;

    /// Replaces `before` with `after`, which has the same id.
    fn change(
        &self,
        before: &RegisteredSensor,
        after: &Sensor,
        now: Timestamp,
    ) -> impl SendFuture<Result<RegisteredSensor, SensorError>>;

    fn unregister(
        &self,
        sensor: &RegisteredSensor,
        now: Timestamp,
    ) -> impl SendFuture<Result<(), SensorError>>;

    /// Lists sensors, at most `limit` (1 to 1000) per page. A page may be short or even empty before the last, if few of
    /// many sensors match.
    fn list(
        &self,
        query: &SensorQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl SendFuture<Result<Page<SensorWithState>, SensorError>>;
}

/// Laws:
/// - Readings are stored for a registered sensor or not at all. If the sensor is unregistered at the same time,
///   they are stored before that, or the result is [`SensorError::NotFound`].
/// - Readings with the same reading time are the same reading; the last save counts.
pub trait ReadingStore: Send + Sync {
    /// Saves readings of one sensor. Up to 99 are saved atomically. A failed save of more may have saved some;
    /// saving all again is harmless.
    fn save(
        &self,
        sensor: &RegisteredSensor,
        readings: &[Reading],
    ) -> impl SendFuture<Result<(), SensorError>>;

    /// Returns the sensor and a page of its readings, newest first, at most `limit` (1 to 1000).
    fn latest_page(
        &self,
        id: &SensorId,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl SendFuture<Result<(RegisteredSensor, Page<Reading>), SensorError>>;

    /// Returns the sensor and at most `most` (1 to 1000) of its readings, newest first.
    fn latest(
        &self,
        id: &SensorId,
        most: usize,
    ) -> impl SendFuture<Result<(RegisteredSensor, Vec<Reading>), SensorError>> {
        async move {
            let (sensor, page) = self.latest_page(id, most, None).await?;
            Ok((sensor, page.rows))
        }
    }

    /// Returns the sensor and a page of its readings of a time range, at most `limit` (1 to 1000).
    fn in_range(
        &self,
        id: &SensorId,
        range: &TimeRange,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl SendFuture<Result<(RegisteredSensor, Page<Reading>), SensorError>>;

    /// Returns the sensor and a page of its readings from a time until just before another, oldest first.
    fn between(
        &self,
        id: &SensorId,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl SendFuture<Result<(RegisteredSensor, Page<Reading>), SensorError>> {
        async move {
            let range = TimeRange {
                from,
                to,
                newest_first: false,
            };
            self.in_range(id, &range, limit, cursor).await
        }
    }
}

/// Time range of readings, and their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    pub from: Timestamp,
    /// End of the range, not included.
    pub to: Timestamp,
    pub newest_first: bool,
}

impl TimeRange {
    /// Refuses a range that ends before it begins.
    pub fn check(&self) -> Result<(), StoreError> {
        match self.from <= self.to {
            true => Ok(()),
            false => Err(StoreError::Invalid("from is after to".to_owned())),
        }
    }
}

/// Laws:
/// - One signal is one write of the state and no read; two writes if signals overtook each other.
/// - The newest [`ReadingTime`](super::ReadingTime) determines the value, whatever order signals arrive in and
///   however often: the state depends only on the set of signals, except for the counters, which count observed
///   events.
/// - The last contact is the newest *sent* time of any signal, including stale and duplicate ones. A lost
///   sensor with a signal sent after its last contact is online again.
/// - [`State::sequence`] increases by one with each event: one for a return, one for a change of value, two for
///   both in one signal. No number is skipped or used twice.
pub trait StateStore: Send + Sync {
    /// Updates the state of the signal's sensor; `None` if there is no such sensor.
    fn record(&self, signal: &Signal) -> impl SendFuture<Result<Option<Recorded>, StoreError>>;

    /// Stores the readings of recorded signals. Returns one result each, in the given order. Repeating it is
    /// harmless, so a crash between a signal's two writes is repaired when the signal is received again.
    fn save_readings(
        &self,
        readings: &[OwnedReading],
    ) -> impl SendFuture<Vec<Result<(), StoreError>>>;
}

/// Default number of shards of the liveness index. All functions of a deployment must agree; the number can be
/// raised but not lowered.
pub const DEFAULT_SHARDS: u32 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckOutcome {
    /// It became lost by this check; only one check gets this result.
    Lost,
    /// It sent a signal meanwhile and is checked again at its deadline.
    Rearmed,
    /// It was lost already, or unregistered.
    Gone,
}

/// Index of sensors by deadline.
///
/// Laws:
/// - An awaited sensor is due no later than its deadline.
/// - The due list may lag behind by a moment and name sensors that are not due; [`LivenessIndex::check`]
///   decides.
/// - A sensor becomes lost only after its deadline, and once per outage, however many callers check it.
pub trait LivenessIndex: Send + Sync {
    fn shards(&self) -> u32;

    /// Returns the due sensors of a shard, most overdue first, at most `limit` (1 to 1000) per page.
    fn due(
        &self,
        shard: u32,
        now: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl SendFuture<Result<Page<SensorId>, StoreError>>;

    /// Returns of each sensor whether its deadline is after a time, so that it needs no check but a rearm. It may lag
    /// behind by a moment; at most 1000 at once.
    fn are_live(
        &self,
        ids: &[SensorId],
        now: Timestamp,
    ) -> impl SendFuture<Result<Vec<bool>, StoreError>>;

    /// Sets the next check of a sensor to its deadline as it is now, in one write.
    fn rearm(&self, id: &SensorId) -> impl SendFuture<Result<CheckOutcome, StoreError>>;

    /// Checks a sensor: it becomes lost if its deadline has passed, and is rearmed otherwise.
    fn check(
        &self,
        id: &SensorId,
        now: Timestamp,
    ) -> impl SendFuture<Result<CheckOutcome, StoreError>>;
}
