//! Registered sensors.

use std::time::Duration;

use antumbra_shadow::Timestamp;
use serde::Serialize;

use super::id::{Generation, InvalidSensor, SensorId, SensorType};
use super::location::Location;
use crate::liveness::SWEEP_PERIOD;
use crate::store::Version;
use crate::text::{check_text, checked_text, is_printable};

/// Default seconds of silence after which a sensor is lost.
pub const DEFAULT_SILENCE_SECONDS: u32 = 3600;
/// Longest silence timeout: a year.
pub const MOST_SILENCE_SECONDS: u32 = 366 * 24 * 3600;
pub const ADDRESS_BYTES: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sensor {
    pub id: SensorId,
    /// Its place, if it has a fixed one.
    pub location: Option<Location>,
    /// Address in free words; may be empty.
    pub address: Address,
    pub sensor_type: SensorType,
    /// Silence after which it is lost.
    pub silence_after: SilenceTimeout,
}

impl Sensor {
    /// Creates a sensor with the default type, no address and the default silence timeout.
    pub fn new(id: SensorId, location: impl Into<Option<Location>>) -> Sensor {
        Sensor {
            id,
            location: location.into(),
            address: Address::default(),
            sensor_type: SensorType::default(),
            silence_after: SilenceTimeout::default(),
        }
    }
}

checked_text! {
    /// Free words of at most 512 bytes, without control characters; may be empty.
    #[derive(Default)]
    pub struct Address checked by |text| match text.is_empty() {
        true => Ok(text),
        false => check_text("address", text, ADDRESS_BYTES, is_printable),
    };
}

/// Whole seconds of silence, from one to a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct SilenceTimeout(u32);

impl SilenceTimeout {
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

    /// Returns a warning if silence is noticed much later than the timeout says.
    pub fn warning(self) -> Option<String> {
        let (seconds, period) = (self.as_seconds(), SWEEP_PERIOD.as_secs());
        (u64::from(seconds) < period).then(|| {
            format!("silence is checked every {period} s: a loss after {seconds} s is noticed up to {period} s later")
        })
    }

    pub fn as_seconds(self) -> u32 {
        self.0
    }

    pub fn as_milliseconds(self) -> i64 {
        i64::from(self.0) * 1000
    }
}

impl Default for SilenceTimeout {
    fn default() -> SilenceTimeout {
        SilenceTimeout(DEFAULT_SILENCE_SECONDS)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredSensor {
    pub sensor: Sensor,
    /// Version: 1 after registration.
    pub version: Version,
    pub registered_at: Timestamp,
    pub generation: Generation,
}

/// Time for which a repeated request is known.
const REQUEST_KNOWN: Duration = Duration::from_secs(23 * 3600);

impl RegisteredSensor {
    /// Returns whether this registration was made by the same call or the same request as another one, which found the
    /// sensor registered.
    pub fn is_made_by(&self, again: &RegisteredSensor) -> bool {
        let request = self.generation.request();
        let is_repeated = request.is_some() && request == again.generation.request();
        let is_known = again.registered_at < self.registered_at.after(REQUEST_KNOWN);
        self.generation == again.generation || (is_repeated && is_known)
    }
}
