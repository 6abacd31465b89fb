//! Where the items of a sensor lie.

use antumbra_service::sensors::escape::{SEPARATOR, escape};
use antumbra_service::sensors::moment::fixed_width;
use antumbra_service::sensors::{
    Generation, Location, LocationPrefix, Part, Purge, ReadingTime, SensorId, StoreError,
};
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::AttributeValue;

use super::item::Item;
use crate::shadows::{PARTITION_KEY, SORT_KEY};

const SENSOR: &str = "SENSOR#";
pub(super) const INFO: &str = "SENSORINFO";
pub(super) const STATE: &str = "STATE";
pub(super) const READING: &str = "READ#";
/// Behind every reading, and before `SENSORINFO`.
pub(super) const BEHIND_READINGS: &str = "READ$";
pub(super) const LINK: &str = "CLIENT#";
const PURGE: &str = "PURGE#";
const CITY: &str = "CITY#";
const LOCATION: &str = "LOCATION#";
/// Where sensors lie in the index of what is listed.
pub(super) const SENSORS: &str = "SENSORS";
/// Where purges lie in the index of what is due.
pub(super) const PURGE_SHARD: &str = "PURGE";

/// The partition of a sensor.
pub(super) fn partition(id: &SensorId) -> String {
    format!("{SENSOR}{id}")
}

/// Whose partition it is.
pub(super) fn sensor_of(partition: &str) -> Option<SensorId> {
    SensorId::new(partition.strip_prefix(SENSOR)?).ok()
}

/// The primary key of an item of a sensor.
pub(super) fn key(id: &SensorId, sort: &str) -> Item {
    Item::from([
        (PARTITION_KEY.to_owned(), AttributeValue::S(partition(id))),
        (SORT_KEY.to_owned(), AttributeValue::S(sort.to_owned())),
    ])
}

/// The primary key of an item that came from the table.
pub(super) fn key_of(item: &Item) -> Option<Item> {
    [PARTITION_KEY, SORT_KEY]
        .into_iter()
        .map(|name| Some((name.to_owned(), item.get(name)?.clone())))
        .collect()
}

/// The sort key of a reading.
pub(super) fn reading(moment: &ReadingTime) -> String {
    format!("{READING}{moment}")
}

/// Whose moment a reading's sort key says.
pub(super) fn moment_of(sort: &str) -> Option<ReadingTime> {
    ReadingTime::parse(sort.strip_prefix(READING)?)
}

/// Before every reading of this time, and behind all earlier ones.
pub(super) fn readings_from(time: Timestamp) -> Result<String, StoreError> {
    let time = fixed_width(time).map_err(|error| StoreError::Invalid(error.to_string()))?;
    Ok(format!("{READING}{time}"))
}

/// The sort key of a purge.
pub(super) fn purge(generation: &Generation) -> String {
    format!("{PURGE}{}", generation.as_str())
}

/// Which purge lies there.
pub(super) fn purge_of(item: &Item) -> Option<Purge> {
    let text = |name| item.get(name)?.as_s().ok();
    Some(Purge {
        sensor: sensor_of(text(PARTITION_KEY)?)?,
        generation: Generation::new(text(SORT_KEY)?.strip_prefix(PURGE)?).ok()?,
    })
}

/// The shard in which a sensor is waited for.
pub(super) fn shard(shard: u32) -> String {
    format!("LIVE#{shard}")
}

/// The partition of a city in the index by location.
pub(super) fn city(city: &Part) -> String {
    format!("{CITY}{}", escape(city.as_str()))
}

/// Where a sensor lies in its city. Every level ends with the separator, so that floor 2 is no beginning
/// of floor 21, and the id comes last, so that two sensors in one room are two.
pub(super) fn location(location: &Location, id: &SensorId) -> String {
    let parts = [&location.building, &location.floor, &location.room];
    format!("{}{id}", levels(parts.into_iter()))
}

/// What the locations of all sensors in a place begin with.
pub(super) fn locations_in(place: &LocationPrefix) -> String {
    levels(place.below().iter())
}

fn levels<'a>(parts: impl Iterator<Item = &'a Part>) -> String {
    let mut key = LOCATION.to_owned();
    for part in parts {
        key.push_str(&escape(part.as_str()));
        key.push(SEPARATOR);
    }
    key
}

