//! Rules for accepting signals, and the policy for unknown sensors.

use std::fmt;
use std::str::FromStr;

use antumbra_service::sensors::{
    Address, Generation, InvalidSensor, Location, RegisteredSensor, Sensor, SensorError, SensorId,
    SensorStore, SensorType, SilenceTimeout, StoreError, ValueType, Version,
};
use antumbra_shadow::Timestamp;
use regex::Regex;

/// Signals that are accepted. The function reads nothing before it writes, so the deployment decides which
/// values are allowed, not the sensor's type.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    pub allowed: ValueType,
    /// Pattern that sensor ids must match.
    pub ids: Option<IdPattern>,
}

#[derive(Debug, Clone)]
pub enum UnknownSensorPolicy<R> {
    Quarantine,
    AutoRegister {
        sensors: R,
        registration: AutoRegistration,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoRegistration {
    pub location: Location,
    pub sensor_type: SensorType,
    pub silence_after: SilenceTimeout,
}

impl AutoRegistration {
    /// Registers a sensor. Returns whether this call did it, and not another one at the same time.
    pub(crate) async fn register<R: SensorStore>(
        &self,
        sensors: &R,
        id: &SensorId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let new = RegisteredSensor {
            sensor: self.sensor(id.clone()),
            version: Version::NONE.next(),
            registered_at: now,
            generation: Generation::unique(now),
        };
        match sensors.register(&new).await {
            Ok(_) => Ok(true),
            Err(SensorError::AlreadyRegistered) => Ok(false),
            Err(SensorError::Store(error)) => Err(error),
            Err(other) => Err(StoreError::Unavailable(other.to_string())),
        }
    }

    fn sensor(&self, id: SensorId) -> Sensor {
        Sensor {
            id,
            location: Some(self.location.clone()),
            address: Address::default(),
            sensor_type: self.sensor_type.clone(),
            silence_after: self.silence_after,
        }
    }

    /// Takes a location as `city/building/floor/room`, a type and a silence timeout in seconds.
    pub fn new(
        location: &str,
        sensor_type: &str,
        silence: u64,
    ) -> Result<AutoRegistration, InvalidSensor> {
        let mut parts = location.splitn(4, '/');
        let mut next = || parts.next().unwrap_or_default();
        Ok(AutoRegistration {
            location: Location::new(next(), next(), next(), next())?,
            sensor_type: SensorType::new(sensor_type)?,
            silence_after: SilenceTimeout::seconds(silence)?,
        })
    }
}

/// A regular expression that a whole id must match.
#[derive(Clone)]
pub struct IdPattern {
    text: String,
    regex: Regex,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a regular expression: {0}")]
pub struct InvalidPattern(String);

impl IdPattern {
    pub fn allows(&self, id: &str) -> bool {
        self.regex.is_match(id)
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for IdPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<IdPattern, InvalidPattern> {
        let compile =
            |text: &str| Regex::new(text).map_err(|error| InvalidPattern(error.to_string()));
        // Compiled alone first: an unbalanced bracket could close the group around it. `\A` and `\z`,
        // because flags in the text could change the meaning of `^` and `$`.
        compile(text)?;
        let regex = compile(&format!(r"\A(?:{text})\z"))?;
        Ok(IdPattern {
            text: text.to_owned(),
            regex,
        })
    }
}

impl fmt::Debug for IdPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IdPattern").field(&self.text).finish()
    }
}
