//! Stream events as AWS documents them, and what becomes of those that are not.

use antumbra_registration::Operation;
use antumbra_shadow::View;
use antumbra_testkit::table::cases;
use antumbra_wire::limits;
use antumbra_wire::stream::{
    EventError, ReadRecord, Record, RecordHandler, Side, StreamBatch, Tape, Undecodable, read_each,
};

use crate::oracle::{Outcome, compare};

pub(crate) fn only<'a>(batch: &'a mut StreamBatch, event: &'a str) -> Record<'a> {
    batch
        .read(event.as_bytes())
        .unwrap()
        .get(0)
        .unwrap()
        .unwrap()
}

const OPERATIONS: &str = include_str!("../../testdata/operations.json");
const EXPIRED: &str = include_str!("../../testdata/expired.json");
const ALL_TYPES: &str = include_str!("../../testdata/all-types.json");
const UNUSUAL: &str = include_str!("../../testdata/unusual.json");

#[test]
fn samples_are_read_as_the_oracle_reads_them() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    for (sample, expected) in [(OPERATIONS, 3), (EXPIRED, 1), (ALL_TYPES, 1), (UNUSUAL, 4)] {
        let outcome = compare(sample.as_bytes(), &mut batch, &mut tape);
        let (records, refused) = (expected, 0);
        assert_eq!(outcome, Ok(Outcome::Agreed { records, refused }));
    }
}

#[test]
fn operations_and_their_images() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    let records = batch.read(OPERATIONS.as_bytes()).unwrap();
    let expected = [
        (Operation::Insert, "1", 1_731_700_000.0, None, Some("1")),
        (
            Operation::Modify,
            "2",
            1_731_700_060.0,
            Some("1"),
            Some("2"),
        ),
        (Operation::Remove, "3", 1_731_700_120.0, Some("2"), None),
    ];
    assert_eq!(records.len(), expected.len());
    for (record, (operation, number, created, old, new)) in records.iter().zip(expected) {
        let record = record.unwrap();
        assert_eq!(record.key("PK").as_deref(), Some("DS#My House#Basement"));
        assert_eq!(record.key("SK").as_deref(), Some("DSR#main"));
        assert_eq!(record.missing_image(), None);
        assert!(!record.expired());
        assert_eq!(record.operation(), operation);
        let sequence = format!("10000000000000000000{number}");
        assert_eq!(record.sequence_number(), sequence);
        assert_eq!(record.created_seconds(), Some(created));
        let images = record.images(&mut tape).unwrap();
        let version =
            |image: Option<View<'_>>| Some(image?.get("version")?.as_number()?.to_owned());
        assert_eq!(version(images.old).as_deref(), old);
        assert_eq!(version(images.new).as_deref(), new);
    }
}

#[test]
fn every_type_becomes_plain_json() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    let record = only(&mut batch, ALL_TYPES);
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
        assert_eq!(new.get(name).unwrap().to_json(), json, "{name}");
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
    let record = only(&mut batch, &event);
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
    assert!(only(&mut batch, EXPIRED).expired());
    for (part, instead) in [
        ("\"Service\"", "\"User\""),
        ("dynamodb.amazonaws.com", "root"),
        ("REMOVE", "MODIFY"),
        ("userIdentity", "otherIdentity"),
    ] {
        let event = EXPIRED.replace(part, instead);
        assert!(!only(&mut batch, &event).expired(), "{instead}");
    }
}

