//! Bodies keep every digit, and any text of a queue is parsed or rejected.

use antumbra_service::inbox::{Body, IncomingMessage, MessageParser};
use antumbra_shadow::{Document, Timestamp};
use proptest::prelude::*;

/// The numbers of a JSON text as they are written, in any order.
fn numbers(text: &str) -> Vec<String> {
    let value: &serde_json::value::RawValue = serde_json::from_str(text).unwrap();
    let mut found = Vec::new();
    collect(value, &mut found);
    found.sort();
    found
}

fn collect(value: &serde_json::value::RawValue, found: &mut Vec<String>) {
    type Raw<'a> = &'a serde_json::value::RawValue;
    match value.get().as_bytes()[0] {
        b'{' => {
            let members: std::collections::HashMap<String, Raw<'_>> =
                serde_json::from_str(value.get()).unwrap();
            members
                .into_values()
                .for_each(|value| collect(value, found));
        }
        b'[' => {
            let elements: Vec<Raw<'_>> = serde_json::from_str(value.get()).unwrap();
            elements.into_iter().for_each(|value| collect(value, found));
        }
        b'-' | b'0'..=b'9' => found.push(value.get().to_owned()),
        _ => {}
    }
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        "-?(0|[1-9][0-9]{0,18})(\\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?",
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    let value = leaf.prop_recursive(5, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5)
                .prop_map(|all| format!("[{}]", all.join(" , "))),
            prop::collection::btree_map(".{1,6}", inner, 0..5).prop_map(object),
        ]
    });
    prop::collection::btree_map(".{1,6}", value, 0..6).prop_map(object)
}

fn object(members: std::collections::BTreeMap<String, String>) -> String {
    let members = members.into_iter().rev().map(|(name, value)| {
        let name = serde_json::to_string(&name).unwrap();
        format!("{name} : {value}")
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}

proptest! {
    #[test]
    fn bodies_keep_their_content_and_digits(json in json()) {
        let body = Body::parse(&json).unwrap();
        prop_assert_eq!(&Document::parse(&json).unwrap(), body.document());
        prop_assert_eq!(&Document::parse(body.as_json()).unwrap(), body.document());
        prop_assert_eq!(numbers(&json), numbers(body.as_json()));
        let again = Body::parse(body.as_json()).unwrap();
        prop_assert_eq!(again.as_json(), body.as_json());
        let kept = Body::from_parts(body.document().clone(), body.written());
        prop_assert_eq!(kept, body);
    }

    #[test]
    fn any_text_is_parsed_or_rejected_without_panic(text in ".{0,80}", uuid in any::<String>(), place in any::<i64>()) {
        let message = serde_json::json!({"thingName": uuid, "epochTime": place.to_string(), "text": text});
        for text in [text, message.to_string()] {
            let arrival = IncomingMessage { text: &text, queue_id: "q", sent_milliseconds: 0 };
            if let Ok(message) = MessageParser::default().read(&arrival, Timestamp::default()) {
                prop_assert_eq!(message.source.as_str(), &uuid);
                prop_assert_eq!(message.id.as_str(), format!("{place}-0-q"));
                prop_assert!(message.response_bytes() <= 128 * 1024);
            }
        }
    }
}

#[test]
fn the_computed_response_size_is_exact() {
    for (uuid, place) in [("testThing", "1564669331"), ("a\"b\\å", "\u{2028}\"")] {
        let text = serde_json::json!({"thingName": uuid, "epochTime": place, "n": 1.5}).to_string();
        let arrival = IncomingMessage {
            text: &text,
            queue_id: "q",
            sent_milliseconds: 0,
        };
        let message = MessageParser::default()
            .read(&arrival, Timestamp::default())
            .unwrap();
        let name = |text: &str| serde_json::to_string(text).unwrap();
        let response = format!(
            r#"{{"body":{},"messageId":{},"uuid":{}}}"#,
            message.body.as_json(),
            name(message.id.as_str()),
            name(message.source.as_str()),
        );
        assert_eq!(message.response_bytes(), response.len());
    }
}
