//! Sensors: which there are and where, what they measured, what they last said, and whether they talk.
//!
//! - [`Sensor`], [`Location`], [`LocationPrefix`]: the registry
//! - [`Reading`], [`ReadingTime`], [`Value`]: what was measured, and when
//! - [`Signal`], [`State`]: a message of a sensor, and what is known after it
//! - [`SensorEvent`]: what clients are notified of, computed from two states
//! - [`Sensors`]: what is asked of the registry
//! - [`SensorStore`], [`ReadingStore`], [`StateStore`], [`LivenessIndex`], [`PurgeQueue`]: the ports
//!
//! A signal costs two writes and no read. Its first write updates the state by what is there alone; the
//! table's stream tells of it, so a state and what follows from it can never part.

pub mod escape;
mod event;
mod id;
mod location;
mod ports;
mod reading;
pub mod reading_time;
mod retention;
mod sensor;
mod service;
mod signal;
mod signal_message;
pub mod state;
mod value;

pub use crate::paging::{Cursor, Page};
pub use crate::store::{StoreError, Version};
pub use event::{EventDetail, EventType, SensorEvent};
pub use id::{Generation, InvalidSensor, NAME_CHARS, SensorId, SensorType};
pub use location::{Location, LocationPrefix, PART_BYTES, Part};
pub use ports::{
    CheckOutcome, DEFAULT_SHARDS, LivenessIndex, Purge, PurgeQueue, ReadingStore, SensorError,
    SensorStore, SensorWithState, StateStore,
};
pub use reading::{DEFAULT_LATEST, OwnedReading, Owner, Reading, UNIT_BYTES, Unit};
pub use reading_time::{MESSAGE_ID_BYTES, ReadingTime, Sequence};
pub use retention::Retention;
pub use sensor::{
    ADDRESS_BYTES, Address, DEFAULT_SILENCE_SECONDS, MOST_SILENCE_SECONDS, RegisteredSensor,
    Sensor, SilenceTimeout,
};
pub use service::{SensorPatch, Sensors, purge_due};
pub use signal::{CLOCK_AHEAD, Outcome, Recorded, Signal};
pub use signal_message::{
    MARKER, SIGNAL_BYTES, SignalError, SignalMessage, SignalPayload, ValueType,
};
pub use state::{Connection, State};
pub use value::{TEXT_BYTES, Value};
