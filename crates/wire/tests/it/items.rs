//! Changes of items: the kind of the item, and the documents that changed.

use antumbra_registration::{DiffCell, Registrations, State};
use antumbra_shadow::{Model, View};
use antumbra_wire::items::{ItemChange, ItemKey, KeyBuffer, ShadowItem};
use antumbra_wire::stream::{StreamBatch, Tape};

use crate::stream::only;

fn event(operation: &str, keys: &str, old: Option<&str>, new: Option<&str>) -> String {
    let image = |name: &str, image: Option<&str>| {
        image
            .map(|image| format!("\"{name}\":{image},"))
            .unwrap_or_default()
    };
    format!(
        "{{\"Records\":[{{\"eventID\":\"e\",\"eventName\":\"{operation}\",\"dynamodb\":{{\
         \"ApproximateCreationDateTime\":1731700000,\"Keys\":{{{keys}}},{}{}\"SequenceNumber\":\"1\"}}}}]}}",
        image("OldImage", old),
        image("NewImage", new),
    )
}

/// Calls with the change of the only record of an event.
fn with_item<T>(event: &str, then: impl FnOnce(&ItemChange<'_>) -> T) -> T {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    let mut key = KeyBuffer::default();
    let record = only(&mut batch, event);
    let images = record.images(&mut tape).unwrap();
    then(&ItemChange::new(record, key.read(record), images))
}

/// The documents that changed, as `state old new`.
fn documents(event: &str) -> Vec<String> {
    let show = |view: Option<View<'_>>| view.map_or("-".to_owned(), |v| v.to_json());
    with_item(event, |item| {
        let shown = item.documents().map(|document| {
            let state = document.state.map_or("item", State::as_str);
            format!("{state} {} {}", show(document.old), show(document.new))
        });
        shown.collect()
    })
}

const SHADOW: &str = r#""PK":{"S":"DS#a#b"},"SK":{"S":"DSR#main"}"#;
const COMBINED: &str = r#""SK":{"S":"DSC#main"},"PK":{"S":"DS#a#b"}"#;

#[test]
fn keys_of_shadows() {
    use ShadowItem::{Combined, Desired, Reported};
    for (partition, sort, expected) in [
        ("DS#lamp", "DSR#main", Some(("lamp", "main", Reported))),
        ("DS#a#b#", "DSD#x#y", Some(("a#b#", "x#y", Desired))),
        ("DS#é", "DSC#ü", Some(("é", "ü", Combined))),
        ("DS#", "DSR#main", None),
        ("DS#lamp", "DSR#", None),
        ("DS#lamp", "DSX#main", None),
        ("DS#lamp", "DS", None),
        ("DS#lamp", "DSé#main", None),
        ("ds#lamp", "DSR#main", None),
    ] {
        let key = ItemKey::parse(partition, sort).shadow();
        let key = key.map(|key| (key.id, key.name, key.item));
        assert_eq!(key, expected, "{partition} {sort}");
    }
}

#[test]
fn keys_of_items() {
    let mut batch = StreamBatch::default();
    let mut buffer = KeyBuffer::default();
    for (keys, text, shadow) in [
        (SHADOW, "DS#a#b#DSR#main", true),
        (COMBINED, "DS#a#b#DSC#main", true),
        (
            r#""PK":{"S":"DS#\u00e9\""},"SK":{"S":"DSR#\\"}"#,
            "DS#é\"#DSR#\\",
            true,
        ),
        (r#""messageId":{"S":"m"},"uuid":{"S":"u"}"#, "u#m", false),
        (r#""b":{"N":"2"},"a":{"B":"AQ=="}"#, "AQ==#2", false),
        (r#""only":{"S":"one"}"#, "one", false),
        (
            r#""PK":{"S":"DS#a"},"other":{"S":"DSR#main"}"#,
            "DS#a#DSR#main",
            false,
        ),
    ] {
        let event = event("REMOVE", keys, None, None);
        let record = only(&mut batch, &event);
        let key = buffer.read(record);
        assert_eq!(
            (key.text, key.item.shadow().is_some()),
            (text, shadow),
            "{keys}"
        );
    }
}

#[test]
fn a_separate_item_is_one_document() {
    let old = r#"{"version":{"N":"4"},"reported":{"M":{"a":{"N":"1"}}}}"#;
    let new = r#"{"version":{"N":"5"},"reported":{"M":{"a":{"N":"2"}}}}"#;
    let desired = r#""PK":{"S":"DS#a"},"SK":{"S":"DSD#main"}"#;
    let image = r#"{"desired":{"M":{"a":{"BOOL":true}}}}"#;
    for (operation, keys, old, new, expected) in [
        (
            "MODIFY",
            SHADOW,
            Some(old),
            Some(new),
            r#"reported {"a":1} {"a":2}"#,
        ),
        ("INSERT", SHADOW, None, Some(new), r#"reported - {"a":2}"#),
        ("REMOVE", SHADOW, Some(old), None, r#"reported {"a":1} -"#),
        (
            "INSERT",
            desired,
            None,
            Some(image),
            r#"desired - {"a":true}"#,
        ),
    ] {
        assert_eq!(documents(&event(operation, keys, old, new)), [expected]);
    }
}

#[test]
fn a_change_of_a_combined_item_names_the_document() {
    let image = |reported: &str, desired: &str| {
        format!(r#"{{"reported":{{"M":{reported}}},"desired":{{"M":{desired}}}}}"#)
    };
    let (one, two) = (
        r#"{"a":{"N":"1"},"b":{"S":"x"}}"#,
        r#"{"a":{"N":"2"},"b":{"S":"x"}}"#,
    );
    let shuffled = r#"{"b":{"S":"x"},"a":{"N":"1"}}"#;
    let modify = |old: &str, new: &str| documents(&event("MODIFY", COMBINED, Some(old), Some(new)));
    let insert = |new: &str| documents(&event("INSERT", COMBINED, None, Some(new)));
    let remove = documents(&event("REMOVE", COMBINED, Some(&image(one, one)), None));
    for (changed, expected) in [
        (
            modify(&image(one, one), &image(two, one)),
            "reported ONE TWO",
        ),
        (
            modify(&image(one, one), &image(one, two)),
            "desired ONE TWO",
        ),
        (
            modify(&image(one, one), &image(two, two)),
            "reported ONE TWO, desired ONE TWO",
        ),
        (modify(&image(one, one), &image(shuffled, one)), ""),
        (insert(&image(one, "{}")), "reported - ONE"),
        (insert(&image("{}", one)), "desired - ONE"),
        (insert(&image("{}", "{}")), "reported - {}"),
        (remove, "reported ONE -, desired ONE -"),
    ] {
        let expected = expected.replace("ONE", r#"{"a":1,"b":"x"}"#);
        let expected = expected.replace("TWO", r#"{"a":2,"b":"x"}"#);
        assert_eq!(changed.join(", "), expected);
    }
}

#[test]
fn other_items_are_taken_whole() {
    let keys = r#""PK":{"S":"SENSOR#1"},"SK":{"S":"STATE"}"#;
    let image = r#"{"version":{"N":"4"},"reported":{"S":"x"}}"#;
    assert_eq!(
        documents(&event("INSERT", keys, None, Some(image))),
        [r#"item - {"version":4,"reported":"x"}"#]
    );
}

#[test]
fn the_change_carries_the_items_attributes() {
    let old = r#"{"version":{"N":"4"},"timestamp":{"N":"1"},"clientToken":{"S":"old"},"tz":{"S":"Europe/Oslo"},"reported":{"M":{}}}"#;
    let new = r#"{"version":{"N":"5"},"timestamp":{"N":"1731700000123456789"},"clientToken":{"S":"n\u0065w"},"reported":{"M":{"a":{"N":"1"}}}}"#;
    let model = Model::default();
    let modified = (
        Some(5),
        Some(4),
        Some("new"),
        Some(1_731_700_000_123_456_789),
    );
    let removed = (Some(4), Some(4), None, Some(1_731_700_000_000_000_000));
    for (operation, old, new, expected) in [
        ("MODIFY", Some(old), Some(new), modified),
        (
            "INSERT",
            None,
            Some(old),
            (Some(4), None, Some("old"), Some(1)),
        ),
        ("REMOVE", Some(old), None, removed),
    ] {
        with_item(&event(operation, SHADOW, old, new), |item| {
            let document = item.documents().next().unwrap();
            let diff = DiffCell::new(document.old, document.new, &model);
            let change = item.change(document, &diff);
            let versions = (change.version, change.previous_version);
            let seen = (
                versions.0,
                versions.1,
                change.client_token,
                change.timestamp,
            );
            assert_eq!(seen, expected, "{operation}");
            let shadow = change.shadow.unwrap();
            assert_eq!((shadow.id, shadow.name), ("a#b", "main"));
            assert_eq!(shadow.state, State::Reported);
        });
    }
}

/// A deleted item keeps its version for a while; to everybody else the document is gone.
#[test]
fn a_deleted_item_is_no_document() {
    const LAMP: &str = r#"{"version":{"N":"3"},"reported":{"M":{"a":{"N":"1"}}}}"#;
    const NEXT: &str = r#"{"version":{"N":"4"},"reported":{"M":{"a":{"N":"2"}}}}"#;
    const LEFT: &str = r#"{"version":{"N":"3"},"deletedAt":{"N":"17"},"ttl":{"N":"18"}}"#;
    let changes = |operation: &str, old, new| {
        let event = event(operation, SHADOW, old, new);
        let model = Model::default();
        let seen = with_item(&event, |item| {
            let seen = item.documents().map(|document| {
                let cell = DiffCell::new(document.old, document.new, &model);
                let change = item.change(document, &cell);
                let versions = (change.previous_version, change.version);
                (change.operation.as_str(), versions)
            });
            seen.collect::<Vec<_>>()
        });
        (seen, documents(&event))
    };
    let removed = vec![("remove", (Some(3), Some(3)))];
    let text = vec![r#"reported {"a":1} -"#.to_owned()];
    assert_eq!(changes("MODIFY", Some(LAMP), Some(LEFT)), (removed, text));
    let created = vec![("insert", (None, Some(4)))];
    let text = vec![r#"reported - {"a":2}"#.to_owned()];
    assert_eq!(changes("MODIFY", Some(LEFT), Some(NEXT)), (created, text));
    for (operation, old, new) in [
        ("REMOVE", Some(LEFT), None),
        ("INSERT", None, Some(LEFT)),
        ("MODIFY", Some(LEFT), Some(LEFT)),
    ] {
        let none = (vec![], vec![]);
        assert_eq!(changes(operation, old, new), none, "{operation}");
    }
}

/// The acknowledged leaves of a desired document, by the record that the writer left in the item.
fn acknowledged(event: &str) -> Vec<String> {
    let text = r#"{"name":"r","on":{"leaf":{"path":"/**","change":["acknowledged"]}},"to":{"clients":{}}}"#;
    let registrations = Registrations::load([("r.json", text)], &|_| None).unwrap();
    let (_, registration) = registrations.iter().next().unwrap();
    let mut batch = StreamBatch::default();
    let (mut tape, mut key, model) = (Tape::default(), KeyBuffer::default(), Model::default());
    let records = batch.read(event.as_bytes()).unwrap();
    let record = records.get(0).unwrap().unwrap();
    let item = ItemChange::new(record, key.read(record), record.images(&mut tape).unwrap());
    let mut found = Vec::new();
    for document in item.documents() {
        let cell = DiffCell::new(document.old, document.new, &model);
        registration.each_matched_leaf(&item.change(document, &cell), &mut |leaf| {
            found.push(leaf.pointer.to_string());
        });
    }
    found.sort();
    found
}

#[test]
fn acknowledged_and_withdrawn_values_differ() {
    const DESIRED: &str = r#""PK":{"S":"DS#a"},"SK":{"S":"DSD#main"}"#;
    // Not in the order of names, as in a stream.
    let old =
        r#""desired":{"M":{"c":{"N":"3"},"b":{"M":{"y":{"N":"2"},"x":{"N":"1"}}},"a":{"N":"1"}}}"#;
    let empty = r#""desired":{"M":{}}"#;
    let image = |version: u32, document: &str, record: &str| {
        let record = match record {
            "" => String::new(),
            text => format!(r#","acknowledged":{{"S":"{text}"}}"#),
        };
        format!(r#"{{"version":{{"N":"{version}"}},"reported":{{"M":{{}}}},{document}{record}}}"#)
    };
    for keys in [DESIRED, COMBINED] {
        let modified = |before: &str, version: u32, after: &str| {
            let (before, after) = (image(4, old, before), image(version, empty, after));
            acknowledged(&event("MODIFY", keys, Some(&before), Some(&after)))
        };
        assert_eq!(modified("", 5, "5"), ["/a", "/b/x", "/b/y", "/c"]);
        assert_eq!(modified("", 5, "5:1+1,2+2"), ["/a", "/b/y", "/c"]);
        // No record, the record of the write before, or one that cannot be read.
        for left in ["", "4", "5:", "5:x"] {
            assert_eq!(modified("4", 5, left), [""; 0], "{left}");
        }
        // A program that does not count versions left the record of the last write.
        assert_eq!(modified("4", 4, "4"), [""; 0]);
        // A delete removes everything, and acknowledges nothing.
        let (before, after) = (
            image(4, old, "4"),
            r#"{"version":{"N":"4"},"deletedAt":{"N":"9"},"acknowledged":{"S":"4"}}"#,
        );
        let deleted = event("MODIFY", keys, Some(&before), Some(after));
        assert_eq!(acknowledged(&deleted), [""; 0]);
    }
}

#[test]
fn an_item_written_without_a_change_of_its_document_is_not_a_change() {
    let item = |version: u32| {
        format!(r#"{{"version":{{"N":"{version}"}},"reported":{{"M":{{"a":{{"N":"1"}}}}}}}}"#)
    };
    let (first, second) = (item(1), item(2));
    let changed = |operation: &str, old: Option<&str>| {
        documents(&event(operation, SHADOW, old, Some(&second)))
    };
    assert!(changed("MODIFY", Some(&first)).is_empty());
    assert_eq!(changed("INSERT", None), [r#"reported - {"a":1}"#]);
}
