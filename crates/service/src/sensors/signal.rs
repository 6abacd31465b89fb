//! A sensor's message, and what became of it.

use std::time::Duration;

use antumbra_shadow::Timestamp;

use super::id::{InvalidSensor, SensorId};
use super::reading::{OwnedReading, Owner, Reading};
use super::reading_time::{ReadingTime, Sequence, from_milliseconds, milliseconds};
use super::value::Value;

/// How far a device's clock may be ahead of the queue's before it is not believed.
pub const CLOCK_AHEAD: Duration = Duration::from_secs(5 * 60);

/// What a sensor said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    sensor: SensorId,
    value: Value,
    moment: ReadingTime,
    sent: Timestamp,
}

impl Signal {
    /// A message that the queue took in at `sent`, under an id of its own. The device may say when it
    /// measured and which measurement of that time it is; otherwise the queue's time and id stand in.
    ///
    /// Two clocks, for two questions. Which of two values is newer is asked of the device's. Whether the
    /// sensor is alive is asked of the queue's: a device whose clock is wrong must not be lost while it
    /// talks. A device's time more than [`CLOCK_AHEAD`] after the queue's is replaced by the queue's, or
    /// one wrong message would make all others stale until then.
    pub fn new(
        sensor: SensorId,
        value: Value,
        measured: Option<Timestamp>,
        sequence: Option<u64>,
        sent: Timestamp,
        message_id: &str,
    ) -> Result<Signal, InvalidSensor> {
        let sent = from_milliseconds(milliseconds(sent));
        let time = measured.filter(|time| *time <= sent.after(CLOCK_AHEAD));
        let sequence = match sequence {
            Some(number) => Sequence::Number(number),
            None => Sequence::message(message_id)?,
        };
        Ok(Signal {
            sensor,
            value,
            moment: ReadingTime::new(time.unwrap_or(sent), sequence)?,
            sent,
        })
    }

    /// Whose.
    pub fn sensor(&self) -> &SensorId {
        &self.sensor
    }

    /// What it says.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// What decides whether it is newer than another.
    pub fn moment(&self) -> &ReadingTime {
        &self.moment
    }

    /// When the queue took it in, in whole milliseconds.
    pub fn sent(&self) -> Timestamp {
        self.sent
    }

    /// The reading to be kept of it.
    pub fn reading(&self, owner: Owner) -> OwnedReading {
        OwnedReading {
            owner,
            reading: Reading {
                value: self.value.clone(),
                unit: None,
                moment: self.moment.clone(),
            },
        }
    }
}

/// What a signal did to the state of its sensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The first value there is: a baseline.
    First,
    /// Another value than before.
    Changed,
    /// The same value, newer.
    Same,
    /// Older than what is known. The sensor was heard all the same.
    Stale,
    /// Known already; also when it was this signal itself, in an attempt whose answer was lost.
    Duplicate,
}

impl Outcome {
    /// The word for it in logs and figures.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::First => "first",
            Outcome::Changed => "changed",
            Outcome::Same => "same",
            Outcome::Stale => "stale",
            Outcome::Duplicate => "duplicate",
        }
    }
}

/// What became of a signal of a registered sensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// What it did to the state.
    pub outcome: Outcome,
    /// Whose reading is to be kept of it, whatever the outcome.
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
    fn the_queue_stands_in_for_a_device_without_a_clock() {
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
    fn a_clock_far_ahead_is_not_believed() {
        let believed = signal(Some("2026-01-31T12:05:00.123Z"), None);
        assert_eq!(believed.moment().time(), at("2026-01-31T12:05:00.123Z"));
        let not = signal(Some("2026-01-31T12:05:00.124Z"), None);
        assert_eq!(not.moment().time(), not.sent());
    }
}
