//! The time property of a RabbitMQ message, in the forms it comes in.
//!
//! The protocol has whole seconds. Amazon MQ writes them as its own runtime prints dates, such as
//! `Jan 1, 1970, 12:33:41 AM` in UTC, with or without a comma after the year and with any kind of space
//! before the half of the day, depending on that runtime's version.

use antumbra_shadow::Timestamp;
use serde_json::Value;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The instant a property says. What cannot be read counts as not set: nothing depends on it alone.
pub(super) fn read(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(number) => Timestamp::of_unix(&number.to_string()),
        Value::String(text) => Timestamp::parse(text)
            .or_else(|| Timestamp::of_unix(text))
            .or_else(|| printed(text)),
        _ => None,
    }
}

fn printed(text: &str) -> Option<Timestamp> {
    let parts: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|part| !part.is_empty())
        .collect();
    let [month, day, year, time, half] = parts[..] else {
        return None;
    };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let (day, year): (u32, u32) = (day.parse().ok()?, year.parse().ok()?);
    let (hour, rest) = time.split_once(':')?;
    let hour: u32 = hour.parse().ok().filter(|hour| (1..=12).contains(hour))?;
    let hour = match half {
        "AM" => hour % 12,
        "PM" => hour % 12 + 12,
        _ => return None,
    };
    Timestamp::parse(&format!("{year:04}-{month:02}-{day:02}T{hour:02}:{rest}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_time_is_read() {
        let quoted = |text: &str| Value::String(text.to_owned());
        for (value, expected) in [
            (quoted("Jan 1, 1970, 12:33:41 AM"), "1970-01-01T00:33:41Z"),
            (quoted("Jan 1, 1970 12:33:41 PM"), "1970-01-01T12:33:41Z"),
            (
                quoted("Nov 16, 2026, 1:02:03\u{202f}PM"),
                "2026-11-16T13:02:03Z",
            ),
            (quoted("2026-11-16T13:02:03Z"), "2026-11-16T13:02:03Z"),
            (quoted("1794834123"), "2026-11-16T13:02:03Z"),
            (Value::from(1_794_834_123), "2026-11-16T13:02:03Z"),
            (Value::from(1_794_834_123_000_u64), "2026-11-16T13:02:03Z"),
        ] {
            let read = read(&value).map(|instant| instant.to_string());
            assert_eq!(read.as_deref(), Some(expected), "{value}");
        }
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in [
            "",
            "yesterday",
            "Jan 32, 1970, 1:00:00 AM",
            "Jan 1, 1970, 13:00:00 AM",
            "Jan 1, 1970, 1:00:00 XM",
            "Jan 1, 1970, 1:00:00",
            "jan 1, 1970, 1:00:00 AM",
            "Feb 30, 2026, 1:00:00 AM",
            "Jan 1, 1970, 1 AM",
            "1.5",
        ] {
            assert_eq!(read(&Value::String(text.to_owned())), None, "{text}");
        }
        for value in [Value::Null, Value::Bool(true), Value::from(1.5)] {
            assert_eq!(read(&value), None, "{value}");
        }
    }
}
