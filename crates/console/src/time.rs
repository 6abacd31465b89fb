//! Ages and times in words.

use std::time::Duration;

use antumbra_shadow::Timestamp;
use jiff::Zoned;
use jiff::tz::TimeZone;

/// Nanoseconds in a second.
const SECOND: i128 = 1_000_000_000;

/// A distance of two times in one word of time: `13 s`, `3 min`, `2 h`, `41 d`.
pub(crate) fn duration(nanoseconds: i128) -> String {
    let seconds = nanoseconds.abs() / SECOND;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// `13 s ago`, `in 3 h`, or `now` for less than a second.
pub(crate) fn age(now: Timestamp, then: Timestamp) -> String {
    let distance = now.nanoseconds() - then.nanoseconds();
    match distance {
        _ if distance.abs() < SECOND => "now".to_owned(),
        0.. => format!("{} ago", duration(distance)),
        _ => format!("in {}", duration(distance)),
    }
}

/// A time in a zone; `None` outside of the years that calendars know.
pub(crate) fn zoned(time: Timestamp, zone: &TimeZone) -> Option<Zoned> {
    let time = jiff::Timestamp::from_nanosecond(time.nanoseconds()).ok()?;
    Some(time.to_zoned(zone.clone()))
}

/// Parses a time that a person typed: `now`, `-10m`, `14:05`, `14:05:02`, a date and time, or a time with an offset.
pub(crate) fn parse(text: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let text = text.trim();
    if text.is_empty() || text == "now" {
        return Some(now);
    }
    if let Some(back) = text.strip_prefix('-') {
        return ago(back, now);
    }
    if let Some(time) = Timestamp::parse(text) {
        return Some(time);
    }
    let civil = match text.parse::<jiff::civil::DateTime>() {
        Ok(civil) => civil,
        Err(_) => {
            let time: jiff::civil::Time = text.parse().ok()?;
            let today = zoned(now, zone)?.date();
            let civil = today.to_datetime(time);
            let is_later = of(civil, zone)? > now;
            match is_later {
                true => today.yesterday().ok()?.to_datetime(time),
                false => civil,
            }
        }
    };
    of(civil, zone)
}

fn of(civil: jiff::civil::DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let zoned = civil.to_zoned(zone.clone()).ok()?;
    Some(Timestamp::from_nanoseconds(
        zoned.timestamp().as_nanosecond(),
    ))
}

/// `10m` before now.
fn ago(text: &str, now: Timestamp) -> Option<Timestamp> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let count: u64 = digits.parse().ok()?;
    let seconds = match text[digits.len()..].trim() {
        "s" => 1,
        "m" | "min" | "" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    let back = Duration::from_secs(count.checked_mul(seconds)?);
    Some(Timestamp::from_nanoseconds(
        now.nanoseconds() - back.as_nanos() as i128,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn ages_are_in_words() {
        let now = at("2026-11-16T12:00:00Z");
        for (then, expected) in [
            ("2026-11-16T12:00:00Z", "now"),
            ("2026-11-16T11:59:47Z", "13 s ago"),
            ("2026-11-16T11:57:00Z", "3 min ago"),
            ("2026-11-16T09:30:00Z", "2 h ago"),
            ("2026-10-06T09:30:00Z", "41 d ago"),
            ("2026-11-16T15:00:00Z", "in 3 h"),
        ] {
            assert_eq!(age(now, at(then)), expected);
        }
    }

    #[test]
    fn typed_times_are_understood() {
        let now = at("2026-11-16T12:00:00Z");
        let utc = TimeZone::UTC;
        for (text, expected) in [
            ("now", Some("2026-11-16T12:00:00Z")),
            ("-10m", Some("2026-11-16T11:50:00Z")),
            ("-2h", Some("2026-11-16T10:00:00Z")),
            ("11:05", Some("2026-11-16T11:05:00Z")),
            ("14:05", Some("2026-11-15T14:05:00Z")),
            ("2026-11-01 10:00", Some("2026-11-01T10:00:00Z")),
            ("2026-11-01T10:00:00+01:00", Some("2026-11-01T09:00:00Z")),
            ("soon", None),
            ("-99999999999999999999d", None),
            ("-9999999999999999d", None),
        ] {
            assert_eq!(parse(text, now, &utc), expected.map(at), "{text}");
        }
    }
}
