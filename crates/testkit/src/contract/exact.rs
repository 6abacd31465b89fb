//! Laws about exactness and limits: a document within the limits is read exactly as it was written; any other document
//! is rejected before anything is written.

use antumbra_service::shadows::adapter::{ITEM_BYTES, item_bytes};
use antumbra_service::shadows::id::{ID_BYTES, NAME_BYTES};
use antumbra_service::shadows::{
    ClientToken, DocumentSet, Layout, NewDocument, ShadowStore, State, StoreError, Write, Zone,
};
use antumbra_service::store::ErrorClass;
use antumbra_shadow::Document;

use crate::sample::{document, named, new, numbers, read_one, shadow, whole, write, write_one};

/// Writes a document as reported and desired, and checks that both are read unchanged.
async fn check_round_trip<P: ShadowStore>(store: &P, id: &str, original: &Document) {
    let shadow = shadow(id);
    let both = Write {
        reported: new(original.clone(), 0),
        desired: new(original.clone(), 0),
        ..write(&shadow)
    };
    write_one(store, both).await.unwrap();
    let found = read_one(store, &shadow, DocumentSet::Both).await.unwrap();
    assert_eq!(found.reported.unwrap().document, *original);
    assert_eq!(found.desired.unwrap().document, *original);
}

pub async fn documents_round_trip_exactly<P: ShadowStore>(store: P) {
    let documents = [
        "{}",
        r#"{"a":null,"b":true,"c":false,"d":0,"e":"","f":[],"g":{}}"#,
        r#"{"a":[[],[[]],{},[{}],null,[null]]}"#,
        r#"{"n":[0.1,-0.1,1.5,-1e-7,123456789.123456789,9007199254740993,-1]}"#,
        r#"{"n":[1e20,100,1e-20,0.00000012345,12345678901234567890]}"#,
        r##"{"s":"å\u0000\u0001\n\"\\/\u2028😀","å/~\"\\\n":1," ":2,".":3,"#":4,"$":5}"##,
        r#"{"PK":"x","SK":"y","version":7,"timestamp":"never","reported":{"desired":{}}}"#,
        r#"{"S":"x","N":"1","M":{"S":{"N":"x"}},"L":[{"BOOL":true}],"NULL":true}"#,
        r#"{"t":{"value":21.5,"unit":"C","timestamp":"2026-01-31T12:00:00.123456789+01:00"}}"#,
    ];
    for (number, json) in documents.into_iter().enumerate() {
        check_round_trip(&store, &format!("lamp-{number}"), &document(json)).await;
    }
}

pub async fn a_document_at_every_limit_is_stored<P: ShadowStore>(store: P) {
    let objects = |levels: usize, leaf: &str| {
        let (open, close) = ("{\"a\":".repeat(levels), "}".repeat(levels));
        format!("{open}{leaf}{close}")
    };
    let arrays = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!("{{\"a\":{open}{close}}}")
    };
    // 31 nested objects and arrays, the root included; the innermost may contain plain values.
    let deepest = [objects(31, "1"), objects(30, "{}"), arrays(30)];
    for (number, json) in deepest.iter().enumerate() {
        check_round_trip(&store, &format!("deep-{number}"), &document(json)).await;
    }
    for json in [objects(31, "{}"), arrays(31)] {
        let Ok(beyond) = Document::parse(&json) else {
            continue;
        };
        let lamp = shadow("beyond");
        let rejected = Write {
            reported: new(beyond, 0),
            ..whole(&lamp, 1, 0)
        };
        let rejected = write_one(&store, rejected).await.unwrap_err();
        assert_eq!(
            rejected.to_string(),
            "invalid: objects and arrays are nested 32 levels deep, the limit is 31"
        );
        assert_eq!(numbers(&store, &lamp).await, (None, None));
    }
    let nines = "9".repeat(38);
    let extremes = [
        nines.clone(),
        format!("-{nines}"),
        "1e125".to_owned(),
        "-1e125".to_owned(),
        format!("{nines}e88"),
        "1e-130".to_owned(),
        "-1e-130".to_owned(),
        format!("0.{nines}"),
        format!("1.{}", "3".repeat(37)),
    ];
    let json = format!("{{\"n\":[{}]}}", extremes.join(","));
    check_round_trip(&store, "numbers", &document(&json)).await;
}

