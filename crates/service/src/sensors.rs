//! Sensors: the registry, readings, latest states and liveness.
//!
//! - [`Sensor`], [`Location`], [`LocationPrefix`]: the registry
//! - [`Reading`], [`ReadingTime`], [`Value`]: measured values and their times
//! - [`Signal`], [`State`]: a message of a sensor, and the state that results from it
//! - [`SensorEvent`]: differences between two states that clients are notified of
//! - [`Sensors`]: use cases of the registry
//! - [`SensorStore`], [`ReadingStore`], [`StateStore`], [`LivenessIndex`]: the ports
//!
//! A signal costs two writes and no read. The first write updates the state without reading it. The table's
//! stream carries that write, so a state and its events can never diverge.

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
    CheckOutcome, DEFAULT_SHARDS, LivenessIndex, ReadingStore, SensorError, SensorQuery,
    SensorStore, SensorWithState, StateStore, TimeRange,
};
pub use reading::{DEFAULT_LATEST, OwnedReading, Owner, Reading, UNIT_BYTES, Unit};
pub use reading_time::{MESSAGE_ID_BYTES, ReadingTime, Sequence};
pub use retention::Retention;
pub use sensor::{
    ADDRESS_BYTES, Address, DEFAULT_SILENCE_SECONDS, MOST_SILENCE_SECONDS, RegisteredSensor,
    Sensor, SilenceTimeout,
};
pub use service::{SensorPatch, Sensors};
pub use signal::{CLOCK_AHEAD, Outcome, Recorded, Signal};
pub use signal_message::{
    MARKER, SIGNAL_BYTES, SignalError, SignalMessage, SignalPayload, ValueType,
};
pub use state::{Connection, State};
pub use value::{TEXT_BYTES, Value};
