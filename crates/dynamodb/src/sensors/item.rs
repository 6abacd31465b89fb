//! What lies in the items of a sensor.

use std::borrow::Cow;
use std::collections::HashMap;

use antumbra_service::sensors::moment::{from_milliseconds, milliseconds};
use antumbra_service::sensors::state::attributes as state;
use antumbra_service::sensors::state::{Attributes, Connection};
use antumbra_service::sensors::{
    Address, Generation, InvalidSensor, Location, Owner, Reading, RegisteredSensor, Retention,
    Sensor, SensorId, SensorType, SilenceTimeout, State, StoreError, Unit, Value, Version,
};
use aws_sdk_dynamodb::types::AttributeValue;

use super::keys;
use crate::shadows::SORT_KEY;
use crate::tables::{BY_LOCATION, LISTED, LIVE};

/// The attributes of an item.
pub(super) type Item = HashMap<String, AttributeValue>;

pub(super) const VERSION: &str = "version";
const CITY: &str = "city";
const BUILDING: &str = "building";
const FLOOR: &str = "floor";
const ROOM: &str = "room";
const UNIT: &str = "unit";
const TTL: &str = "ttl";

pub(super) fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(super) fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

pub(super) fn scalar(value: &Value) -> AttributeValue {
    match value {
        Value::Number(digits) => number(digits),
        Value::Text(words) => text(words),
        Value::Boolean(yes) => AttributeValue::Bool(*yes),
    }
}

/// An item as attributes that can be read by name.
pub(super) struct Read<'a>(pub(super) &'a Item);

impl Attributes for Read<'_> {
    fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.0.get(name)?.as_s().ok().map(Cow::from)
    }

    fn number(&self, name: &str) -> Option<Cow<'_, str>> {
        self.0.get(name)?.as_n().ok().map(Cow::from)
    }

    fn boolean(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool().ok().copied()
    }

    fn member(&self, name: &str, member: &str) -> Option<Cow<'_, str>> {
        let map = self.0.get(name)?.as_m().ok()?;
        map.get(member)?.as_s().ok().map(Cow::from)
    }
}

fn put(item: &mut Item, name: &str, value: AttributeValue) {
    item.insert(name.to_owned(), value);
}

/// The item of a sensor.
pub(super) fn of_sensor(registered: &RegisteredSensor) -> Item {
    let RegisteredSensor {
        sensor,
        version,
        registered_at,
        generation,
    } = registered;
    let at = &sensor.location;
    let mut item = keys::key(&sensor.id, keys::INFO);
    for (name, part) in [
        (CITY, &at.city),
        (BUILDING, &at.building),
        (FLOOR, &at.floor),
        (ROOM, &at.room),
    ] {
        put(&mut item, name, text(part.as_str()));
    }
    put(
        &mut item,
        BY_LOCATION.partition_key,
        text(keys::city(&at.city)),
    );
    let location = keys::location(at, &sensor.id);
    put(&mut item, BY_LOCATION.sort_key.0, text(location));
    put(&mut item, LISTED.partition_key, text(keys::SENSORS));
    put(&mut item, LISTED.sort_key.0, text(sensor.id.as_str()));
    put(&mut item, VERSION, number(version));
    put(&mut item, state::SENSOR, text(sensor.id.as_str()));
    put(&mut item, state::GENERATION, text(generation.as_str()));
    put(
        &mut item,
        state::REGISTERED_AT,
        number(milliseconds(*registered_at)),
    );
    item.extend(copies(sensor));
    item
}

/// What the sensor and its state both hold.
fn copies(sensor: &Sensor) -> Item {
    let silence = sensor.silence_after.as_milliseconds();
    Item::from([
        (state::ADDRESS.to_owned(), text(sensor.address.as_str())),
        (state::TYPE.to_owned(), text(sensor.sensor_type.as_str())),
        (state::SILENCE_AFTER.to_owned(), number(silence)),
    ])
}

