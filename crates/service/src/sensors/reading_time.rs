//! Reading times: the time of a measurement and its sequence, which order readings and states.

use std::fmt;

use antumbra_shadow::Timestamp;

use super::escape::{SEPARATOR, escape, unescape};
use super::id::InvalidSensor;
use crate::fnv::fnv1a;
use crate::text::check_text;

/// Maximum bytes of a queue's message id.
pub const MESSAGE_ID_BYTES: usize = 128;
const SECOND: i128 = 1_000_000_000;
const MILLISECOND: i128 = 1_000_000;
/// The first second of the year 0000 and the first of the year 10000.
const FIRST_SECOND: i128 = -62_167_219_200;
const END_SECOND: i128 = 253_402_300_800;

/// Distinguishes readings of the same time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Sequence {
    /// Number given by the device.
    Number(u64),
    /// Message id given by the queue.
    Message(String),
    /// Hash of the content, if there is neither: equal content is the same reading.
    Content(u64),
}

impl Sequence {
    pub fn message(id: impl Into<String>) -> Result<Sequence, InvalidSensor> {
        let id = check_text("message id", id.into(), MESSAGE_ID_BYTES, |_| true)?;
        Ok(Sequence::Message(id))
    }

    pub fn content(text: &str) -> Sequence {
        Sequence::Content(fnv1a(text.as_bytes()))
    }

    fn parse(text: &str) -> Option<Sequence> {
        let found = match text.split_at_checked(1)? {
            ("@", id) => Sequence::message(unescape(id)?).ok()?,
            ("~", hash) => Sequence::Content(u64::from_str_radix(hash, 16).ok()?),
            _ => Sequence::Number(text.parse().ok()?),
        };
        (found.to_string() == text).then_some(found)
    }
}

/// Numbers sort before ids and ids before hashes; each has a fixed width or is escaped.
impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sequence::Number(number) => write!(f, "{number:020}"),
            Sequence::Message(id) => write!(f, "@{}", escape(id)),
            Sequence::Content(hash) => write!(f, "~{hash:016x}"),
        }
    }
}

/// A time and a sequence. Its text sorts in the same order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReadingTime {
    time: Timestamp,
    sequence: Sequence,
}

impl ReadingTime {
    /// Creates a reading time. The time must be in the years 0000 to 9999.
    pub fn new(time: Timestamp, sequence: Sequence) -> Result<ReadingTime, InvalidSensor> {
        fixed_width(time)?;
        Ok(ReadingTime { time, sequence })
    }

    /// Returns the same sequence at another time; unchanged if that time cannot be stored.
    pub(super) fn at(&self, time: Timestamp) -> ReadingTime {
        ReadingTime::new(time, self.sequence.clone()).unwrap_or_else(|_| self.clone())
    }

    pub fn time(&self) -> Timestamp {
        self.time
    }

    pub fn sequence(&self) -> &Sequence {
        &self.sequence
    }

    /// Parses the text form; `None` for any other text.
    pub fn parse(text: &str) -> Option<ReadingTime> {
        let (time, sequence) = text.split_once(SEPARATOR)?;
        let parsed = Timestamp::parse(time)?;
        if fixed_width(parsed).ok()? != time {
            return None;
        }
        ReadingTime::new(parsed, Sequence::parse(sequence)?).ok()
    }
}

impl fmt::Display for ReadingTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = fixed_width(self.time).map_err(|_| fmt::Error)?;
        write!(f, "{time}{SEPARATOR}{}", self.sequence)
    }
}

/// Sorts like the text form.
impl PartialOrd for ReadingTime {
    fn partial_cmp(&self, other: &ReadingTime) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ReadingTime {
    fn cmp(&self, other: &ReadingTime) -> std::cmp::Ordering {
        let sequences = || self.sequence.to_string().cmp(&other.sequence.to_string());
        self.time.cmp(&other.time).then_with(sequences)
    }
}

/// Formats a time as RFC 3339 in UTC with nine digits of a second, so that texts sort by time.
pub fn fixed_width(time: Timestamp) -> Result<String, InvalidSensor> {
    let nanoseconds = time.nanoseconds();
    let (second, fraction) = (
        nanoseconds.div_euclid(SECOND),
        nanoseconds.rem_euclid(SECOND),
    );
    if !(FIRST_SECOND..END_SECOND).contains(&second) {
        return Err(InvalidSensor::Time);
    }
    let whole = Timestamp::from_nanoseconds(second * SECOND).to_string();
    Ok(format!("{}.{fraction:09}Z", whole.trim_end_matches('Z')))
}

/// Returns milliseconds since 1970, the form in which stored deadlines are compared.
pub fn milliseconds(time: Timestamp) -> i64 {
    let milliseconds = time.nanoseconds().div_euclid(MILLISECOND);
    i64::try_from(milliseconds).unwrap_or(if milliseconds < 0 { i64::MIN } else { i64::MAX })
}

/// Returns the time at this number of milliseconds since 1970.
pub fn from_milliseconds(milliseconds: i64) -> Timestamp {
    Timestamp::from_nanoseconds(i128::from(milliseconds) * MILLISECOND)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sequences() -> impl Strategy<Value = Sequence> {
        prop_oneof![
            any::<u64>().prop_map(Sequence::Number),
            "[ -~ä#%]{1,12}".prop_map(Sequence::Message),
            any::<u64>().prop_map(Sequence::Content),
        ]
    }

    fn moments() -> impl Strategy<Value = ReadingTime> {
        let years = FIRST_SECOND * SECOND..END_SECOND * SECOND;
        let near = 0..4_i128;
        (prop_oneof![years, near], sequences()).prop_map(|(nanoseconds, sequence)| {
            ReadingTime::new(Timestamp::from_nanoseconds(nanoseconds), sequence).unwrap()
        })
    }

    proptest! {
        #[test]
        fn texts_sort_as_moments_do_and_come_back(one in moments(), other in moments()) {
            prop_assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()));
            prop_assert_eq!(ReadingTime::parse(&one.to_string()), Some(one));
        }
    }

    #[test]
    fn other_texts_are_no_moments() {
        for text in [
            "",
            "2026-01-31T12:00:00.500000000Z",
            "2026-01-31T12:00:00.5Z#00000000000000000017",
            "2026-01-31T12:00:00.500000000Z#17",
            "2026-01-31T13:00:00.500000000+01:00#00000000000000000017",
            "2026-01-31T12:00:00.500000000Z#@",
            "2026-01-31T12:00:00.500000000Z#~12",
            "2026-01-31T12:00:00.500000000Z#ä",
        ] {
            assert_eq!(ReadingTime::parse(text), None, "{text}");
        }
    }

    #[test]
    fn times_without_four_digits_of_a_year_are_refused() {
        for second in [FIRST_SECOND - 1, END_SECOND] {
            let time = Timestamp::from_nanoseconds(second * SECOND);
            assert!(ReadingTime::new(time, Sequence::Number(0)).is_err());
        }
        let last = Timestamp::from_nanoseconds(END_SECOND * SECOND - 1);
        assert_eq!(fixed_width(last).unwrap(), "9999-12-31T23:59:59.999999999Z");
    }

    #[test]
    fn milliseconds_are_those_passed() {
        let time = Timestamp::from_nanoseconds(-1);
        assert_eq!(milliseconds(time), -1);
        assert_eq!(
            milliseconds(from_milliseconds(1_700_000_000_123)),
            1_700_000_000_123
        );
    }
}
