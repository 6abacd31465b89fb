//! Parsing of signals.

use antumbra_service::sensors::{MARKER, SensorId, SignalMessage, SignalPayload, Value, ValueType};
use antumbra_shadow::Timestamp;
use antumbra_testkit::table::cases;
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
    let table = r#"
        {"sensor_id":"0xA","data":0}                    | 0
         { "data" : 1 , "sensor_id" : "0xA" }           | 1
        {"sensor_id":"0xA","data":1.0}                  | 1
        {"sensor_id":"0xA","data":-0}                   | 0
        {"sensor_id":"0xA","data":1,"ts":0}             | 1 | 1970-01-01T00:00:00Z
        {"sensor_id":"0xA","data":1,"ts":1769860800,"seq":0} | 1 | 2026-01-31T12:00:00Z | 0
        {"sensor_id":"0xA","data":1,"ts":"2026-01-31T13:00:00+01:00","seq":7} | 1 | 2026-01-31T12:00:00Z | 7
        {"sensor_id":"0xA","data":1,"ts":1769860800123,"seq":18446744073709551615} | 1 | 2026-01-31T12:00:00.123Z | 18446744073709551615
    "#;
    for [text, data, ts, seq] in cases(table) {
        let expected = SignalPayload {
            sensor_id: SensorId::new("0xA").unwrap(),
            data: number(&data),
            ts: Timestamp::parse(&ts),
            seq: seq.parse().ok(),
            fields: None,
        };
        assert_eq!(signal(&text, ValueType::Binary), expected, "{text}");
    }
}

#[test]
fn further_members_are_kept() {
    let text =
        r#"{"sensor_id":"0xA","data":1,"battery":80.50,"Data":{"a":[1]},"marker":"liveness"}"#;
    let fields = signal(text, ValueType::Binary).fields.unwrap();
    assert_eq!(
        fields.view().to_json(),
        r#"{"Data":{"a":[1]},"battery":80.5,"marker":"liveness"}"#
    );
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
    for [text, reason, expected] in cases(include_str!("../../testdata/invalid-signals.txt")) {
        let error = SignalMessage::parse(&text, ValueType::Binary).expect_err(&text);
        assert_eq!(error.reason(), reason, "{text}");
        assert!(error.to_string().contains(&expected), "{text}: {error}");
    }
}

#[test]
fn a_rejected_value_is_shortened() {
    let text = format!(r#"{{"sensor_id":"a","data":"{}"}}"#, "ž".repeat(500));
    let error = SignalMessage::parse(&text, ValueType::Binary).unwrap_err();
    assert!(error.to_string().chars().count() < 80, "{error}");
}

#[test]
fn a_marker_is_not_a_signal() {
    let marker = SignalMessage::parse(MARKER, ValueType::Binary);
    assert_eq!(marker, Ok(SignalMessage::Marker));
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
