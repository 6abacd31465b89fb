//! Sensors: which there are and where, what they measured, what they last said, and whether they talk.
//!
//! - [`Sensor`], [`Location`], [`Place`]: the registry
//! - [`Reading`], [`Moment`], [`Value`]: what was measured, and when
//! - [`Signal`], [`State`]: a message of a sensor, and what is known after it
//! - [`occurrences`]: what clients are told, from two states
//! - [`Sensors`]: what is asked of the registry
//! - [`Registry`], [`Readings`], [`States`], [`Liveness`], [`Purges`]: the ports
//!
//! A signal costs two writes and no read. Its first write updates the state by what is there alone; the
//! table's stream tells of it, so a state and what follows from it can never part.

mod desk;
pub mod escape;
mod id;
mod location;
pub mod moment;
pub mod occurrences;
mod ports;
mod reading;
mod retention;
mod sensor;
mod signal;
pub mod state;
mod value;

pub use crate::paging::{Cursor, Page};
pub use crate::shadows::Version;
pub use crate::store::StoreError;
pub use desk::{SensorPatch, Sensors, purge_due};
pub use id::{Generation, InvalidSensor, NAME_CHARS, SensorId, SensorType};
pub use location::{Location, PART_BYTES, Part, Place};
pub use moment::{MESSAGE_ID_BYTES, Moment, Sequence};
pub use occurrences::{Occurrence, What};
pub use ports::{
    Checked, DEFAULT_SHARDS, Liveness, Purge, Purges, Readings, Registry, Row, SensorError, States,
};
pub use reading::{DEFAULT_LATEST, OwnedReading, Owner, Reading, UNIT_BYTES, Unit};
pub use retention::Retention;
pub use sensor::{
    ADDRESS_BYTES, Address, DEFAULT_SILENCE_SECONDS, MOST_SILENCE_SECONDS, Registered, Sensor,
    Silence,
};
pub use signal::{CLOCK_AHEAD, Outcome, Recorded, Signal};
pub use state::{Connection, State};
pub use value::{TEXT_BYTES, Value};
