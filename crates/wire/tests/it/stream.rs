//! Stream events as AWS documents them, and what becomes of those that are not.

use antumbra_registration::Operation;
use antumbra_wire::limits;
use antumbra_wire::stream::{EventError, Side, StreamBatch, Tape};

use crate::oracle::{Outcome, compare};

const OPERATIONS: &str = include_str!("../../testdata/operations.json");
const EXPIRED: &str = include_str!("../../testdata/expired.json");
const ALL_TYPES: &str = include_str!("../../testdata/all-types.json");
const UNUSUAL: &str = include_str!("../../testdata/unusual.json");

#[test]
fn samples_read_the_same_on_both_roads() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    for (sample, expected) in [(OPERATIONS, 3), (EXPIRED, 1), (ALL_TYPES, 1), (UNUSUAL, 4)] {
        let outcome = compare(sample.as_bytes(), &mut batch, &mut tape);
        assert_eq!(
            outcome,
            Ok(Outcome::Agreed {
                records: expected,
                refused: 0
            })
        );
    }
}

#[test]
fn operations_and_their_images() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    let records = batch.read(OPERATIONS.as_bytes()).unwrap();
    let seen: Vec<_> = records
        .iter()
        .map(|record| {
            let record = record.unwrap();
            assert_eq!(record.key("PK").as_deref(), Some("DS#My House#Basement"));
            assert_eq!(record.key("SK").as_deref(), Some("DSR#main"));
            assert_eq!(record.missing_image(), None);
            assert!(!record.expired());
            let images = record.images(&mut tape).unwrap();
            let version = |image: Option<antumbra_shadow::View<'_>>| {
                Some(image?.get("version")?.as_number()?.to_owned())
            };
            (
                record.operation(),
                record.sequence_number().into_owned(),
                record.created_seconds().unwrap(),
                version(images.old),
                version(images.new),
            )
        })
        .collect();
    let number = |text: &str| Some(text.to_owned());
    let sequence = |last: u32| format!("10000000000000000000{last}");
    assert_eq!(
        seen,
        [
            (
                Operation::Insert,
                sequence(1),
                1_731_700_000.0,
                None,
                number("1")
            ),
            (
                Operation::Modify,
                sequence(2),
                1_731_700_060.0,
                number("1"),
                number("2")
            ),
            (
                Operation::Remove,
                sequence(3),
                1_731_700_120.0,
                number("2"),
                None
            ),
        ]
    );
}

