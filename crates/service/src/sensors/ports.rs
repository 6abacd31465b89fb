//! Ports of sensors, one per role: the ports that a function takes are its permissions.

use std::future::Future;

use antumbra_shadow::Timestamp;

use super::id::SensorId;
use super::location::LocationPrefix;
use super::reading::{OwnedReading, Reading};
use super::sensor::{RegisteredSensor, Sensor};
use super::signal::{Recorded, Signal};
use super::state::State;
use crate::paging::{Cursor, InvalidCursor, Page};
use crate::store::{ErrorClass, StoreError, Version};

/// Error of a request about sensors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SensorError {
    /// The id is registered with other data.
    #[error("already registered")]
    AlreadyRegistered,
    /// The sensor does not exist.
    #[error("not found")]
    NotFound,
    /// The stored version differs from the expected one.
    #[error("version {expected} expected, {actual} stored")]
    Conflict {
        /// Expected version.
        expected: Version,
        /// Stored version.
        actual: Version,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SensorError {
    /// Returns the class of this error.
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

/// A sensor in a listing, with its state of a moment ago.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SensorWithState {
    pub sensor: Sensor,
    /// Its state; `None` if it was unregistered meanwhile.
    pub state: Option<State>,
}

/// Store of registered sensors.
///
/// Laws, kept by every implementation:
/// - A sensor and its [`State`] are there together or not at all.
/// - Registering what is registered with the same data changes nothing and gives what is stored; with
///   other data it is [`SensorError::AlreadyRegistered`]. Of many at once one registers.
/// - A change is conditional on version and generation, and raises the version by one. The state's copies
///   change with it, at once. A shorter silence counts from the last contact; a sweep looks soon.
/// - Unregistering takes sensor, state and links away at once and leaves the readings to [`PurgeQueue`]. What
///   registers the same id afterwards does not see them.
/// - A listing gives each sensor that stayed where it was exactly once, that of a place in order of
///   building, floor, room and id, that of all by id. It may lag behind by a moment; of a place, a sensor
///   that moves while pages are turned may be missing or come twice.
pub trait SensorStore: Send + Sync {
    /// Registers a sensor, with a state that waits for its first sign of life.
    fn register(
        &self,
        new: &RegisteredSensor,
    ) -> impl Future<Output = Result<RegisteredSensor, SensorError>> + Send;

    /// The sensor that has this id; sees every change that was answered before.
    fn get(
        &self,
        id: &SensorId,
    ) -> impl Future<Output = Result<RegisteredSensor, SensorError>> + Send;

    /// Its state; sees every change that was answered before.
    fn state(&self, id: &SensorId) -> impl Future<Output = Result<State, SensorError>> + Send;

    /// Puts `after` in place of `before`, which has the same id.
    fn change(
        &self,
        before: &RegisteredSensor,
        after: &Sensor,
        now: Timestamp,
    ) -> impl Future<Output = Result<RegisteredSensor, SensorError>> + Send;

    /// Takes the sensor away.
    fn unregister(
        &self,
        sensor: &RegisteredSensor,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), SensorError>> + Send;

    /// The sensors in a place, at most `limit` (1 to 1000) a page.
    fn in_place(
        &self,
        place: &LocationPrefix,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl Future<Output = Result<Page<SensorWithState>, SensorError>> + Send;

    /// All sensors, at most `limit` (1 to 1000) a page.
    fn all(
        &self,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl Future<Output = Result<Page<SensorWithState>, SensorError>> + Send;
}

/// Store of readings.
///
/// Laws:
/// - Readings are saved for a registered sensor or not at all: one that is unregistered at the same time
///   either has them before, or [`SensorError::NotFound`] is said.
/// - The same moment again is the same reading; the last save of it counts.
pub trait ReadingStore: Send + Sync {
    /// Saves readings of one sensor. Up to 99 at once; of more, some may be saved where it fails, and
    /// saving all again does no harm.
    fn save(
        &self,
        sensor: &RegisteredSensor,
        readings: &[Reading],
    ) -> impl Future<Output = Result<(), SensorError>> + Send;

    /// The sensor and at most `most` (1 to 1000) of its readings, newest first.
    fn latest(
        &self,
        id: &SensorId,
        most: usize,
    ) -> impl Future<Output = Result<(RegisteredSensor, Vec<Reading>), SensorError>> + Send;

    /// Readings from a time until just before another, oldest first, at most `limit` (1 to 1000) a page.
    fn between(
        &self,
        id: &SensorId,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl Future<Output = Result<Page<Reading>, SensorError>> + Send;
}

/// Store of sensor states.
///
/// Laws:
/// - One signal is one write of the state and no read, except where signals overtook each other: then two.
/// - The newest [`ReadingTime`](super::ReadingTime) has the value, in whatever order signals come and however often:
///   the state depends on the set of signals alone, but for the counters, which say what was seen to
///   happen.
/// - The last contact is the newest time *sent* of any signal, stale and duplicate ones too. A lost
///   sensor that is heard at a time after its last contact is online again.
/// - [`State::sequence`] rises by one with each occurrence: one for a return, one for a change of value,
///   two for both in one signal. No number is left out or given twice.
pub trait StateStore: Send + Sync {
    /// Updates the state of the signal's sensor; `None` if there is no such sensor.
    fn record(
        &self,
        signal: &Signal,
    ) -> impl Future<Output = Result<Option<Recorded>, StoreError>> + Send;

    /// Keeps readings of signals that were recorded, one result each, in the order given. Doing it again
    /// does no harm, so a crash between a signal's two writes is healed when the signal comes again.
    fn save_readings(
        &self,
        readings: &[OwnedReading],
    ) -> impl Future<Output = Vec<Result<(), StoreError>>> + Send;
}

/// Shards of the sensors that are waited for, unless configured otherwise. All functions of a deployment
/// have to agree; more may be set later, fewer never.
pub const DEFAULT_SHARDS: u32 = 16;

/// Outcome of checking a due sensor.
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
/// - A sensor that waits for a sign of life is due no later than its deadline.
/// - What is due may lag behind by a moment and name sensors that are not; [`LivenessIndex::check`] decides.
/// - A sensor becomes lost only when its deadline has passed, and once per outage however many look.
pub trait LivenessIndex: Send + Sync {
    /// Returns the number of shards.
    fn shards(&self) -> u32;

    /// Sensors of a shard to look at by now, the most overdue first, at most `limit` (1 to 1000) a page.
    fn due(
        &self,
        shard: u32,
        now: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl Future<Output = Result<Page<SensorId>, StoreError>> + Send;

    /// Checks a sensor: it becomes lost if its deadline has passed.
    fn check(
        &self,
        id: &SensorId,
        now: Timestamp,
    ) -> impl Future<Output = Result<CheckOutcome, StoreError>> + Send;
}

/// The readings a sensor left behind when it was unregistered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purge {
    /// The id it had.
    pub sensor: SensorId,
    /// Registration of the id.
    pub generation: super::Generation,
}

/// Takes away what unregistered sensors left behind, a little at a time. What is done stays done, so it
/// can stop anywhere.
pub trait PurgeQueue: Send + Sync {
    /// Purges to go on with by now, at most `limit`.
    fn due_purges(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Purge>, StoreError>> + Send;

    /// Deletes some of what is left; whether that was the last of it. One that finds nothing is kept for a
    /// while, as signals under way may still leave a reading, and is then gone.
    fn purge(
        &self,
        purge: &Purge,
        now: Timestamp,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;
}
