//! Timestamps, with jiff as the oracle.

use antumbra_shadow::{Document, Model, Timestamp};

/// Range compared with jiff, which writes years before 1 differently.
const KNOWN: std::ops::Range<i128> = -62_135_596_800_000_000_000..253_370_764_800_000_000_000;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for line in text.split('\n') {
        if let Some(instant) = Timestamp::parse(line) {
            written(line, instant);
        }
        counted(line);
        in_a_document(line);
    }
}

/// RFC 3339.
fn written(text: &str, instant: Timestamp) {
    let nanoseconds = instant.nanoseconds();
    let again = instant.to_string();
    assert_eq!(Timestamp::parse(&again), Some(instant), "{again}");
    if KNOWN.contains(&nanoseconds) {
        assert_eq!(Some(nanoseconds), oracle(text), "{text}");
        let theirs = jiff::Timestamp::from_nanosecond(nanoseconds).unwrap();
        assert_eq!(again, theirs.to_string());
    }
}

/// Parses with the oracle, truncated to nanoseconds.
fn oracle(text: &str) -> Option<i128> {
    let (head, tail) = text.split_once('.').unwrap_or((text, ""));
    let end = tail
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(tail.len());
    let text = match tail {
        "" => text.to_owned(),
        tail => format!("{head}.{}{}", &tail[..end.min(9)], &tail[end..]),
    };
    let read: jiff::Timestamp = text.parse().ok()?;
    Some(read.as_nanosecond())
}

/// Numbers in each unit, with and without a fraction.
fn counted(text: &str) {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let decimal = fraction.bytes().all(|b| b.is_ascii_digit());
    let number = whole.parse::<i64>().ok().filter(|_| decimal);
    let expected = number.map(|number| {
        let digits = number.unsigned_abs().to_string().len();
        let unit: i128 = match digits {
            ..=11 => 1_000_000_000,
            12..=14 => 1_000_000,
            15..=17 => 1_000,
            _ => 1,
        };
        let billionths: i128 = format!("{fraction:0<9}")[..9].parse().unwrap();
        let part = billionths * unit / 1_000_000_000;
        let sign = if whole.starts_with('-') { -1 } else { 1 };
        i128::from(number) * unit + sign * part
    });
    let ours = Timestamp::of_unix(text).map(Timestamp::nanoseconds);
    assert_eq!(ours, expected, "{text}");
}

/// Members of a document, as a text and as a number.
fn in_a_document(text: &str) {
    let model = Model::default();
    let time = |json: &str| {
        let document = Document::parse(&format!("{{\"t\":{{\"timestamp\":{json}}}}}")).ok()?;
        model.time(document.pointer("/t")?)
    };
    let quoted = serde_json::Value::from(text).to_string();
    assert_eq!(time(&quoted), Timestamp::parse(text), "{text}");
    if serde_json::from_str::<i64>(text).is_ok() {
        assert_eq!(time(text), Timestamp::of_unix(text.trim()), "{text}");
    }
}