#[cfg(test)]
mod tests {
    use antumbra_service::sensors::escape::unescape;
    use antumbra_service::sensors::{MESSAGE_ID_BYTES, PART_BYTES, Sequence};
    use proptest::prelude::*;

    use super::*;

    fn location_of(city: &str, location: &str) -> Option<(Location, SensorId)> {
        let city = unescape(city.strip_prefix(CITY)?)?;
        let parts: Vec<&str> = location.strip_prefix(LOCATION)?.split(SEPARATOR).collect();
        let [building, floor, room, id] = parts[..] else {
            return None;
        };
        let at = Location::new(
            &city,
            &unescape(building)?,
            &unescape(floor)?,
            &unescape(room)?,
        );
        Some((at.ok()?, SensorId::new(id).ok()?))
    }

    fn parts() -> impl Strategy<Value = String> {
        "[#%/ A-Cä🦀-]{1,6}".prop_filter("without space at its ends", |part| part.trim() == part)
    }

    proptest! {
        #[test]
        fn a_location_key_says_where_and_who(
            city_part in parts(), building in parts(), floor in parts(), room in parts(),
        ) {
            let at = Location::new(&city_part, &building, &floor, &room).unwrap();
            let id = SensorId::new("S-1").unwrap();
            let keys = (city(&at.city), location(&at, &id));
            prop_assert_eq!(location_of(&keys.0, &keys.1), Some((at, id)));
        }

        /// The beginning of a key is as good as looking at every location.
        #[test]
        fn a_place_begins_the_keys_of_what_it_holds(
            at in [parts(), parts(), parts()], place in [parts(), parts(), parts()], depth in 0..4_usize,
        ) {
            let [b, f, r] = &at;
            let at = Location::new("Poznań", b, f, r).unwrap();
            let part = |n: usize| (n < depth).then(|| place[n].as_str());
            let place = LocationPrefix::new("Poznań", part(0), part(1), part(2)).unwrap();
            let key = location(&at, &SensorId::new("s").unwrap());
            prop_assert_eq!(key.starts_with(&locations_in(&place)), place.holds(&at));
        }
    }

    #[test]
    fn the_longest_keys_fit() {
        let longest = "#".repeat(PART_BYTES);
        let at = Location::new(&longest, &longest, &longest, &longest).unwrap();
        let id = SensorId::new("x".repeat(64)).unwrap();
        assert!(location(&at, &id).len() <= 1024);
        let sequence = Sequence::message("#".repeat(MESSAGE_ID_BYTES)).unwrap();
        let moment = ReadingTime::new(Timestamp::from_nanoseconds(0), sequence).unwrap();
        assert!(reading(&moment).len() <= 1024);
        assert_eq!(moment_of(&reading(&moment)), Some(moment));
    }

    #[test]
    fn nothing_but_readings_sorts_between_readings_and_the_sensor() {
        let generation = Generation::new("g").unwrap();
        let purge = purge(&generation);
        for other in [
            STATE,
            LINK,
            "CLIENT#zz",
            &purge,
            "DSR#main",
            "DSD#x",
            "DSC#x",
        ] {
            assert!(!(READING..=INFO).contains(&other), "{other}");
        }
        let last = Timestamp::parse("9999-12-31T23:59:59.999999999Z").unwrap();
        let last = ReadingTime::new(last, Sequence::Content(u64::MAX)).unwrap();
        assert!(reading(&last).as_str() < BEHIND_READINGS && BEHIND_READINGS < INFO);
    }

    #[test]
    fn readings_sort_by_time_whatever_the_offset() {
        let at = |text| Timestamp::parse(text).unwrap();
        let key = |text| reading(&ReadingTime::new(at(text), Sequence::Number(1)).unwrap());
        let early = key("2026-01-31T13:00:00+02:00");
        let late = key("2026-01-31T12:00:00.1Z");
        assert!(early < late);
        let from = readings_from(at("2026-01-31T11:00:00Z")).unwrap();
        assert!(from < early && from > key("2026-01-31T10:59:59.999999999Z"));
    }
}
