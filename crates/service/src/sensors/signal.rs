//! Signals: parsed messages of sensors. `sensor-ingest` records each one in the state of its sensor and stores its
//! reading.

use std::time::Duration;

use antumbra_shadow::{Document, Timestamp};

use super::id::{InvalidSensor, SensorId};
use super::reading::{OwnedReading, Owner, Reading};
use super::reading_time::{ReadingTime, Sequence, from_milliseconds, milliseconds};
use super::value::Value;
use antumbra_shadow::word_enum;

/// Maximum time by which the clock of a device may be ahead of the queue's clock.
pub const CLOCK_AHEAD: Duration = Duration::from_secs(5 * 60);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    sensor: SensorId,
    value: Value,
    moment: ReadingTime,
    sent: Timestamp,
    /// Further members of the message.
    fields: Option<Document>,
}

impl Signal {
    /// Creates the signal of a message that the queue received at `sent`. `measured` is the device's time of the
    /// measurement, `sequence` its number among measurements of that time. If the device sends none, the queue's time
    /// and message id are used instead.
    ///
    /// The device's time orders values. The queue's time decides about liveness: a device with a wrong clock must not
    /// become LOST while it sends. A device time more than [`CLOCK_AHEAD`] after the queue's time is replaced by the
    /// queue's time; otherwise one such message would make all later ones stale until that time has passed.
    pub fn new(
        sensor: SensorId,
        value: Value,
        measured: Option<Timestamp>,
        sequence: Option<u64>,
        sent: Timestamp,
        message_id: &str,
    ) -> Result<Signal, InvalidSensor> {
        let sent = from_milliseconds(milliseconds(sent));
        let plausible = measured.filter(|time| *time <= sent.after(CLOCK_AHEAD));
        let sequence = match sequence {
            Some(number) => Sequence::Number(number),
            None => Sequence::message(message_id)?,
        };
        Ok(Signal {
            sensor,
            value,
            moment: ReadingTime::new(plausible.unwrap_or(sent), sequence)?,
            sent,
            fields: None,
        })
    }

    /// Adds the further members of the message, which are kept with the reading.
    #[must_use]
    pub fn with_fields(mut self, fields: Option<Document>) -> Signal {
        self.fields = fields;
        self
    }

    /// Creates the signal of a reading received now. A time too far ahead is replaced, as in a message.
    pub fn of_reading(sensor: SensorId, reading: &Reading, now: Timestamp) -> Signal {
        let sent = from_milliseconds(milliseconds(now));
        let moment = match reading.moment.time() <= sent.after(CLOCK_AHEAD) {
            true => reading.moment.clone(),
            false => reading.moment.at(sent),
        };
        Signal {
            sensor,
            value: reading.value.clone(),
            moment,
            sent,
            fields: None,
        }
    }

    pub fn sensor(&self) -> &SensorId {
        &self.sensor
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the reading time, which orders signals.
    pub fn moment(&self) -> &ReadingTime {
        &self.moment
    }

    /// Returns the time at which the queue received the message, in whole milliseconds.
    pub fn sent(&self) -> Timestamp {
        self.sent
    }

    pub fn reading(&self, owner: Owner) -> OwnedReading {
        OwnedReading {
            owner,
            reading: Reading {
                value: self.value.clone(),
                unit: None,
                moment: self.moment.clone(),
                fields: self.fields.clone(),
            },
        }
    }
}

word_enum! {
    /// Effect of a signal on the state of its sensor.
    pub enum Outcome as "outcome" {
        /// It is the first value of the sensor, with which later ones are compared.
        First = "first",
        /// It changed the value.
        Changed = "changed",
        /// It has the same value as the state.
        Same = "same",
        /// It is older than the state; it still counts as a sign of life.
        Stale = "stale",
        /// It was recorded already, possibly by an attempt whose response was lost.
        Duplicate = "duplicate",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub outcome: Outcome,
    /// Owner of the reading to store, whatever the outcome.
    pub owner: Owner,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn signal(measured: Option<&str>, sequence: Option<u64>) -> Signal {
        Signal::new(
            SensorId::new("lock").unwrap(),
            Value::whole(1),
            measured.map(at),
            sequence,
            at("2026-01-31T12:00:00.1234567Z"),
            "a-b-c",
        )
        .unwrap()
    }

    #[test]
    fn without_a_device_time_the_time_and_id_of_the_queue_are_used() {
        assert_eq!(
            signal(None, None).moment().to_string(),
            "2026-01-31T12:00:00.123000000Z#@a-b-c"
        );
        assert_eq!(
            signal(Some("2026-01-31T11:00:00Z"), Some(3))
                .moment()
                .to_string(),
            "2026-01-31T11:00:00.000000000Z#00000000000000000003"
        );
    }

    #[test]
    fn a_device_time_too_far_ahead_is_replaced() {
        let accepted = signal(Some("2026-01-31T12:05:00.123Z"), None);
        assert_eq!(accepted.moment().time(), at("2026-01-31T12:05:00.123Z"));
        let replaced = signal(Some("2026-01-31T12:05:00.124Z"), None);
        assert_eq!(replaced.moment().time(), replaced.sent());
    }
}