/// A map that has no value's mark, and yet something in it: not every DynamoDB streams an empty map as one.
pub(super) fn no_value() -> AttributeValue {
    AttributeValue::M(HashMap::from([("-".to_owned(), number(0))]))
}

/// The state of a sensor that was just registered.
pub(super) fn of_new_state(registered: &RegisteredSensor, shards: u32) -> Item {
    let sensor = &registered.sensor;
    let registered_at = milliseconds(registered.registered_at);
    let deadline = registered_at.saturating_add(sensor.silence_after.as_milliseconds());
    let mut item = keys::key(&sensor.id, keys::STATE);
    item.extend(copies(sensor));
    for (name, value) in [
        (state::SENSOR, text(sensor.id.as_str())),
        (state::GENERATION, text(registered.generation.as_str())),
        (state::REGISTERED_AT, number(registered_at)),
        (state::DEADLINE, number(deadline)),
        (state::CONNECTION, text(Connection::Never.as_str())),
        (state::AWAITED, number(0)),
        (state::MARKS, no_value()),
        (state::SINCE, no_value()),
        (state::CHANGES, number(0)),
        (state::CONTACTS, number(0)),
        (
            LIVE.partition_key,
            text(keys::shard(sensor.id.shard(shards))),
        ),
        (LIVE.sort_key.0, number(deadline)),
    ] {
        put(&mut item, name, value);
    }
    item
}

/// A reading, and until when it is kept.
pub(super) fn of_reading(reading: &Reading, owner: &Owner, retention: &Retention) -> Item {
    let mut item = keys::key(&owner.sensor, &keys::reading(&reading.moment));
    put(&mut item, state::VALUE, scalar(&reading.value));
    put(
        &mut item,
        state::GENERATION,
        text(owner.generation.as_str()),
    );
    if let Some(unit) = &reading.unit {
        put(&mut item, UNIT, text(unit.as_str()));
    }
    if let Some(end) = retention.end(&owner.sensor_type, reading.moment.time()) {
        put(&mut item, TTL, number(end));
    }
    item
}

/// Reads a sensor. One that others wrote otherwise than we do is an error of the store, not of who asked.
pub(super) fn sensor(item: &Item) -> Result<RegisteredSensor, StoreError> {
    let part = |name| word(item, name);
    let location = Location::new(part(CITY)?, part(BUILDING)?, part(FLOOR)?, part(ROOM)?);
    let version = whole(item, VERSION)?;
    let silence = u64::try_from(whole(item, state::SILENCE_AFTER)?).unwrap_or(0) / 1000;
    let says = |name: &'static str| move |_: InvalidSensor| unreadable(name);
    Ok(RegisteredSensor {
        sensor: Sensor {
            id: SensorId::new(part(state::SENSOR)?).map_err(says(state::SENSOR))?,
            location: location.map_err(says("location"))?,
            address: Address::new(part(state::ADDRESS)?).map_err(says(state::ADDRESS))?,
            sensor_type: SensorType::new(part(state::TYPE)?).map_err(says(state::TYPE))?,
            silence_after: SilenceTimeout::seconds(silence).map_err(says(state::SILENCE_AFTER))?,
        },
        version: Version(version),
        registered_at: from_milliseconds(whole(item, state::REGISTERED_AT)?),
        generation: generation(item)?,
    })
}

/// Reads a state.
pub(super) fn state(item: &Item) -> Result<State, StoreError> {
    State::read(&Read(item)).map_err(|error| StoreError::Unavailable(error.to_string()))
}

/// Reads a reading.
pub(super) fn reading(item: &Item) -> Result<Reading, StoreError> {
    let value = match item.get(state::VALUE) {
        Some(AttributeValue::N(digits)) => Value::number(digits).ok(),
        Some(AttributeValue::S(words)) => Value::text(words).ok(),
        Some(AttributeValue::Bool(yes)) => Some(Value::Boolean(*yes)),
        _ => None,
    };
    let unit = item.get(UNIT).map(|unit| {
        let unit = unit.as_s().ok().and_then(|unit| Unit::new(unit).ok());
        unit.ok_or_else(|| unreadable(UNIT))
    });
    Ok(Reading {
        value: value.ok_or_else(|| unreadable(state::VALUE))?,
        unit: unit.transpose()?,
        moment: keys::moment_of(word(item, SORT_KEY)?).ok_or_else(|| unreadable(SORT_KEY))?,
    })
}

