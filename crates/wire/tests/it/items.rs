//! Items to changes: whose they are, and which documents changed.

use antumbra_registration::{DiffCell, Registrations, State};
use antumbra_shadow::Model;
use antumbra_wire::items::{ItemChange, ItemKey, KeyBuffer, ShadowItem};
use antumbra_wire::stream::{StreamBatch, Tape};

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

/// The documents that changed, as `state old new`.
fn documents(event: &str) -> Vec<String> {
    let (mut batch, mut tape, mut key) = (
        StreamBatch::default(),
        Tape::default(),
        KeyBuffer::default(),
    );
    let record = batch
        .read(event.as_bytes())
        .unwrap()
        .get(0)
        .unwrap()
        .unwrap();
    let item = ItemChange::new(record, key.read(record), record.images(&mut tape).unwrap());
    let show =
        |view: Option<antumbra_shadow::View<'_>>| view.map_or("-".to_owned(), |v| v.to_json());
    item.documents()
        .map(|document| {
            let state = document.state.map_or("item", State::as_str);
            format!("{state} {} {}", show(document.old), show(document.new))
        })
        .collect()
}

const SHADOW: &str = r#""PK":{"S":"DS#a#b"},"SK":{"S":"DSR#main"}"#;
const COMBINED: &str = r#""SK":{"S":"DSC#main"},"PK":{"S":"DS#a#b"}"#;