#[test]
fn images_may_be_missing() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    let records = batch.read(UNUSUAL.as_bytes()).unwrap();
    let missing = records.iter().map(|record| {
        let record = record.unwrap();
        record.images(&mut tape).unwrap();
        record.missing_image()
    });
    assert_eq!(
        missing.collect::<Vec<_>>(),
        [Some(Side::Old), None, Some(Side::Old), None]
    );
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
    let good = record("", "");
    let table = include_str!("../../testdata/malformed-records.txt");
    for [replaced, by, reason] in cases(table) {
        let bad = record(&replaced, &by);
        let event = format!("{{\"Records\":[{good},{bad},{good}]}}");
        let records = batch.read(event.as_bytes()).unwrap();
        let mut faults = Vec::new();
        for one in records.iter() {
            match one.and_then(|record| record.images(&mut tape).map(drop)) {
                Ok(()) => faults.push(None),
                Err(fault) => faults.push(Some((fault.index, fault.fault.reason))),
            }
        }
        assert_eq!(faults, [None, Some((1, &*reason)), None], "{by}");
    }
}

#[test]
fn a_bad_record_says_where_it_stands() {
    let mut batch = StreamBatch::default();
    let event = format!("{{\"Records\":[{}]}}", record("\"MODIFY\"", "\"TOUCH\""));
    let fault = batch.read(event.as_bytes()).unwrap().get(0).unwrap();
    let fault = fault.unwrap_err();
    assert_eq!((fault.index, fault.event_id.as_deref()), (0, Some("e")));
    let event = format!(
        "{{\"Records\":[{}]}}",
        record(r#"{"N":"1"}"#, r#"{"N":"?"}"#)
    );
    let record = only(&mut batch, &event);
    let fault = record.images(&mut Tape::default()).unwrap_err();
    assert_eq!(fault.sequence_number.as_deref(), Some("7"));
    assert_eq!(&event[fault.fault.offset..][..1], "?");
}

/// Needs the images of one key. Notes the key of each question, and of each record whether its images are needed.
struct Asked {
    needed: &'static str,
    questions: String,
    answers: Vec<bool>,
}

impl RecordHandler for Asked {
    fn restart(&mut self) {
        self.answers.clear();
    }

    fn needs_images(&mut self, record: Record<'_>) -> bool {
        let key = record.key("PK").unwrap();
        self.questions.push_str(&key);
        key == self.needed
    }

    fn record(&mut self, record: Result<ReadRecord<'_>, Undecodable>) {
        self.answers.push(record.unwrap().needs_images());
    }
}

/// Also where images stand before the keys, or there are several keys or lists of records.
#[test]
fn the_answer_for_the_last_keys_of_a_record_counts() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    let keys = r#""Keys":{"PK":{"S":"p"},"SK":{"S":"s"}},"#;
    let images = r#""OldImage":{"a":{"N":"1"}},"NewImage":{"a":{"N":"2"}}"#;
    let images_first = format!("{images},{}", keys.trim_end_matches(','));
    let good = record("", "");
    let keys_last = record(keys, "").replace(images, &images_first);
    let keys_twice = record(
        images,
        &format!("{images},{}\"x\":1", keys.replace('p', "q")),
    );
    let broken = record(r#"{"N":"1"}"#, r#"{"N":1}"#);
    for (records, needed, questions, answers) in [
        (vec![&good], "p", "p", vec![true]),
        (vec![&good], "q", "p", vec![false]),
        (vec![&keys_last, &good], "p", "pp", vec![true, true]),
        (vec![&keys_twice], "p", "pq", vec![false]),
        (vec![&keys_twice], "q", "pq", vec![true]),
        (vec![&broken, &good], "p", "pp", vec![true, true]),
    ] {
        let records: Vec<&str> = records.into_iter().map(String::as_str).collect();
        let before = format!("{{\"Records\":[{good},{broken}],\"Records\":[");
        let event = format!("{before}{}]}}", records.join(","));
        let mut asked = Asked {
            needed,
            questions: String::new(),
            answers: Vec::new(),
        };
        read_each(event.as_bytes(), &mut tape, &mut asked).unwrap();
        assert_eq!(asked.questions, format!("pp{questions}"), "{event}");
        assert_eq!(asked.answers, answers, "{event}");
        compare(event.as_bytes(), &mut batch, &mut tape).unwrap();
    }
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
        let record = only(&mut batch, &event);
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