/// Which of the sensors that had this id an item belongs to.
pub(super) fn generation(item: &Item) -> Result<Generation, StoreError> {
    let text = word(item, state::GENERATION)?;
    Generation::new(text).map_err(|_| unreadable(state::GENERATION))
}

pub(super) fn word<'a>(item: &'a Item, name: &str) -> Result<&'a str, StoreError> {
    let text = item.get(name).and_then(|value| value.as_s().ok());
    text.map(String::as_str).ok_or_else(|| unreadable(name))
}

pub(super) fn whole(item: &Item, name: &str) -> Result<i64, StoreError> {
    let digits = item.get(name).and_then(|value| value.as_n().ok());
    let whole = digits.and_then(|digits| digits.parse().ok());
    whole.ok_or_else(|| unreadable(name))
}

pub(super) fn unreadable(attribute: &str) -> StoreError {
    StoreError::Unavailable(format!("a stored item's {attribute} cannot be read"))
}

#[cfg(test)]
mod tests {
    use antumbra_service::sensors::Sequence;
    use antumbra_service::sensors::{ReadingTime, occurrences};
    use antumbra_shadow::Timestamp;

    use super::*;

    fn registered() -> RegisteredSensor {
        let at = Location::new("Poznań", "A#1", "-1", "x y").unwrap();
        let mut sensor = Sensor::new(SensorId::new("SENSOR-1").unwrap(), at);
        sensor.address = Address::new("ul. Półwiejska 42").unwrap();
        sensor.silence_after = SilenceTimeout::seconds(90).unwrap();
        RegisteredSensor {
            sensor,
            version: Version(7),
            registered_at: from_milliseconds(1_700_000_000_123),
            generation: Generation::new("g-1").unwrap(),
        }
    }

    #[test]
    fn a_sensor_and_its_first_state_come_back_as_they_went() {
        let registered = registered();
        assert_eq!(sensor(&of_sensor(&registered)), Ok(registered.clone()));
        let state = state(&of_new_state(&registered, 16)).unwrap();
        assert_eq!(state.address, registered.sensor.address);
        assert_eq!(milliseconds(state.deadline), 1_700_000_090_123);
        assert_eq!(state.check_at, Some(state.deadline));
        assert_eq!((state.sequence(), state.value.clone()), (0, None));
        assert!(occurrences::between(None, &state).is_empty());
    }

    #[test]
    fn a_reading_comes_back_and_has_its_end() {
        let registered = registered();
        let owner = Owner {
            sensor: registered.sensor.id,
            generation: registered.generation,
            sensor_type: registered.sensor.sensor_type,
        };
        for value in [
            Value::number("21.50").unwrap(),
            Value::text("").unwrap(),
            Value::Boolean(false),
        ] {
            let given = Reading {
                value,
                unit: Some(Unit::new("°C").unwrap()),
                moment: ReadingTime::new(Timestamp::from_nanoseconds(1), Sequence::Number(3))
                    .unwrap(),
            };
            let item = of_reading(&given, &owner, &"sensor=1".parse().unwrap());
            assert_eq!(whole(&item, TTL), Ok(86_400));
            assert_eq!(reading(&item), Ok(given));
        }
    }

    #[test]
    fn what_others_wrote_is_the_stores_fault_and_not_repeated() {
        let whole = of_sensor(&registered());
        for name in [
            CITY,
            VERSION,
            state::SENSOR,
            state::GENERATION,
            state::TYPE,
            state::ADDRESS,
        ] {
            let mut item = whole.clone();
            item.insert(name.to_owned(), AttributeValue::Null(true));
            let error = sensor(&item).unwrap_err();
            assert!(
                error.is_retryable() && error.to_string().contains(name),
                "{error}"
            );
        }
    }
}
