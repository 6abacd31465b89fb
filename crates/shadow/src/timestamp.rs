//! Instants, as devices write them.
//!
//! Accepted are RFC 3339 strings with any offset, and whole numbers of Unix seconds, milliseconds,
//! microseconds or nanoseconds, distinguished by magnitude:
//!
//! | magnitude | unit | seconds would reach |
//! |---|---|---|
//! | below 10^11 | seconds | the year 5138 |
//! | below 10^14 | milliseconds | |
//! | below 10^17 | microseconds | |
//! | up to 64 bits | nanoseconds | |

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use crate::tape::{Kind, View};

/// Digits that fit a signed number of 64 bits, whatever they are.
const SHORT_DIGITS: usize = 18;
const SECOND: i128 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;
/// The years 0000 to 9999 in UTC, which RFC 3339 can write.
const WRITABLE_SECONDS: Range<i64> = -62_167_219_200..253_402_300_800;

/// An instant, in nanoseconds since 1970 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i128);

impl Timestamp {
    /// From nanoseconds since 1970.
    pub const fn from_nanoseconds(nanoseconds: i128) -> Timestamp {
        Timestamp(nanoseconds)
    }

    /// Nanoseconds since 1970.
    pub fn nanoseconds(self) -> i128 {
        self.0
    }

    /// The instant that much later.
    pub fn after(self, duration: Duration) -> Timestamp {
        Timestamp(self.0 + duration.as_nanos() as i128)
    }

    /// The instant of a value, if it is one.
    pub fn of(view: View<'_>) -> Option<Timestamp> {
        match view.kind() {
            Kind::Number => Self::of_unix(view.raw()),
            Kind::String => Self::parse(&view.as_str()?),
            _ => None,
        }
    }

    /// Returns `true` if a value is an instant.
    pub(crate) fn is(view: View<'_>) -> bool {
        let digits = view.raw_bytes();
        let is_short = view.kind() == Kind::Number && digits.len() <= SHORT_DIGITS;
        is_short && digits.iter().all(u8::is_ascii_digit) || Self::of(view).is_some()
    }

    /// Reads a number of Unix seconds, milliseconds, microseconds or nanoseconds, distinguished by magnitude. Digits
    /// finer than a nanosecond are cut off.
    ///
    /// ```
    /// use antumbra_shadow::Timestamp;
    /// assert_eq!(Timestamp::of_unix("1769860800000"), Timestamp::parse("2026-01-31T12:00:00Z"));
    /// assert_eq!(Timestamp::of_unix("1769860800.25"), Timestamp::parse("2026-01-31T12:00:00.25Z"));
    /// ```
    pub fn of_unix(text: &str) -> Option<Timestamp> {
        if let Some(value) = short_number(text.as_bytes()) {
            return Some(Timestamp(i128::from(value) * unit(value)));
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let value: i64 = whole.parse().ok()?;
        let unit = unit(value);
        let mut part = 0;
        let mut place = unit;
        for digit in fraction.chars() {
            place /= 10;
            part += i128::from(digit.to_digit(10)?) * place;
        }
        let sign = if whole.starts_with('-') { -1 } else { 1 };
        Some(Timestamp(i128::from(value) * unit + sign * part))
    }

    /// Reads an RFC 3339 string. Times outside the years 0000 to 9999 in UTC are rejected.
    ///
    /// ```
    /// use antumbra_shadow::Timestamp;
    /// let noon = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
    /// assert_eq!(Timestamp::parse("2026-01-31T13:00:00.000+01:00"), Some(noon));
    /// assert_eq!(noon.to_string(), "2026-01-31T12:00:00Z");
    /// assert_eq!(Timestamp::parse("yesterday"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Timestamp> {
        let b = text.as_bytes();
        if b.len() < 20 || b[4] != b'-' || b[7] != b'-' || b[13] != b':' || b[16] != b':' {
            return None;
        }
        if !matches!(b[10], b'T' | b't' | b' ') {
            return None;
        }
        let (year, month, day) = (digits(&b[0..4])?, digits(&b[5..7])?, digits(&b[8..10])?);
        let (hour, minute, second) = (
            digits(&b[11..13])?,
            digits(&b[14..16])?,
            digits(&b[17..19])?,
        );
        if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
            return None;
        }
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let (nanosecond, rest) = fraction(&b[19..])?;
        let offset = offset_seconds(rest)?;
        // A leap second counts as the second before it.
        let second = second.min(59);
        let seconds =
            days_since_1970(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second
                - offset;
        WRITABLE_SECONDS
            .contains(&seconds)
            .then(|| Timestamp(i128::from(seconds) * SECOND + i128::from(nanosecond)))
    }
}

/// RFC 3339 in UTC, with a fraction only where there is one.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanosecond) = (self.0.div_euclid(SECOND), self.0.rem_euclid(SECOND));
        let days = seconds.div_euclid(i128::from(DAY_SECONDS));
        let second = seconds.rem_euclid(i128::from(DAY_SECONDS));
        let (year, month, day) = civil(days as i64);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
            second / 3600,
            second / 60 % 60,
            second % 60
        )?;
        if nanosecond != 0 {
            write!(f, ".{}", format!("{nanosecond:09}").trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// Nanoseconds that a number of this magnitude counts.
fn unit(value: i64) -> i128 {
    match value.unsigned_abs() {
        0..=99_999_999_999 => 1_000_000_000,
        100_000_000_000..=99_999_999_999_999 => 1_000_000,
        100_000_000_000_000..=99_999_999_999_999_999 => 1_000,
        _ => 1,
    }
}

/// The value of some digits, if there are no more than fit; most times are written so.
fn short_number(bytes: &[u8]) -> Option<i64> {
    match bytes.len() {
        1..=SHORT_DIGITS => digits(bytes),
        _ => None,
    }
}

fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |value, &b| {
        b.is_ascii_digit().then(|| value * 10 + i64::from(b - b'0'))
    })
}

/// The nanoseconds of an optional fraction, and the bytes after it. Finer digits are cut off.
fn fraction(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let Some((b'.', rest)) = bytes.split_first() else {
        return Some((0, bytes));
    };
    let length = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    if length == 0 {
        return None;
    }
    let kept = length.min(9);
    let nanosecond = digits(&rest[..kept])? * 10_i64.pow(9 - kept as u32);
    Some((nanosecond, &rest[length..]))
}

fn offset_seconds(bytes: &[u8]) -> Option<i64> {
    match bytes {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = hours * 3600 + minutes * 60;
            Some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => None,
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar; years counted from March, so that the
/// leap day comes last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The inverse of [`days_since_1970`].
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}
