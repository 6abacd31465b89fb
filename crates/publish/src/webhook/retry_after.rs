//! The header `Retry-After`: seconds, or a date.

use std::time::{Duration, UNIX_EPOCH};

use antumbra_shadow::Timestamp;

/// Parses the time to wait. It is zero for a date in the past, `None` for anything else.
pub(super) fn parse(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    let date = date.duration_since(UNIX_EPOCH).ok()?;
    let now = u64::try_from(now.nanoseconds()).ok()?;
    Some(date.saturating_sub(Duration::from_nanos(now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_parsed() {
        let now = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        for (value, expected) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("99999999999", Some(99_999_999_999)),
            ("Sat, 31 Jan 2026 12:01:30 GMT", Some(90)),
            ("Saturday, 31-Jan-26 12:01:30 GMT", Some(90)),
            ("Sat, 31 Jan 2026 11:00:00 GMT", Some(0)),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
            ("2026-01-31T12:01:30Z", None),
        ] {
            assert_eq!(
                parse(value, now),
                expected.map(Duration::from_secs),
                "{value}"
            );
        }
    }
}
