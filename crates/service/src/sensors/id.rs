//! Names of sensors and of their types, checked once where they come in.

use std::fmt;

use antumbra_shadow::Timestamp;

use crate::fnv::fnv1a;

/// Characters of a sensor's id or of a type's name.
pub const NAME_CHARS: usize = 64;

/// Error of invalid data of a sensor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSensor {
    /// The text is empty.
    #[error("the {what} is empty")]
    Empty {
        /// Name of the value, for the message.
        what: &'static str,
    },
    /// The text is too long.
    #[error("the {what} has {bytes} bytes, the limit is {limit}")]
    TooLong {
        /// Name of the value, for the message.
        what: &'static str,
        /// Its bytes.
        bytes: usize,
        /// Longest length allowed, in bytes.
        limit: usize,
    },
    /// The text contains a character that is not allowed.
    #[error("the {what} may not hold {character:?}")]
    Character {
        /// Name of the value, for the message.
        what: &'static str,
        /// The first such character.
        character: char,
    },
    /// The text starts or ends with white space.
    #[error("the {what} starts or ends with space")]
    Space {
        /// Name of the value, for the message.
        what: &'static str,
    },
    /// The number is out of range.
    #[error("the {what} is {actual}, it must be between {least} and {most}")]
    Range {
        /// Name of the value, for the message.
        what: &'static str,
        /// Value given.
        actual: u64,
        /// The least allowed.
        least: u64,
        /// The most allowed.
        most: u64,
    },
    /// The time is outside the years 0000 to 9999.
    #[error("the time lies outside the years 0000 to 9999")]
    Time,
    /// The location omits a level above another one.
    #[error("the place names a {lower} but no {upper}")]
    Level {
        /// The level that is missing.
        upper: &'static str,
        /// The level that is named.
        lower: &'static str,
    },
    /// The value is not a number, text or boolean, or a number that cannot be stored exactly.
    #[error("the value {0}")]
    Value(String),
}

/// A sensor's id: 1 to 64 of letters, digits, `-`, `_`, `.`, `:`; case matters.
///
/// ```
/// use antumbra_service::sensors::SensorId;
/// assert_eq!(SensorId::new("xa7v9Dfadr7H").unwrap().as_str(), "xa7v9Dfadr7H");
/// assert!(SensorId::new("no spaces").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SensorId(String);

impl SensorId {
    /// Checks a text.
    pub fn new(id: impl Into<String>) -> Result<SensorId, InvalidSensor> {
        name("sensor id", id.into()).map(SensorId)
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the shard of this id; stable everywhere.
    pub fn shard(&self, shards: u32) -> u32 {
        // The remainder of a u32 fits one.
        (fnv1a(self.0.as_bytes()) % u64::from(shards.max(1))) as u32
    }
}

impl fmt::Display for SensorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Type of a sensor, such as `lock`; of the same characters as an id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SensorType(String);

impl SensorType {
    /// Checks a text.
    pub fn new(text: impl Into<String>) -> Result<SensorType, InvalidSensor> {
        name("sensor type", text.into()).map(SensorType)
    }

    /// The type's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Type of a sensor without a type.
impl Default for SensorType {
    fn default() -> SensorType {
        SensorType("sensor".to_owned())
    }
}

impl fmt::Display for SensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identifies one registration of a sensor id. An id may be registered again after it was unregistered; data of
/// the earlier registration does not belong to the later one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(String);

impl Generation {
    /// Makes a generation that no other registration has, even if the clock stands still.
    pub fn unique(now: Timestamp) -> Generation {
        Generation(format!("{}-{:08x}", now.nanoseconds(), fastrand::u32(..)))
    }

    /// Parses a generation; it has the characters of an id.
    pub fn new(text: impl Into<String>) -> Result<Generation, InvalidSensor> {
        name("generation", text.into()).map(Generation)
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn name(what: &'static str, text: String) -> Result<String, InvalidSensor> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    match (text.len(), text.chars().find(|c| !allowed(*c))) {
        (0, _) => Err(InvalidSensor::Empty { what }),
        (bytes, _) if bytes > NAME_CHARS => Err(InvalidSensor::TooLong {
            what,
            bytes,
            limit: NAME_CHARS,
        }),
        (_, Some(character)) => Err(InvalidSensor::Character { what, character }),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_what_the_documents_say() {
        for id in ["0xA", "TestSensor", "a-b_c.d:e", &"x".repeat(64)] {
            assert!(SensorId::new(id).is_ok(), "{id}");
        }
        for (id, says) in [
            ("", "the sensor id is empty"),
            ("a#b", "the sensor id may not hold '#'"),
            ("Poznań", "the sensor id may not hold 'ń'"),
            ("a\n", "the sensor id may not hold '\\n'"),
        ] {
            assert_eq!(SensorId::new(id).unwrap_err().to_string(), says);
        }
        assert_eq!(
            SensorId::new("x".repeat(65)).unwrap_err().to_string(),
            "the sensor id has 65 bytes, the limit is 64"
        );
    }

    #[test]
    fn shards_fill_evenly_and_never_move() {
        assert_eq!(SensorId::new("sensor-1").unwrap().shard(16), 9);
        let mut filled = [0; 16];
        for n in 0..16_000 {
            filled[SensorId::new(format!("sensor-{n}")).unwrap().shard(16) as usize] += 1;
        }
        assert!(filled.iter().all(|n| (800..1200).contains(n)), "{filled:?}");
        assert_eq!(SensorId::new("a").unwrap().shard(0), 0);
    }
}