pub async fn an_item_of_the_maximum_size_fits<P: ShadowStore>(store: P) {
    let lamp = named("My House#Basement", "boiler");
    let states: &[State] = match store.layout() {
        Layout::Separate => &[State::Reported],
        Layout::Combined => &[State::Reported, State::Desired],
    };
    let padded = |expected: i64, padding: usize| Write {
        reported: new(
            document(&format!(
                r#"{{"list":[1,-2.5,true,null,"å"],"map":{{"on":false,"none":{{}}}},"pad":"{}"}}"#,
                "x".repeat(padding)
            )),
            expected,
        )
        .map(|new| NewDocument {
            zone: Some(Zone::new("Europe/Stockholm").unwrap()),
            ..new
        }),
        client_token: Some(ClientToken::new("token").unwrap()),
        ..whole(&lamp, 1, expected)
    };
    for expected in [0, 1] {
        let largest_padding = ITEM_BYTES - item_bytes(&padded(expected, 0), states);
        let beyond = padded(expected, largest_padding + 1);
        assert_eq!(
            write_one(&store, beyond).await,
            Err(StoreError::TooLarge {
                bytes: ITEM_BYTES + 1,
                limit: ITEM_BYTES
            })
        );
        let (reported, _) = numbers(&store, &lamp).await;
        assert_eq!(reported.map_or(0, |(_, version)| version), expected);

        let largest = padded(expected, largest_padding);
        write_one(&store, largest.clone()).await.unwrap();
        let found = read_one(&store, &lamp, DocumentSet::Reported)
            .await
            .unwrap();
        let stored = found.reported.unwrap().document;
        assert_eq!(Some(stored), largest.reported.map(|new| new.document));
    }
    // A desired document that is too large prevents the write of the reported one too.
    let pad = format!(r#"{{"pad":"{}"}}"#, "x".repeat(ITEM_BYTES));
    let beyond = Write {
        desired: new(document(&pad), 2),
        ..whole(&lamp, 1, 2)
    };
    let rejected = write_one(&store, beyond).await.unwrap_err();
    assert_eq!(rejected.class(), ErrorClass::TooLarge);
    assert_eq!(numbers(&store, &lamp).await.0.unwrap().1, 2);
}

pub async fn keys_of_maximum_length_are_stored<P: ShadowStore>(store: P) {
    let long = named(&"d".repeat(ID_BYTES), &"n".repeat(NAME_BYTES));
    write_one(&store, whole(&long, 1, 0)).await.unwrap();
    assert!(numbers(&store, &long).await.0.is_some());
}

pub async fn similar_names_are_distinct<P: ShadowStore>(store: P) {
    let names = [
        ("a", "bc"),
        ("ab", "c"),
        ("a#b", "c"),
        ("a", "b#c"),
        ("a#DSR#b", "c"),
        ("a", "DSR#c"),
        ("A", "bc"),
        ("a ", "bc"),
        ("å", "bc"),
        ("a\u{30a}", "bc"),
        ("DS#a", "bc"),
        ("My House#Basement#Lightning Controller", "main"),
    ];
    for (n, (id, name)) in names.iter().enumerate() {
        let written = write_one(&store, whole(&named(id, name), n as i64, 0)).await;
        assert!(written.is_ok(), "{id} {name}: {written:?}");
    }
    for (n, (id, name)) in names.iter().enumerate() {
        let (reported, _) = numbers(&store, &named(id, name)).await;
        assert_eq!(
            reported,
            Some((format!(r#"{{"n":{n}}}"#), 1)),
            "{id} {name}"
        );
    }
}
