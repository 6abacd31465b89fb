//! Retention of readings, by type of sensor.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use antumbra_shadow::Timestamp;

use super::id::{InvalidSensor, SensorType};

/// Longest retention in days: a hundred years.
const MOST_DAYS: u64 = 36_525;
const DAY_SECONDS: u64 = 24 * 3600;

/// Days per type, and for all other types; forever if none is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retention {
    by_type: BTreeMap<SensorType, Duration>,
    others: Option<Duration>,
}

impl Retention {
    pub fn of(&self, sensor_type: &SensorType) -> Option<Duration> {
        self.by_type.get(sensor_type).copied().or(self.others)
    }

    /// Returns the expiry of a reading of this type and time, in seconds since 1970.
    pub fn end(&self, sensor_type: &SensorType, time: Timestamp) -> Option<i64> {
        let end = time.after(self.of(sensor_type)?);
        i64::try_from(end.nanoseconds().div_euclid(1_000_000_000)).ok()
    }
}

/// `type=days`, separated by commas; `*` for all other types.
impl FromStr for Retention {
    type Err = InvalidSensor;

    fn from_str(text: &str) -> Result<Retention, InvalidSensor> {
        let mut retention = Retention::default();
        for rule in text
            .split(',')
            .map(str::trim)
            .filter(|rule| !rule.is_empty())
        {
            let wrong = || InvalidSensor::Value(format!("{rule:?} is not a type=days"));
            let (name, days) = rule.split_once('=').ok_or_else(wrong)?;
            let days: u64 = days.trim().parse().map_err(|_| wrong())?;
            if !(1..=MOST_DAYS).contains(&days) {
                return Err(InvalidSensor::Range {
                    what: "retention in days",
                    actual: days,
                    least: 1,
                    most: MOST_DAYS,
                });
            }
            let kept = Duration::from_secs(days * DAY_SECONDS);
            match name.trim() {
                "*" => retention.others = Some(kept),
                name => drop(retention.by_type.insert(SensorType::new(name)?, kept)),
            }
        }
        Ok(retention)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_its_own() {
        let retention: Retention = " lock=1, *=2 ".parse().unwrap();
        let end = |name: &str| {
            let time = Timestamp::from_nanoseconds(1_500_000_000);
            retention.end(&SensorType::new(name).unwrap(), time)
        };
        assert_eq!((end("lock"), end("gas")), (Some(86_401), Some(172_801)));
    }

    #[test]
    fn nonsense_is_said() {
        for (text, says) in [
            ("lock", "the value \"lock\" is not a type=days"),
            ("lock=x", "the value \"lock=x\" is not a type=days"),
            (
                "lock=0",
                "the retention in days is 0, it must be between 1 and 36525",
            ),
            ("a b=1", "the sensor type may not hold ' '"),
        ] {
            assert_eq!(text.parse::<Retention>().unwrap_err().to_string(), says);
        }
    }
}
