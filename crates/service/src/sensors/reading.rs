//! Readings: measured values with their times.

use super::id::{Generation, InvalidSensor, SensorId, SensorType};
use super::reading_time::{ReadingTime, Sequence};
use super::value::Value;
use crate::text::{check_text, checked_text, is_printable};
use antumbra_shadow::{Document, Timestamp};

pub const UNIT_BYTES: usize = 32;
/// Default number of readings that `latest` returns.
pub const DEFAULT_LATEST: usize = 10;

/// One measurement. Its reading time identifies it: the same reading time is the same reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    pub value: Value,
    /// Unit, such as `°C`.
    pub unit: Option<Unit>,
    /// Time, and sequence among readings of the same time.
    pub moment: ReadingTime,
    /// Further members of the message that it came with.
    pub fields: Option<Document>,
}

impl Reading {
    /// Creates a reading. Without a sequence number, two readings of the same time are different if their values
    /// or units differ.
    pub fn new(
        value: Value,
        unit: Option<Unit>,
        time: Timestamp,
        sequence: Option<u64>,
    ) -> Result<Reading, InvalidSensor> {
        let sequence = match sequence {
            Some(number) => Sequence::Number(number),
            None => {
                let unit = unit.as_ref().map_or("", Unit::as_str);
                Sequence::content(&format!("{unit}\n{}", value.mark()))
            }
        };
        Ok(Reading {
            value,
            unit,
            moment: ReadingTime::new(time, sequence)?,
            fields: None,
        })
    }
}

checked_text! {
    /// The name of a unit: 1 to 32 bytes without control characters.
    pub struct Unit checked by |text| check_text("unit", text, UNIT_BYTES, is_printable);
}

/// Sensor that readings belong to, with the type that determines their retention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub sensor: SensorId,
    pub generation: Generation,
    pub sensor_type: SensorType,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedReading {
    pub owner: Owner,
    pub reading: Reading,
}
