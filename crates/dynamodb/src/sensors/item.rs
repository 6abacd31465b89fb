//! Items of a sensor: its registration, its state, its readings.

use std::borrow::Cow;
use std::collections::HashMap;

use antumbra_service::sensors::reading_time::milliseconds;
use antumbra_service::sensors::state::attributes as state;
use antumbra_service::sensors::state::{Attributes, Connection};
use antumbra_service::sensors::{
    Address, Generation, Location, Owner, Reading, RegisteredSensor, Retention, Sensor, SensorId,
    SensorType, SilenceTimeout, State, StoreError, Unit, Value, Version,
};
use antumbra_wire::items::attributes::TTL;
use antumbra_wire::items::{ItemKind, SORT_KEY, index_keys};
use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};

use super::keys;
use crate::document;
use crate::table::{Item, Query, Table};
use crate::tables::LIVE;
use crate::value::{EpochMilliseconds, corrupt, from_item, number, read_text, text};

pub(super) const VERSION: &str = "version";
const UNIT: &str = "unit";
const FIELDS: &str = "fields";

pub(super) fn scalar(value: &Value) -> AttributeValue {
    match value {
        Value::Number(digits) => number(digits),
        Value::Text(words) => text(words),
        Value::Boolean(yes) => AttributeValue::Bool(*yes),
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SensorItem {
    sensor_id: String,
    city: Option<String>,
    building: Option<String>,
    floor: Option<String>,
    room: Option<String>,
    city_key: Option<String>,
    location_key: Option<String>,
    list_key: String,
    list_sort: String,
    address: String,
    r#type: String,
    silence_after_ms: i64,
    version: i64,
    generation: String,
    registered_at: EpochMilliseconds,
}

pub(super) fn of_sensor(table: &Table, registered: &RegisteredSensor) -> Result<Item, StoreError> {
    let sensor = &registered.sensor;
    let at = sensor.location.as_ref();
    let item = SensorItem {
        sensor_id: sensor.id.to_string(),
        city: at.map(|at| at.city.to_string()),
        building: at.map(|at| at.building.to_string()),
        floor: at.map(|at| at.floor.to_string()),
        room: at.map(|at| at.room.to_string()),
        city_key: at.map(|at| keys::city(&at.city)),
        location_key: at.map(|at| keys::location(at, &sensor.id)),
        list_key: index_keys::sensors(sensor.id.shard(index_keys::LIST_SHARDS)),
        list_sort: sensor.id.to_string(),
        address: sensor.address.as_str().to_owned(),
        r#type: sensor.sensor_type.to_string(),
        silence_after_ms: sensor.silence_after.as_milliseconds(),
        version: registered.version.0,
        generation: registered.generation.as_str().to_owned(),
        registered_at: EpochMilliseconds(registered.registered_at),
    };
    table.item(&keys::sensor(&sensor.id), &item)
}

pub(super) fn sensor(item: Item) -> Result<RegisteredSensor, StoreError> {
    let item: SensorItem = from_item("sensor", item)?;
    let location = match (&item.city, &item.building, &item.floor, &item.room) {
        (None, None, None, None) => Ok(None),
        (Some(city), Some(building), Some(floor), Some(room)) => {
            Location::new(city, building, floor, room).map(Some)
        }
        _ => return Err(corrupt("location", "incomplete")),
    };
    let silence = u64::try_from(item.silence_after_ms).unwrap_or(0) / 1000;
    Ok(RegisteredSensor {
        sensor: Sensor {
            id: SensorId::new(item.sensor_id).map_err(invalid(state::SENSOR))?,
            location: location.map_err(invalid("location"))?,
            address: Address::new(item.address).map_err(invalid(state::ADDRESS))?,
            sensor_type: SensorType::new(item.r#type).map_err(invalid(state::TYPE))?,
            silence_after: SilenceTimeout::seconds(silence)
                .map_err(invalid(state::SILENCE_AFTER))?,
        },
        version: Version(item.version),
        registered_at: item.registered_at.0,
        generation: Generation::new(item.generation).map_err(invalid(state::GENERATION))?,
    })
}

fn invalid<E>(name: &'static str) -> impl FnOnce(E) -> StoreError {
    move |_| corrupt(name, "invalid")
}

struct StateAttributes<'a>(&'a Item);

impl Attributes for StateAttributes<'_> {
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

/// A map without any value's mark. It is not empty, as not every DynamoDB streams an empty map as one.
pub(super) fn no_value() -> AttributeValue {
    AttributeValue::M(HashMap::from([("-".to_owned(), number(0))]))
}

/// The state of a sensor that was just registered.
pub(super) fn of_new_state(table: &Table, registered: &RegisteredSensor, shards: u32) -> Item {
    let sensor = &registered.sensor;
    let registered_at = milliseconds(registered.registered_at);
    let silence = sensor.silence_after.as_milliseconds();
    let deadline = registered_at.saturating_add(silence);
    let shard = index_keys::live_shard(sensor.id.shard(shards));
    let mut item = table.attributes(&keys::state(&sensor.id));
    let attributes = [
        (state::SENSOR, text(sensor.id.as_str())),
        (state::ADDRESS, text(sensor.address.as_str())),
        (state::TYPE, text(sensor.sensor_type.as_str())),
        (state::SILENCE_AFTER, number(silence)),
        (state::GENERATION, text(registered.generation.as_str())),
        (state::REGISTERED_AT, number(registered_at)),
        (state::DEADLINE, number(deadline)),
        (state::CONNECTION, text(Connection::Never.as_str())),
        (state::AWAITED, number(0)),
        (state::MARKS, no_value()),
        (state::SINCE, no_value()),
        (state::CHANGES, number(0)),
        (state::CONTACTS, number(0)),
        (LIVE.partition_key, text(shard)),
        (LIVE.sort_key.0, number(deadline)),
    ];
    item.extend(attributes.map(|(name, value)| (name.to_owned(), value)));
    item
}

/// The item of a reading, with its expiry.
pub(super) fn of_reading(
    table: &Table,
    reading: &Reading,
    owner: &Owner,
    retention: &Retention,
) -> Item {
    let mut item = table.attributes(&keys::reading(&owner.sensor, &reading.moment));
    let mut put = |name: &str, value| item.insert(name.to_owned(), value);
    put(state::VALUE, scalar(&reading.value));
    put(state::GENERATION, text(owner.generation.as_str()));
    if let Some(unit) = &reading.unit {
        put(UNIT, text(unit.as_str()));
    }
    if let Some(fields) = &reading.fields {
        put(FIELDS, document::encode(fields));
    }
    if let Some(end) = retention.end(&owner.sensor_type, reading.moment.time()) {
        put(TTL, number(end));
    }
    item
}

pub(super) fn state(item: &Item) -> Result<State, StoreError> {
    State::read(&StateAttributes(item)).map_err(|error| StoreError::Unavailable(error.to_string()))
}

pub(super) fn reading(item: &Item) -> Result<Reading, StoreError> {
    let value = match item.get(state::VALUE) {
        Some(AttributeValue::N(digits)) => Value::number(digits).ok(),
        Some(AttributeValue::S(words)) => Value::text(words).ok(),
        Some(AttributeValue::Bool(yes)) => Some(Value::Boolean(*yes)),
        _ => None,
    };
    let unit = item.get(UNIT).map(|unit| {
        let unit = unit.as_s().ok().and_then(|unit| Unit::new(unit).ok());
        unit.ok_or_else(|| corrupt(UNIT, "invalid"))
    });
    let fields = item.get(FIELDS).map(|fields| {
        let fields = document::decode(fields);
        fields.map_err(|_| corrupt(FIELDS, "invalid"))
    });
    Ok(Reading {
        fields: fields.transpose()?,
        value: value.ok_or_else(|| corrupt(state::VALUE, "invalid"))?,
        unit: unit.transpose()?,
        moment: keys::reading_time(read_text(item, SORT_KEY)?)
            .ok_or_else(|| corrupt(SORT_KEY, "not a reading's"))?,
    })
}

/// Items of a sensor between two sort keys.
pub(super) fn range(id: &SensorId, from: &str, to: &str) -> Query {
    Query::between(ItemKind::Reading.partition(id.as_str()), from, to).consistent()
}

pub(super) fn generation(item: &Item) -> Result<Generation, StoreError> {
    let text = read_text(item, state::GENERATION)?;
    Generation::new(text).map_err(|_| corrupt(state::GENERATION, "invalid"))
}

#[cfg(test)]
mod tests {
    use antumbra_service::sensors::Sequence;
    use antumbra_service::sensors::reading_time::from_milliseconds;
    use antumbra_service::sensors::{ReadingTime, SensorEvent};
    use antumbra_shadow::{Document, Timestamp};

    use super::*;
    use crate::value::read_number;

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
    fn a_sensor_and_its_first_state_are_decoded_as_encoded() {
        let registered = registered();
        let item = of_sensor(&Table::for_tests(), &registered).unwrap();
        assert_eq!(sensor(item), Ok(registered.clone()));
        let state = state(&of_new_state(&Table::for_tests(), &registered, 16)).unwrap();
        assert_eq!(state.address, registered.sensor.address);
        assert_eq!(milliseconds(state.deadline), 1_700_000_090_123);
        assert_eq!(state.check_at, Some(state.deadline));
        assert_eq!((state.sequence(), state.value.clone()), (0, None));
        assert!(SensorEvent::between(None, &state).is_empty());
    }

    #[test]
    fn a_reading_is_decoded_as_encoded_and_expires() {
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
                fields: Document::parse(r#"{"battery":80.5}"#).ok(),
                moment: ReadingTime::new(Timestamp::from_nanoseconds(1), Sequence::Number(3))
                    .unwrap(),
            };
            let item = of_reading(
                &Table::for_tests(),
                &given,
                &owner,
                &"sensor=1".parse().unwrap(),
            );
            assert_eq!(read_number(&item, TTL), Ok(86_400));
            assert_eq!(reading(&item), Ok(given));
        }
    }

    #[test]
    fn a_corrupt_sensor_is_the_stores_fault() {
        let whole = of_sensor(&Table::for_tests(), &registered()).unwrap();
        for name in [
            "city",
            VERSION,
            state::SENSOR,
            state::GENERATION,
            state::TYPE,
        ] {
            for value in [AttributeValue::Null(true), text("secret\n")] {
                let mut item = whole.clone();
                item.insert(name.to_owned(), value);
                let Err(error) = sensor(item) else {
                    panic!("{name}");
                };
                assert!(error.is_retryable(), "{error}");
                assert!(!error.to_string().contains("secret"), "{error}");
            }
        }
    }
}
