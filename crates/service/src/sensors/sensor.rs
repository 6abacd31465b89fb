//! Registered sensors.

use antumbra_shadow::Timestamp;

use super::id::{Generation, InvalidSensor, SensorId, SensorType};
use super::location::Location;
use crate::store::Version;

/// Default seconds of silence after which a sensor is lost.
pub const DEFAULT_SILENCE_SECONDS: u32 = 3600;
/// Longest silence timeout: a year.
pub const MOST_SILENCE_SECONDS: u32 = 366 * 24 * 3600;
/// Bytes of an address.
pub const ADDRESS_BYTES: usize = 512;

/// Data of a sensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sensor {
    /// Id.
    pub id: SensorId,
    /// Location.
    pub location: Location,
    /// Address in free words; may be empty.
    pub address: Address,
    /// Type.
    pub sensor_type: SensorType,
    /// Silence after which it is lost.
    pub silence_after: SilenceTimeout,
}

impl Sensor {
    /// Creates a sensor with the default type, no address and the default silence timeout.
    pub fn new(id: SensorId, location: Location) -> Sensor {
        Sensor {
            id,
            location,
            address: Address::default(),
            sensor_type: SensorType::default(),
            silence_after: SilenceTimeout::default(),
        }
    }
}

/// Free words of at most 512 bytes, without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Address(String);

impl Address {
    /// Checks a text.
    pub fn new(text: impl Into<String>) -> Result<Address, InvalidSensor> {
        let (what, text) = ("address", text.into());
        if text.len() > ADDRESS_BYTES {
            return Err(InvalidSensor::TooLong {
                what,
                bytes: text.len(),
                limit: ADDRESS_BYTES,
            });
        }
        match text.chars().find(|c| c.is_control()) {
            Some(character) => Err(InvalidSensor::Character { what, character }),
            None => Ok(Address(text)),
        }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whole seconds of silence, from one to a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SilenceTimeout(u32);

impl SilenceTimeout {
    /// Checks a number of seconds.
    pub fn seconds(seconds: u64) -> Result<SilenceTimeout, InvalidSensor> {
        let most = u64::from(MOST_SILENCE_SECONDS);
        match u32::try_from(seconds) {
            Ok(whole) if (1..=MOST_SILENCE_SECONDS).contains(&whole) => Ok(SilenceTimeout(whole)),
            _ => Err(InvalidSensor::Range {
                what: "silence in seconds",
                actual: seconds,
                least: 1,
                most,
            }),
        }
    }

    /// Returns the seconds.
    pub fn as_seconds(self) -> u32 {
        self.0
    }

    /// Returns the milliseconds.
    pub fn as_milliseconds(self) -> i64 {
        i64::from(self.0) * 1000
    }
}

impl Default for SilenceTimeout {
    fn default() -> SilenceTimeout {
        SilenceTimeout(DEFAULT_SILENCE_SECONDS)
    }
}

/// A sensor in the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredSensor {
    /// The sensor.
    pub sensor: Sensor,
    /// Version: 1 after registration.
    pub version: Version,
    /// Time of registration.
    pub registered_at: Timestamp,
    /// Registration of the sensor id.
    pub generation: Generation,
}