#[test]
fn every_type_becomes_plain_json() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    let record = batch
        .read(ALL_TYPES.as_bytes())
        .unwrap()
        .get(0)
        .unwrap()
        .unwrap();
    assert_eq!(record.key("PK").as_deref(), Some("ITEM#é\"1\""));
    assert_eq!(record.key("SK").as_deref(), Some("42"));
    let new = record.images(&mut tape).unwrap().new.unwrap();
    for (name, json) in [
        ("emptyString", r#""""#),
        ("number", "-12345678901234567890.123456789012345678"),
        ("small", "0.000001"),
        ("binary", r#""AAECAwQ=""#),
        ("yes", "true"),
        ("no", "false"),
        ("null", "null"),
        ("map", r#"{"inner":{"deep":[1,"two",{},[]]}}"#),
        ("emptyMap", "{}"),
        ("emptyList", "[]"),
        ("list", r#"[1,true,null,["x"],{"k":"v"}]"#),
        ("strings", r#"["b","a","\u00e4"]"#),
        ("numbers", "[3,1.5,-2]"),
        ("binaries", r#"["AQI=","Aw=="]"#),
        ("esc\"aped", r#""value""#),
        ("", r#""no name""#),
    ] {
        assert_eq!(
            new.get(name).map(|value| value.to_json()).as_deref(),
            Some(json),
            "{name}"
        );
    }
    let string = new.get("string").and_then(|value| value.as_str()).unwrap();
    assert_eq!(string, "a \"quoted\" \\ € 😀 é / / tab\t");
    serde_json::from_str::<serde_json::Value>(&new.to_json()).unwrap();
}

/// Sets of strings and of numbers may be written alike, and are not the same.
#[test]
fn a_set_of_another_type_is_another_value() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    let event = record(
        "\"OldImage\":{\"a\":{\"N\":\"1\"}}",
        "\"OldImage\":{\"a\":{\"SS\":[\"1\"]}}",
    );
    let event = event.replace("{\"N\":\"2\"}", "{\"NS\":[\"1\"]}");
    let event = format!("{{\"Records\":[{event}]}}");
    let record = batch
        .read(event.as_bytes())
        .unwrap()
        .get(0)
        .unwrap()
        .unwrap();
    let images = record.images(&mut tape).unwrap();
    let (old, new) = (images.old.unwrap(), images.new.unwrap());
    let diff = antumbra_shadow::diff(old, new, &antumbra_shadow::Model::default());
    let mut json = String::new();
    diff.write_json(&mut json, usize::MAX);
    assert_eq!(
        json,
        r#"{"added":{},"updated":{"/a/0":{"old":"1","new":1}},"removed":{}}"#
    );
}

#[test]
fn expired_means_removed_by_the_service() {
    let mut batch = StreamBatch::default();
    let read = |event: &str, batch: &mut StreamBatch| {
        batch
            .read(event.as_bytes())
            .unwrap()
            .get(0)
            .unwrap()
            .unwrap()
            .expired()
    };
    assert!(read(EXPIRED, &mut batch));
    for (part, instead) in [
        ("\"Service\"", "\"User\""),
        ("dynamodb.amazonaws.com", "root"),
        ("REMOVE", "MODIFY"),
        ("userIdentity", "otherIdentity"),
    ] {
        assert!(
            !read(&EXPIRED.replace(part, instead), &mut batch),
            "{instead}"
        );
    }
}

#[test]
fn images_may_be_missing() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    let records = batch.read(UNUSUAL.as_bytes()).unwrap();
    let missing: Vec<_> = records
        .iter()
        .map(|record| {
            let record = record.unwrap();
            record.images(&mut tape).unwrap();
            record.missing_image()
        })
        .collect();
    assert_eq!(missing, [Some(Side::Old), None, Some(Side::Old), None]);
}

/// A good record, with one thing in it replaced.
fn record(replaced: &str, by: &str) -> String {
    let good = r#"{"eventID":"e","eventName":"MODIFY","dynamodb":{"Keys":{"PK":{"S":"p"},"SK":{"S":"s"}},"SequenceNumber":"7","OldImage":{"a":{"N":"1"}},"NewImage":{"a":{"N":"2"}}}}"#;
    assert!(replaced.is_empty() || good.contains(replaced), "{replaced}");
    good.replacen(replaced, by, usize::from(!replaced.is_empty()))
}

#[test]
fn one_bad_record_does_not_spoil_the_others() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    for (replaced, by, reason) in [
        (r#""eventID":"e","#, "", "no eventID"),
        ("\"MODIFY\"", "\"TOUCH\"", "unknown eventName"),
        ("\"MODIFY\"", "null", "no eventName"),
        ("\"MODIFY\"", "7", "a string is expected"),
        ("\"dynamodb\"", "\"other\"", "no dynamodb"),
        ("\"Keys\"", "\"Locks\"", "no Keys"),
        (
            r#"{"S":"p"}"#,
            r#"{"M":{}}"#,
            "a key of type S, N or B is expected",
        ),
        (r#"{"S":"p"}"#, "{}", "a key of type S, N or B is expected"),
        (
            r#"{"S":"p"}"#,
            r#"{"S":"p"},"X":{"S":"x"}"#,
            "more than two key attributes",
        ),
        (
            r#"{"S":"p"}"#,
            r#"{"S":"p"},"P\u004b":{"S":"x"}"#,
            "a key attribute twice",
        ),
        ("\"SequenceNumber\":\"7\",", "", "no SequenceNumber"),
        (r#"{"N":"1"}"#, r#"{"N":1}"#, "a number is expected"),
        (r#"{"N":"1"}"#, r#"{"N":"one"}"#, "a value is expected"),
        (r#"{"N":"1"}"#, r#"{"N":"01"}"#, "a number is expected"),
        (r#"{"N":"1"}"#, r#"{"N":"1."}"#, "a digit is expected"),
        (r#"{"N":"1"}"#, r#"{"X":"1"}"#, "unknown attribute type"),
        (
            r#"{"N":"1"}"#,
            r#"{"N":"1","S":"x"}"#,
            "one type per attribute value is expected",
        ),
        (r#"{"N":"1"}"#, "{}", "a string is expected"),
        (r#"{"N":"1"}"#, "1", "an attribute value is expected"),
        (r#"{"N":"1"}"#, r#"{"BOOL":"true"}"#, "unknown word"),
        (r#"{"N":"1"}"#, r#"{"S":"\x"}"#, "bad escape sequence"),
        (
            r#"{"N":"1"}"#,
            r#"{"L":[{"N":"1"} {"N":"2"}]}"#,
            "a comma or the end is expected",
        ),
        (
            r#"{"a":{"N":"1"}}"#,
            r#"{"a" {"N":"1"}}"#,
            "a colon is expected",
        ),
    ] {
        let event = format!(
            "{{\"Records\":[{},{},{}]}}",
            record("", ""),
            record(replaced, by),
            record("", "")
        );
        let records = batch.read(event.as_bytes()).unwrap();
        let mut faults = Vec::new();
        for one in records.iter() {
            match one.and_then(|record| record.images(&mut tape).map(drop)) {
                Ok(()) => faults.push(None),
                Err(fault) => faults.push(Some((fault.index, fault.fault.reason))),
            }
        }
        assert_eq!(faults, [None, Some((1, reason)), None], "{by}");
    }
}

#[test]
fn a_bad_record_says_where_it_stands() {
    let mut batch = StreamBatch::default();
    let event = format!("{{\"Records\":[{}]}}", record("\"MODIFY\"", "\"TOUCH\""));
    let fault = batch
        .read(event.as_bytes())
        .unwrap()
        .get(0)
        .unwrap()
        .unwrap_err();
    assert_eq!((fault.index, fault.event_id.as_deref()), (0, Some("e")));
    let event = format!(
        "{{\"Records\":[{}]}}",
        record(r#"{"N":"1"}"#, r#"{"N":"?"}"#)
    );
    let record = batch
        .read(event.as_bytes())
        .unwrap()
        .get(0)
        .unwrap()
        .unwrap();
    let fault = record.images(&mut Tape::default()).unwrap_err();
    assert_eq!(fault.sequence_number.as_deref(), Some("7"));
    assert_eq!(&event[fault.fault.offset..][..1], "?");
}

#[test]
fn a_broken_event_fails_as_a_whole() {
    let mut batch = StreamBatch::default();
    for event in [
        "",
        "[]",
        "{",
        "{\"Records\":[}",
        "{\"Records\":[{]}",
        "{\"Records\":[{}]} x",
        "{\"Records\":{}}",
        "{\"Records\":[{},]}",
    ] {
        assert!(
            matches!(batch.read(event.as_bytes()), Err(EventError::Syntax(_))),
            "{event}"
        );
    }
    assert_eq!(batch.read(b"{}").unwrap_err(), EventError::NoRecords);
    assert_eq!(
        batch.read(b"{\"\xff\":1}").unwrap_err(),
        EventError::NotUtf8 { valid: 2 }
    );
    assert!(batch.read(b"{\"Records\":[]}").unwrap().is_empty());
    let many = format!("{{\"Records\":[{}{{}}]}}", "{},".repeat(limits::RECORDS));
    let limit = limits::RECORDS;
    assert_eq!(
        batch.read(many.as_bytes()).unwrap_err(),
        EventError::TooManyRecords { limit }
    );
    let long = vec![b' '; limits::EVENT_BYTES + 1];
    assert!(matches!(batch.read(&long), Err(EventError::TooLong { .. })));
}

/// Neither a deep image nor a deep field nobody knows takes the stack with it.
#[test]
fn depth_is_bounded() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    let mut image = |levels: usize| {
        let value = format!(
            "{}{{\"N\":\"1\"}}{}",
            "{\"L\":[".repeat(levels),
            "]}".repeat(levels)
        );
        let event = format!("{{\"Records\":[{}]}}", record(r#"{"N":"1"}"#, &value));
        let record = batch
            .read(event.as_bytes())
            .unwrap()
            .get(0)
            .unwrap()
            .unwrap();
        record
            .images(&mut tape)
            .map(drop)
            .map_err(|fault| fault.fault.reason)
    };
    assert_eq!(image(limits::IMAGE_DEPTH - 1), Ok(()));
    assert_eq!(image(limits::IMAGE_DEPTH), Err("nested too deeply"));
    assert_eq!(image(500_000), Err("nested too deeply"));
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let event = format!("{{\"Records\":[{}],\"x\":{deep}}}", record("", ""));
    assert_eq!(batch.read(event.as_bytes()).unwrap().len(), 1);
}
