//! The message, byte for byte, and against its schema.

use antumbra_registration::{
    Change, DiffCell, KeyAttributes, Operation, Parts, Registrations, ShadowRef, State,
};
use antumbra_shadow::{Document, Model};
use antumbra_wire::items::{ItemChange, KeyBuffer};
use antumbra_wire::notification::{self, NotificationId, SCHEMA, TooLarge};
use antumbra_wire::stream::{StreamBatch, Tape};

use crate::generate::{self, Style};
use crate::stream::only;

const ALL: Parts = Parts {
    old: true,
    new: true,
    diff: true,
};

fn id() -> NotificationId {
    NotificationId::new(
        "c4ca4238a0b923820dcc509a6f75849b",
        "basement-lights",
        Some(State::Reported),
    )
}

fn with_change(check: impl Fn(&Change<'_>)) {
    let old = Document::parse(r#"{"fan":1,"led":"off"}"#).unwrap();
    let new = Document::parse(r#"{"door":"\"open\"","led":"on"}"#).unwrap();
    let model = Model::default();
    let diff = DiffCell::new(Some(old.view()), Some(new.view()), &model);
    check(&Change {
        key: "DS#My \"House\"#DSR#main",
        key_attributes: KeyAttributes {
            partition: Some(("PK", "DS#My \"House\"")),
            sort: Some(("SK", "DSR#main")),
        },
        shadow: Some(ShadowRef {
            id: "My \"House\"",
            name: "main",
            state: State::Reported,
        }),
        operation: Operation::Modify,
        expired: false,
        version: Some(5),
        previous_version: Some(4),
        client_token: Some("t-1"),
        timestamp: Some(1_731_700_000_000_000_000),
        old: Some(old.view()),
        new: Some(new.view()),
        diff: &diff,
        acknowledged: None,
    });
}

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap()
}

fn assert_valid(validator: &jsonschema::Validator, text: &str) {
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    if let Err(fault) = validator.validate(&value) {
        panic!("{fault} at {}\n{text}", fault.instance_path());
    }
}

#[test]
fn the_message_of_the_specification() {
    with_change(|change| {
        let mut out = String::from("what was there before");
        notification::write(&mut out, id(), "basement-lights", change, ALL, 10_000).unwrap();
        let expected = concat!(
            r##"{"id":"ID","registration":"basement-lights","key":"DS#My \"House\"#DSR#main","##,
            r#""shadow":{"id":"My \"House\"","name":"main","state":"reported"},"operation":"modify","#,
            r#""version":5,"previousVersion":4,"timestamp":1731700000000000000,"clientToken":"t-1","#,
            r#""old":{"fan":1,"led":"off"},"new":{"door":"\"open\"","led":"on"},"#,
            r#""diff":{"added":{"/door":"\"open\""},"updated":{"/led":{"old":"off","new":"on"}},"removed":{"/fan":1}}}"#,
        );
        assert_eq!(out, expected.replace("ID", &id().to_string()));
        assert_valid(&validator(), &out);
    });
}

#[test]
fn only_what_was_asked_for() {
    with_change(|change| {
        let mut out = String::new();
        for bits in 0..8_u8 {
            let parts = Parts {
                old: bits & 1 > 0,
                new: bits & 2 > 0,
                diff: bits & 4 > 0,
            };
            notification::write(&mut out, id(), "r", change, parts, 10_000).unwrap();
            let value: serde_json::Value = serde_json::from_str(&out).unwrap();
            let has = |name: &str| value.get(name).is_some();
            assert_eq!(
                (has("old"), has("new"), has("diff")),
                (parts.old, parts.new, parts.diff)
            );
            assert!(!has("truncated"));
            assert_valid(&validator(), &out);
        }
        let gone = Change {
            old: None,
            shadow: None,
            expired: true,
            ..*change
        };
        notification::write(&mut out, id(), "r", &gone, ALL, 10_000).unwrap();
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert!(value.get("old").is_none() && value.get("shadow").is_none());
        assert_eq!(value["expired"], true);
        assert_valid(&validator(), &out);
    });
}

#[test]
fn what_does_not_fit_is_left_out_in_order() {
    with_change(|change| {
        let mut out = String::new();
        let validator = validator();
        let mut seen = Vec::new();
        let mut length = |parts, limit| {
            let result = notification::write(&mut out, id(), "r", change, parts, limit);
            let value: serde_json::Value = serde_json::from_str(&out).unwrap();
            if result.is_ok() {
                assert!(out.len() <= limit);
                assert_valid(&validator, &out);
            }
            let (truncated, has_new) = (&value["truncated"], value.get("new").is_some());
            seen.push(format!("{} {truncated} {has_new}", result.is_ok()));
            (out.len(), result)
        };
        let (whole, _) = length(ALL, usize::MAX);
        length(ALL, whole).1.unwrap();
        let (without_old, _) = length(ALL, whole - 1);
        let (without_both, _) = length(ALL, without_old - 1);
        let (bytes, _) = length(ALL, without_both - 1);
        let (_, result) = length(ALL, bytes - 1);
        let limit = bytes - 1;
        assert_eq!(result, Err(TooLarge { bytes, limit }));
        let new_only = Parts { old: false, ..ALL };
        let (whole, _) = length(new_only, usize::MAX);
        length(new_only, whole - 1).1.unwrap();
        let expected = [
            "true null true",
            "true null true",
            r#"true ["old"] true"#,
            r#"true ["old","new"] false"#,
            r#"true ["old","new","diff"] false"#,
            r#"false ["old","new","diff"] false"#,
            "true null true",
            r#"true ["new"] false"#,
        ];
        assert_eq!(seen, expected);
    });
}

#[test]
fn ids_are_stable_and_apart() {
    let of = |event, registration| NotificationId::new(event, registration, Some(State::Reported));
    let one = of("event", "registration");
    assert_eq!(one, of("event", "registration"));
    for other in [
        NotificationId::new("event", "registration", Some(State::Desired)),
        NotificationId::new("event", "registration", None),
        of("event", "registratio"),
        of("eventr", "egistration"),
        of("", "eventregistration"),
    ] {
        assert_ne!(other, one);
    }
    let mut written = String::new();
    one.write(&mut written);
    assert_eq!(written, one.to_string());
}

/// Whatever the images hold, the message is JSON and follows the schema.
#[test]
fn messages_of_random_changes_follow_the_schema() {
    let validator = validator();
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    let mut key = KeyBuffer::default();
    let model = Model::default();
    let mut out = String::new();
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut document = || generate::Value::M(generate::item(&mut random));
        let image = |document| vec![("reported".to_owned(), document)];
        let changes = vec![(Some(image(document())), Some(image(document())))];
        let style = Style {
            spaces: false,
            escapes: seed % 2 == 0,
        };
        let event = generate::event(&changes, style, &mut random);
        let record = only(&mut batch, &event);
        let item = ItemChange::new(record, key.read(record), record.images(&mut tape).unwrap());
        // Two random documents may be equal, which is not a change.
        let Some(document) = item.documents().next() else {
            continue;
        };
        let diff = DiffCell::new(document.old, document.new, &model);
        let change = item.change(document, &diff);
        notification::write(&mut out, id(), "r", &change, ALL, usize::MAX).unwrap();
        assert_valid(&validator, &out);
    }
}

#[test]
fn a_message_may_be_the_key_alone() {
    let load = |form: &str| {
        let text = format!(r#"{{"name":"r",{form}"to":{{"sqs":{{"queue":"q"}}}}}}"#);
        Registrations::load([("r.json", text)], &|_| None).unwrap()
    };
    let (plain, key) = (load(""), load(r#""as":"key","#));
    let [plain, key] = [&plain, &key].map(|all| all.iter().next().unwrap().1.clone());
    with_change(|change| {
        let change = &Change {
            key_attributes: KeyAttributes {
                partition: Some(("uuid", "test \"Thing\"")),
                sort: Some(("messageId", "1564669331-1564669332364-7d7efcff")),
            },
            ..*change
        };
        let mut out = String::from("what was there before");
        notification::write_message(&mut out, id(), &key, change, 1000).unwrap();
        assert_eq!(
            out,
            r#"{"uuid":"test \"Thing\"","messageId":"1564669331-1564669332364-7d7efcff"}"#
        );
        let bytes = out.len();
        let short = notification::write_message(&mut out, id(), &key, change, 10);
        assert_eq!(short, Err(TooLarge { bytes, limit: 10 }));

        notification::write_message(&mut out, id(), &plain, change, 1000).unwrap();
        let mut same = String::new();
        notification::write(&mut same, id(), "r", change, plain.send, 1000).unwrap();
        assert_eq!(out, same);
    });
}

/// A notification of a registration with a leaf condition lists the leaves that matched, and leaves them out last.
#[test]
fn matched_leaves_are_listed() {
    let text = r#"{"name":"r","on":{"leaf":{"path":"/*d*","change":["added","updated"]}},"send":["new","diff"],"to":{"clients":{}}}"#;
    let registrations = Registrations::load([("r.json", text)], &|_| None).unwrap();
    let (_, registration) = registrations.iter().next().unwrap();
    with_change(|change| {
        let mut out = String::new();
        let mut write = |limit| {
            let result = notification::write_message(&mut out, id(), registration, change, limit);
            result.map(|()| {
                assert!(out.len() <= limit);
                assert_valid(&validator(), &out);
                (
                    out.len(),
                    serde_json::from_str::<serde_json::Value>(&out).unwrap(),
                )
            })
        };
        let (bytes, whole) = write(10_000).unwrap();
        let expected = serde_json::json!([
            { "path": "/door", "change": "added", "new": "\"open\"" },
            { "path": "/led", "change": "updated", "old": "off", "new": "on" },
        ]);
        assert_eq!(whole["matched"], expected);
        assert_eq!(write(bytes).unwrap().1, whole);
        let (mut limit, mut truncated) = (bytes, Vec::new());
        while let Ok((bytes, value)) = write(limit - 1) {
            truncated.push(value["truncated"].to_string());
            assert_eq!(value.get("matched").is_none(), truncated.len() == 3);
            limit = bytes;
        }
        let expected = [
            r#"["new"]"#,
            r#"["new","diff"]"#,
            r#"["new","diff","matched"]"#,
        ];
        assert_eq!(truncated, expected);
    });
}
