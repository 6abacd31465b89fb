//! Locations of sensors.

use std::fmt;

use icu_normalizer::ComposingNormalizerBorrowed;

use super::id::InvalidSensor;
use crate::text::{InvalidText, check_text, is_printable};

/// Maximum bytes of one part of a location. Three parts with every byte escaped, and an id, fit in a sort key
/// of 1024 bytes.
pub const PART_BYTES: usize = 100;

/// A part of a location: any text, normalised to Unicode NFC so that both spellings of `ń` are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Part(String);

impl Part {
    /// Checks and normalises a text; `what` names it in the error.
    pub fn new(what: &'static str, text: &str) -> Result<Part, InvalidSensor> {
        let text = ComposingNormalizerBorrowed::new_nfc().normalize(text);
        let text = check_text(what, text.into_owned(), PART_BYTES, is_printable)?;
        if text.trim() != text {
            return Err(InvalidText::Space { what }.into());
        }
        Ok(Part(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    pub city: Part,
    pub building: Part,
    pub floor: Part,
    pub room: Part,
}

impl Location {
    /// Checks all four parts.
    pub fn new(
        city: &str,
        building: &str,
        floor: &str,
        room: &str,
    ) -> Result<Location, InvalidSensor> {
        Ok(Location {
            city: Part::new("city", city)?,
            building: Part::new("building", building)?,
            floor: Part::new("floor", floor)?,
            room: Part::new("room", room)?,
        })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Location {
            city,
            building,
            floor,
            room,
        } = self;
        write!(f, "{city} / {building} / {floor} / {room}")
    }
}

/// A city, or a building, floor or room in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LocationPrefix {
    city: Part,
    /// Building, floor, room: as many as are given.
    below: Vec<Part>,
}

impl LocationPrefix {
    /// Checks the parts. A part below a missing one is rejected.
    pub fn new(
        city: &str,
        building: Option<&str>,
        floor: Option<&str>,
        room: Option<&str>,
    ) -> Result<LocationPrefix, InvalidSensor> {
        let levels = [("building", building), ("floor", floor), ("room", room)];
        let mut missing = None;
        let mut below = Vec::new();
        for (lower, text) in levels {
            match (text, missing) {
                (Some(_), Some(upper)) => return Err(InvalidSensor::Level { upper, lower }),
                (Some(text), None) => below.push(Part::new(lower, text)?),
                (None, _) => missing = missing.or(Some(lower)),
            }
        }
        Ok(LocationPrefix {
            city: Part::new("city", city)?,
            below,
        })
    }

    pub fn city(&self) -> &Part {
        &self.city
    }

    /// Returns building, floor and room, as many as are given.
    pub fn below(&self) -> &[Part] {
        &self.below
    }

    pub fn holds(&self, location: &Location) -> bool {
        let parts = [&location.building, &location.floor, &location.room];
        self.city == location.city
            && self
                .below
                .iter()
                .zip(parts)
                .all(|(ours, part)| ours == part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_one_text_however_they_are_written() {
        assert_eq!(
            Part::new("city", "Poznan\u{301}").unwrap(),
            Part::new("city", "Pozna\u{144}").unwrap()
        );
        for (text, says) in [
            ("", "the room is empty"),
            (" a", "the room starts or ends with space"),
            ("a\u{a0}", "the room starts or ends with space"),
            ("a\0b", "the room may not hold '\\0'"),
            (&"ä".repeat(51), "the room has 102 bytes, the limit is 100"),
        ] {
            assert_eq!(Part::new("room", text).unwrap_err().to_string(), says);
        }
    }

    #[test]
    fn a_place_holds_what_lies_in_it() {
        let at = Location::new("Poznań", "A", "2", "13").unwrap();
        let place = |b, f, r| LocationPrefix::new("Poznań", b, f, r).unwrap();
        assert!(place(None, None, None).holds(&at));
        assert!(place(Some("A"), Some("2"), Some("13")).holds(&at));
        assert!(!place(Some("A"), Some("21"), None).holds(&at));
        assert!(
            !LocationPrefix::new("Łódź", None, None, None)
                .unwrap()
                .holds(&at)
        );
        assert!(LocationPrefix::new("Poznań", Some("A"), None, Some("13")).is_err());
    }
}
