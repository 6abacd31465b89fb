//! Ids of sensors, their types and their registrations, checked once at the edge.

use antumbra_shadow::Timestamp;

use crate::fnv::shard;
use crate::text::{InvalidText, check_text, checked_text};

/// Maximum characters of a sensor's id or of a type's name.
pub const NAME_CHARS: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSensor {
    #[error(transparent)]
    Text(#[from] InvalidText),
    #[error("the {what} is {actual}, it must be between {least} and {most}")]
    Range {
        what: &'static str,
        actual: u64,
        least: u64,
        most: u64,
    },
    #[error("the time lies outside the years 0000 to 9999")]
    Time,
    #[error("the place names a {lower} but no {upper}")]
    Level {
        upper: &'static str,
        lower: &'static str,
    },
    /// The value is not a number, text or boolean, or a number that cannot be stored exactly.
    #[error("the value {0}")]
    Value(String),
}

checked_text! {
    /// A sensor's id: 1 to 64 of letters, digits, `-`, `_`, `.`, `:`; case matters.
    pub struct SensorId checked by |text| name("sensor id", text);
}

impl SensorId {
    /// Returns the shard of this id; stable everywhere.
    pub fn shard(&self, shards: u32) -> u32 {
        shard(&self.0, shards)
    }
}

checked_text! {
    /// Type of a sensor, such as `lock`; of the same characters as an id.
    pub struct SensorType checked by |text| name("sensor type", text);
}

impl Default for SensorType {
    fn default() -> SensorType {
        SensorType("sensor".to_owned())
    }
}

checked_text! {
    /// Identifies one registration of a sensor id. An id may be registered again after it was unregistered;
    /// data of the earlier registration does not belong to the later one.
    pub struct Generation checked by |text| name("generation", text);
}

/// Separates the time of a registration from the name of its request.
const REQUEST: &str = "-r-";

impl Generation {
    /// Makes a generation that no other registration has, even if the clock stands still.
    pub fn unique(now: Timestamp) -> Generation {
        Generation(format!("{}-{:08x}", now.nanoseconds(), fastrand::u32(..)))
    }

    /// Makes the generation of a registration that was requested by a request with this name.
    pub(super) fn of_request(now: Timestamp, request: &str) -> Generation {
        Generation(format!("{}{REQUEST}{request}", now.nanoseconds()))
    }

    /// Returns the name of the request that made this registration, if it has one.
    pub(super) fn request(&self) -> Option<&str> {
        self.0.split_once(REQUEST).map(|(_, request)| request)
    }
}

fn name(what: &'static str, text: String) -> Result<String, InvalidText> {
    check_text(what, text, NAME_CHARS, |c| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':')
    })
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
