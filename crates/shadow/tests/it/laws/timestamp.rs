//! Times, with jiff as the oracle.

use antumbra_shadow::{Document, Model, Timestamp};
use proptest::prelude::*;
use proptest::sample::select;

use crate::config;
use crate::reference::value::instant;

/// The time that the oracle reads, truncated to nanoseconds.
fn oracle(text: &str) -> Option<i128> {
    let (head, tail) = text.split_once('.').unwrap_or((text, ""));
    let digits = tail
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(tail.len());
    let text = match tail {
        "" => text.to_owned(),
        tail => format!("{head}.{}{}", &tail[..digits.min(9)], &tail[digits..]),
    };
    text.parse::<jiff::Timestamp>()
        .ok()
        .map(|time| time.as_nanosecond())
}

fn ours(text: &str) -> Option<i128> {
    Timestamp::parse(text).map(Timestamp::nanoseconds)
}

fn offset() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec!["Z", "z"]).prop_map(str::to_owned),
        (select(vec!['+', '-']), 0..24, 0..60)
            .prop_map(|(sign, hours, minutes)| format!("{sign}{hours:02}:{minutes:02}")),
    ]
}

fn fraction() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "\\.[0-9]{1,12}"]
}

/// Any year, and often one that is or looks like a leap year.
fn year() -> impl Strategy<Value = i32> {
    let special = vec![4, 100, 400, 1900, 1970, 2000, 2023, 2024, 2100, 9998];
    prop_oneof![1..9999, select(special)]
}

prop_compose! {
    /// RFC 3339 in shape; not every day drawn exists.
    fn text()(
        date in (year(), prop_oneof![3 => 0..14, 1 => Just(2)], prop_oneof![3 => 0..33, 1 => Just(29)]),
        time in (0..26, 0..62, 0..63),
        between in select(vec!['T', 't', ' ']),
        fraction in fraction(),
        offset in offset(),
    ) -> String {
        let ((year, month, day), (hour, minute, second)) = (date, time);
        format!("{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}{fraction}{offset}")
    }
}

prop_compose! {
    /// RFC 3339 of days that all exist.
    fn valid()(
        date in (year(), 1..13, 1..29),
        time in (0..24, 0..60, 0..61),
        between in select(vec!['T', 't', ' ']),
        fraction in fraction(),
        offset in offset(),
    ) -> String {
        let ((year, month, day), (hour, minute, second)) = (date, time);
        format!("{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}{fraction}{offset}")
    }
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn reads_the_same_times_as_the_oracle(text in text()) {
        prop_assert_eq!(ours(&text), oracle(&text), "{}", text);
    }

    #[test]
    fn reads_every_valid_time(text in valid()) {
        prop_assert!(ours(&text).is_some(), "{}", text);
        prop_assert_eq!(ours(&text), oracle(&text), "{}", text);
    }

    #[test]
    fn reads_nothing_else_than_the_oracle(
        text in valid(),
        at in any::<prop::sample::Index>(),
        with in any::<Option<char>>(),
        digit in "[0-9:.+Zz T-]",
    ) {
        let mut chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        match with {
            Some(c) if c != '\u{2212}' => chars[at] = c,
            Some(_) => {}
            None => chars.splice(at..at, digit.chars()).for_each(drop),
        }
        let text: String = chars.into_iter().collect();
        if let Some(time) = ours(&text) {
            prop_assert_eq!(Some(time), oracle(&text), "{}", text);
        }
    }

    #[test]
    fn times_that_are_read_can_be_written(text in valid(), year in select(vec!["0000", "9999"]), end in select(vec!["-01-01", "-12-31"])) {
        let edge = format!("{year}{end}{}", &text[10..]);
        for text in [text, edge] {
            if let Some(time) = Timestamp::parse(&text) {
                prop_assert_eq!(Timestamp::parse(&time.to_string()), Some(time), "{}", text);
            }
        }
    }

    #[test]
    fn writes_as_the_oracle_writes(
        nanoseconds in -62_135_596_800_000_000_000_i128..253_370_764_800_000_000_000,
        whole in any::<bool>(),
    ) {
        let nanoseconds = if whole { nanoseconds / 1_000_000_000 * 1_000_000_000 } else { nanoseconds };
        let text = Timestamp::from_nanoseconds(nanoseconds).to_string();
        prop_assert_eq!(&text, &jiff::Timestamp::from_nanosecond(nanoseconds).unwrap().to_string());
        prop_assert_eq!(ours(&text), Some(nanoseconds));
    }

    #[test]
    fn distinguishes_units_by_magnitude(digits in 1..20_usize, number in any::<i64>()) {
        let text = number.to_string();
        let text = &text[..text.len().min(digits + usize::from(number < 0))];
        let document = Document::parse(&format!("{{\"t\":{{\"timestamp\":{text}}}}}")).unwrap();
        let time = Model::default().time(document.pointer("/t").unwrap()).map(Timestamp::nanoseconds);
        prop_assert_eq!(time, instant(&text.parse::<i64>().unwrap().into()), "{}", text);
    }
}