#[test]
fn keys_of_shadows() {
    for (partition, sort, expected) in [
        (
            "DS#lamp",
            "DSR#main",
            Some(("lamp", "main", ShadowItem::Reported)),
        ),
        (
            "DS#a#b#",
            "DSD#x#y",
            Some(("a#b#", "x#y", ShadowItem::Desired)),
        ),
        ("DS#é", "DSC#ü", Some(("é", "ü", ShadowItem::Combined))),
        ("DS#", "DSR#main", None),
        ("DS#lamp", "DSR#", None),
        ("DS#lamp", "DSX#main", None),
        ("DS#lamp", "DS", None),
        ("DS#lamp", "DSé#main", None),
        ("ds#lamp", "DSR#main", None),
    ] {
        let key = ItemKey::parse(partition, sort)
            .shadow()
            .map(|key| (key.id, key.name, key.item));
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
        let record = batch
            .read(event.as_bytes())
            .unwrap()
            .get(0)
            .unwrap()
            .unwrap();
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
    assert_eq!(
        documents(&event("MODIFY", SHADOW, Some(old), Some(new))),
        [r#"reported {"a":1} {"a":2}"#]
    );
    assert_eq!(
        documents(&event("INSERT", SHADOW, None, Some(new))),
        [r#"reported - {"a":2}"#]
    );
    assert_eq!(
        documents(&event("REMOVE", SHADOW, Some(old), None)),
        [r#"reported {"a":1} -"#]
    );
    let desired = r#""PK":{"S":"DS#a"},"SK":{"S":"DSD#main"}"#;
    let image = r#"{"desired":{"M":{"a":{"BOOL":true}}}}"#;
    assert_eq!(
        documents(&event("INSERT", desired, None, Some(image))),
        [r#"desired - {"a":true}"#]
    );
}

#[test]
fn a_combined_item_tells_which_half_changed() {
    let image = |reported: &str, desired: &str| {
        format!(r#"{{"reported":{{"M":{reported}}},"desired":{{"M":{desired}}}}}"#)
    };
    let (one, two) = (
        r#"{"a":{"N":"1"},"b":{"S":"x"}}"#,
        r#"{"a":{"N":"2"},"b":{"S":"x"}}"#,
    );
    let turned = r#"{"b":{"S":"x"},"a":{"N":"1"}}"#;
    let modify = |old: &str, new: &str| documents(&event("MODIFY", COMBINED, Some(old), Some(new)));
    let (one_json, two_json) = (r#"{"a":1,"b":"x"}"#, r#"{"a":2,"b":"x"}"#);
    assert_eq!(
        modify(&image(one, one), &image(two, one)),
        [format!("reported {one_json} {two_json}")]
    );
    assert_eq!(
        modify(&image(one, one), &image(one, two)),
        [format!("desired {one_json} {two_json}")]
    );
    assert_eq!(
        modify(&image(one, one), &image(two, two)),
        [
            format!("reported {one_json} {two_json}"),
            format!("desired {one_json} {two_json}")
        ],
    );
    assert_eq!(
        modify(&image(one, one), &image(turned, one)),
        Vec::<String>::new()
    );
    let insert = |new: &str| documents(&event("INSERT", COMBINED, None, Some(new)));
    assert_eq!(
        insert(&image(one, "{}")),
        [format!("reported - {one_json}")]
    );
    assert_eq!(insert(&image("{}", one)), [format!("desired - {one_json}")]);
    assert_eq!(insert(&image("{}", "{}")), ["reported - {}"]);
    let remove = documents(&event("REMOVE", COMBINED, Some(&image(one, one)), None));
    assert_eq!(
        remove,
        [
            format!("reported {one_json} -"),
            format!("desired {one_json} -")
        ]
    );
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
    let (mut batch, mut tape, mut key) = (
        StreamBatch::default(),
        Tape::default(),
        KeyBuffer::default(),
    );
    let old = r#"{"version":{"N":"4"},"timestamp":{"N":"1"},"clientToken":{"S":"old"},"tz":{"S":"Europe/Oslo"},"reported":{"M":{}}}"#;
    let new = r#"{"version":{"N":"5"},"timestamp":{"N":"1731700000123456789"},"clientToken":{"S":"n\u0065w"},"reported":{"M":{}}}"#;
    let model = Model::default();
    for (operation, old, new, expected) in [
        (
            "MODIFY",
            Some(old),
            Some(new),
            (
                Some(5),
                Some(4),
                Some("new"),
                Some(1_731_700_000_123_456_789),
            ),
        ),
        (
            "INSERT",
            None,
            Some(old),
            (Some(4), None, Some("old"), Some(1)),
        ),
        (
            "REMOVE",
            Some(old),
            None,
            (Some(4), Some(4), None, Some(1_731_700_000_000_000_000)),
        ),
    ] {
        let event = event(operation, SHADOW, old, new);
        let record = batch
            .read(event.as_bytes())
            .unwrap()
            .get(0)
            .unwrap()
            .unwrap();
        let item = ItemChange::new(record, key.read(record), record.images(&mut tape).unwrap());
        let document = item.documents().next().unwrap();
        let diff = DiffCell::new(document.old, document.new, &model);
        let change = item.change(document, &diff);
        let seen = (
            change.version,
            change.previous_version,
            change.client_token,
            change.timestamp,
        );
        assert_eq!(seen, expected, "{operation}");
        let shadow = change.shadow.unwrap();
        assert_eq!(
            (shadow.id, shadow.name, shadow.state),
            ("a#b", "main", State::Reported)
        );
    }
}

/// What a delete leaves holds the version for a while; to everybody else the document is gone.
#[test]
fn what_a_delete_leaves_is_no_document() {
    const LAMP: &str = r#"{"version":{"N":"3"},"reported":{"M":{"a":{"N":"1"}}}}"#;
    const NEXT: &str = r#"{"version":{"N":"4"},"reported":{"M":{"a":{"N":"2"}}}}"#;
    const LEFT: &str = r#"{"version":{"N":"3"},"deletedAt":{"N":"17"},"ttl":{"N":"18"}}"#;
    let changes = |operation: &str, old, new| {
        let event = event(operation, SHADOW, old, new);
        let (mut batch, mut tape, mut key) = Default::default();
        let batch: &mut StreamBatch = &mut batch;
        let (tape, key): (&mut Tape, &mut KeyBuffer) = (&mut tape, &mut key);
        let record = batch.read(event.as_bytes()).unwrap().get(0);
        let record = record.unwrap().unwrap();
        let item = ItemChange::new(record, key.read(record), record.images(tape).unwrap());
        let model = Model::default();
        let seen = item.documents().map(|document| {
            let cell = DiffCell::new(document.old, document.new, &model);
            let change = item.change(document, &cell);
            let versions = (change.previous_version, change.version);
            (change.operation.as_str(), versions)
        });
        (seen.collect::<Vec<_>>(), documents(&event))
    };
    assert_eq!(
        changes("MODIFY", Some(LAMP), Some(LEFT)),
        (
            vec![("remove", (Some(3), Some(3)))],
            vec![r#"reported {"a":1} -"#.to_owned()]
        )
    );
    assert_eq!(
        changes("MODIFY", Some(LEFT), Some(NEXT)),
        (
            vec![("insert", (None, Some(4)))],
            vec![r#"reported - {"a":2}"#.to_owned()]
        )
    );
    for (operation, old, new) in [
        ("REMOVE", Some(LEFT), None),
        ("INSERT", None, Some(LEFT)),
        ("MODIFY", Some(LEFT), Some(LEFT)),
    ] {
        assert_eq!(
            changes(operation, old, new),
            (vec![], vec![]),
            "{operation}"
        );
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
fn an_acknowledgement_is_told_from_a_withdrawal() {
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
