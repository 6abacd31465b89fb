use antumbra_service::sensors::escape::{SEPARATOR, escape};
use antumbra_service::sensors::reading_time::fixed_width;
use antumbra_service::sensors::{
    Generation, Location, LocationPrefix, Part, ReadingTime, SensorId, StoreError,
};
use antumbra_shadow::Timestamp;
use antumbra_wire::items::index_keys::{CITY, LOCATION};
use antumbra_wire::items::{ItemKey, ItemKind};

use crate::table::Key;

/// Sort key after every reading and before [`ItemKind::SensorInfo`].
pub(super) const AFTER_READINGS: &str = "READ$";

pub(super) fn sensor(id: &SensorId) -> Key {
    Key::new(ItemKind::SensorInfo, id.as_str(), "")
}

pub(super) fn state(id: &SensorId) -> Key {
    Key::new(ItemKind::SensorState, id.as_str(), "")
}

pub(super) fn reading(id: &SensorId, time: &ReadingTime) -> Key {
    Key::new(ItemKind::Reading, id.as_str(), &time.to_string())
}

/// The time in a reading's sort key.
pub(super) fn reading_time(sort: &str) -> Option<ReadingTime> {
    ReadingTime::parse(sort.strip_prefix(ItemKind::Reading.sort_prefix())?)
}

/// Sort key before all readings of this time and after all earlier ones.
pub(super) fn readings_from(time: Timestamp) -> Result<String, StoreError> {
    let time = fixed_width(time).map_err(|error| StoreError::Invalid(error.to_string()))?;
    Ok(ItemKind::Reading.sort(&time))
}

pub(super) fn purge(sensor: &SensorId, generation: &Generation) -> Key {
    Key::new(ItemKind::Purge, sensor.as_str(), generation.as_str())
}

/// The sensor and the id in a key, if it is of this kind.
pub(super) fn ids(key: &Key, kind: ItemKind) -> Option<(SensorId, &str)> {
    match ItemKey::parse(&key.partition, &key.sort) {
        ItemKey::Known(found, sensor, id) if found == kind => {
            Some((SensorId::new(sensor).ok()?, id))
        }
        _ => None,
    }
}

/// Partition of a city in the index by location.
pub(super) fn city(city: &Part) -> String {
    format!("{CITY}{}", escape(city.as_str()))
}

/// Sort key of a sensor in its city. Every level ends with the separator, so that floor 2 is no prefix of
/// floor 21. The id comes last, so that two sensors of one room have two keys.
pub(super) fn location(location: &Location, id: &SensorId) -> String {
    let parts = [&location.building, &location.floor, &location.room];
    format!("{}{id}", levels(parts.into_iter()))
}

/// Prefix of the sort keys of all sensors in a place.
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
        fn a_location_key_holds_location_and_id(
            city_part in parts(), building in parts(), floor in parts(), room in parts(),
        ) {
            let at = Location::new(&city_part, &building, &floor, &room).unwrap();
            let id = SensorId::new("S-1").unwrap();
            let keys = (city(&at.city), location(&at, &id));
            prop_assert_eq!(location_of(&keys.0, &keys.1), Some((at, id)));
        }

        #[test]
        fn the_prefix_of_a_place_matches_exactly_its_sensors(
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
        assert!(sort(&moment).len() <= 1024);
        assert_eq!(reading_time(&sort(&moment)), Some(moment));
    }

    fn sort(time: &ReadingTime) -> String {
        reading(&SensorId::new("s").unwrap(), time).sort
    }

    #[test]
    fn the_sensor_sorts_after_its_last_reading() {
        let last = Timestamp::parse("9999-12-31T23:59:59.999999999Z").unwrap();
        let last = ReadingTime::new(last, Sequence::Content(u64::MAX)).unwrap();
        let info = ItemKind::SensorInfo.sort_prefix();
        assert!(sort(&last).as_str() < AFTER_READINGS && AFTER_READINGS < info);
    }

    #[test]
    fn readings_sort_by_time_for_any_offset() {
        let at = |text| Timestamp::parse(text).unwrap();
        let key = |text| sort(&ReadingTime::new(at(text), Sequence::Number(1)).unwrap());
        let early = key("2026-01-31T13:00:00+02:00");
        let late = key("2026-01-31T12:00:00.1Z");
        assert!(early < late);
        let from = readings_from(at("2026-01-31T11:00:00Z")).unwrap();
        assert!(from < early && from > key("2026-01-31T10:59:59.999999999Z"));
    }
}
