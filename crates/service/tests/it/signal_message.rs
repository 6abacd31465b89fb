//! Parsing of signals.

use antumbra_service::sensors::{
    MARKER, SIGNAL_BYTES, SensorId, SignalMessage, SignalPayload, Value, ValueType,
};
use antumbra_shadow::Timestamp;
use proptest::prelude::*;

fn number(text: &str) -> Value {
    Value::Number(text.to_owned())
}

fn signal(text: &str, allowed: ValueType) -> SignalPayload {
    match SignalMessage::parse(text, allowed) {
        Ok(SignalMessage::Signal(signal)) => signal,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn signals_of_locks_are_parsed() {
    for (text, data, ts, seq) in [
        (r#"{"sensor_id":"0xA","data":0}"#, "0", None, None),
        (r#" { "data" : 1 , "sensor_id" : "0xA" } "#, "1", None, None),
        (r#"{"sensor_id":"0xA","data":1.0}"#, "1", None, None),
        (r#"{"sensor_id":"0xA","data":-0}"#, "0", None, None),
        (
            r#"{"sensor_id":"0xA","data":1,"ts":"2026-01-31T13:00:00+01:00","seq":7}"#,
            "1",
            Some("2026-01-31T12:00:00Z"),
            Some(7),
        ),
        (
            r#"{"sensor_id":"0xA","data":1,"ts":1769860800,"seq":0}"#,
            "1",
            Some("2026-01-31T12:00:00Z"),
            Some(0),
        ),
        (
            r#"{"sensor_id":"0xA","data":1,"ts":1769860800123,"seq":18446744073709551615}"#,
            "1",
            Some("2026-01-31T12:00:00.123Z"),
            Some(u64::MAX),
        ),
        (
            r#"{"sensor_id":"0xA","data":1,"ts":0}"#,
            "1",
            Some("1970-01-01T00:00:00Z"),
            None,
        ),
    ] {
        let expected = SignalPayload {
            sensor_id: SensorId::new("0xA").unwrap(),
            data: number(data),
            ts: ts.map(|ts| Timestamp::parse(ts).unwrap()),
            seq,
        };
        assert_eq!(signal(text, ValueType::Binary), expected, "{text}");
    }
}

#[test]
fn other_sensors_may_send_any_scalar_exactly() {
    for (data, expected) in [
        ("21.50", number("21.5")),
        ("-40", number("-40")),
        (
            "12345678901234567890123456789012345678",
            number("12345678901234567890123456789012345678"),
        ),
        (r#""otevřeno""#, Value::Text("otevřeno".to_owned())),
        (r#""""#, Value::Text(String::new())),
        ("true", Value::Boolean(true)),
    ] {
        let text = format!(r#"{{"sensor_id":"t-1","data":{data}}}"#);
        assert_eq!(signal(&text, ValueType::Scalar).data, expected, "{data}");
    }
}

#[test]
fn invalid_signals_are_rejected_with_a_reason() {
    let long = format!(r#"{{"sensor_id":"{}","data":1}}"#, "x".repeat(SIGNAL_BYTES));
    for (text, reason, expected_text) in [
        ("", "NotJson", ""),
        ("1", "NotJson", "a document is a JSON object"),
        ("[]", "NotJson", "a document is a JSON object"),
        ("null", "NotJson", "a document is a JSON object"),
        (r#"{"sensor_id":"a","data":1"#, "NotJson", ""),
        (r#"{"sensor_id":"a","data":1}x"#, "NotJson", ""),
        (
            r#"{"sensor_id":"a","data":1,"data":0}"#,
            "NotJson",
            r#"the name "data" stands twice"#,
        ),
        (
            r#"{"sensor_id":"a","d\u0061ta":1,"data":0}"#,
            "NotJson",
            r#"the name "data" stands twice"#,
        ),
        (r#"{"sensor_id":"a","data":1e999}"#, "NotJson", ""),
        (r#"{"sensor_id":"a","data":NaN}"#, "NotJson", ""),
        (r#"{"data":1}"#, "Invalid", "sensor_id is missing"),
        (r#"{"sensor_id":"a"}"#, "Invalid", "data is missing"),
        (r#"{}"#, "Invalid", "sensor_id is missing"),
        (
            r#"{"sensor_id":"","data":1}"#,
            "Invalid",
            "sensor_id is \"\", expected a text that is not empty",
        ),
        (
            r#"{"sensor_id":"a b","data":1}"#,
            "Invalid",
            "the sensor id may not hold ' '",
        ),
        (
            r#"{"sensor_id":7,"data":1}"#,
            "Invalid",
            "sensor_id is 7, expected",
        ),
        (
            r#"{"sensor_id":null,"data":1}"#,
            "Invalid",
            "sensor_id is null, expected",
        ),
        (
            r#"{"sensor_id":"a","data":2}"#,
            "Invalid",
            "data is 2, expected 0 or 1",
        ),
        (
            r#"{"sensor_id":"a","data":-1}"#,
            "Invalid",
            "data is -1, expected 0 or 1",
        ),
        (
            r#"{"sensor_id":"a","data":0.5}"#,
            "Invalid",
            "data is 0.5, expected 0 or 1",
        ),
        (
            r#"{"sensor_id":"a","data":"1"}"#,
            "Invalid",
            "data is \"1\", expected 0 or 1",
        ),
        (
            r#"{"sensor_id":"a","data":true}"#,
            "Invalid",
            "data is true, expected 0 or 1",
        ),
        (
            r#"{"sensor_id":"a","data":null}"#,
            "Invalid",
            "data is null, expected 0 or 1",
        ),
        (
            r#"{"sensor_id":"a","data":{"on":1}}"#,
            "Invalid",
            "data is an object, expected 0 or 1",
        ),
        (
            r#"{"sensor_id":"a","data":[1]}"#,
            "Invalid",
            "data is an array, expected 0 or 1",
        ),
        (
            r#"{"sensor_id":"a","data":1,"ts":"yesterday"}"#,
            "Invalid",
            "ts is \"yesterday\", expected RFC 3339",
        ),
        (
            r#"{"sensor_id":"a","data":1,"ts":1.5}"#,
            "Invalid",
            "ts is 1.5, expected",
        ),
        (
            r#"{"sensor_id":"a","data":1,"ts":-1}"#,
            "Invalid",
            "ts is -1, expected",
        ),
        (
            r#"{"sensor_id":"a","data":1,"ts":"1969-12-31T23:59:59Z"}"#,
            "Invalid",
            "between 1970 and 9999",
        ),
        (
            r#"{"sensor_id":"a","data":1,"ts":"9999-12-31T23:59:59-01:00"}"#,
            "Invalid",
            "between 1970 and 9999",
        ),
        (
            r#"{"sensor_id":"a","data":1,"ts":true}"#,
            "Invalid",
            "ts is true, expected",
        ),
        (
            r#"{"sensor_id":"a","data":1,"ts":null}"#,
            "Invalid",
            "ts is null, expected",
        ),
        (
            r#"{"sensor_id":"a","data":1,"seq":-1}"#,
            "Invalid",
            "seq is -1, expected",
        ),
        (
            r#"{"sensor_id":"a","data":1,"seq":"1"}"#,
            "Invalid",
            "seq is \"1\", expected",
        ),
        (
            r#"{"sensor_id":"a","data":1,"seq":18446744073709551616}"#,
            "Invalid",
            "seq is 18446744073709551616",
        ),
        (
            r#"{"sensor_id":"a","data":1,"Data":1}"#,
            "Invalid",
            "\"Data\" is not part of a signal",
        ),
        (
            r#"{"sensor_id":"a","data":1,"timestamp":1}"#,
            "Invalid",
            "\"timestamp\" is not part of a signal",
        ),
        (
            r#"{"sensor_id":"a","data":1,"marker":"liveness"}"#,
            "Invalid",
            "\"marker\" is not part",
        ),
        (
            long.as_str(),
            "TooLarge",
            "the message has 8217 bytes, the limit is 8192",
        ),
    ] {
        let error = SignalMessage::parse(text, ValueType::Binary).expect_err(text);
        assert_eq!(error.reason(), reason, "{text}");
        assert!(error.to_string().contains(expected_text), "{text}: {error}");
    }
}

#[test]
fn a_rejected_value_is_shortened() {
    let text = format!(r#"{{"sensor_id":"a","data":"{}"}}"#, "ž".repeat(500));
    let expected_text = SignalMessage::parse(&text, ValueType::Binary)
        .unwrap_err()
        .to_string();
    assert!(expected_text.chars().count() < 80, "{expected_text}");
}

#[test]
fn a_marker_is_not_a_signal() {
    assert_eq!(
        SignalMessage::parse(MARKER, ValueType::Binary),
        Ok(SignalMessage::Marker)
    );
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(text in ".{0,200}") {
        let _ = SignalMessage::parse(&text, ValueType::Scalar);
    }

    #[test]
    fn any_ids_and_values_are_parsed_exactly(id in "[A-Za-z0-9_.:-]{1,64}", value: i64, seq: u64) {
        let text = serde_json::json!({"sensor_id": id, "data": value, "seq": seq}).to_string();
        let Ok(SignalMessage::Signal(signal)) = SignalMessage::parse(&text, ValueType::Scalar) else {
            panic!("{text}");
        };
        prop_assert_eq!(signal.sensor_id.as_str(), id);
        prop_assert_eq!(signal.data, number(&value.to_string()));
        prop_assert_eq!(signal.seq, Some(seq));
    }
}
