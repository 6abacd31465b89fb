//! Bodies are returned as they were sent, to the last digit.

use antumbra_service::inbox::{InboxMessage, MessageReader, MessageWriter};

use super::{id, message, source};
use crate::store::inbox;

const BODIES: [&str; 12] = [
    "{}",
    r#"{"epochTime":"1564669331","tempSensor1F":"72","tempSensor2F":"70","thingName":"testThing"}"#,
    r#"{"n":9007199254740993}"#,
    r#"{"n":12345678901234567890123456789012345678}"#,
    r#"{"n":-0.00000000000000000000012345678901234567890123456789012345678}"#,
    r#"{"a":72,"b":72.50,"c":72.5,"d":72.0}"#,
    r#"{"n":[1e3,1E+3,-0,0.0,1000,1e125,1e-130]}"#,
    r#"{"a":null,"b":[],"c":{},"d":"","e":[null,[],{},"",false],"f":{"g":{"h":[[[0]]]}}}"#,
    r#"{"deep":{"deep":{"deep":{"deep":{"deep":{"deep":{"deep":{"deep":{"deep":{"deep":1.10}}}}}}}}}}"#,
    r#"{"text":"\"\\\n\u0001 å 😀","å \"quoted\"":"x"}"#,
    r#"{"body":{"body":true},"messageId":"y","ttl":1,"undeletedId":"z","uuid":"x"}"#,
    r#"{"false":false,"true":true}"#,
];

#[tokio::test]
async fn every_body_is_returned_as_it_was_sent() {
    let inbox = &inbox().await;
    let thing = source("testThing");
    let all: Vec<InboxMessage> = BODIES
        .iter()
        .enumerate()
        .map(|(number, body)| message("testThing", &format!("{number:02}"), body))
        .collect();
    for (message, text) in all.iter().zip(BODIES) {
        inbox.store(message).await.unwrap();
        let found = inbox.get(&thing, &message.id).await.unwrap().unwrap();
        assert_eq!(found.body.as_json(), text);
        assert_eq!(found, *message);
    }
    let ids: Vec<_> = all.iter().rev().map(|message| message.id.clone()).collect();
    let found = inbox.get_all(&thing, &ids).await.unwrap();
    assert!(found.iter().eq(all.iter().rev()));
}

#[tokio::test]
async fn the_body_is_a_map_and_its_text_is_stored_only_if_needed() {
    let inbox = &inbox().await;
    let plain = message("testThing", "1", r#"{"n":72.5,"in":{"list":[1,"a"]}}"#);
    let spelt = message("testThing", "2", r#"{"n":72.50}"#);
    inbox.store(&plain).await.unwrap();
    inbox.store(&spelt).await.unwrap();
    let mut items = inbox.items().await;
    items.sort_by_key(|item| item["messageId"].as_s().unwrap().clone());
    let body = items[0]["body"].as_m().unwrap();
    assert_eq!(body["n"].as_n().unwrap(), "72.5");
    assert_eq!(body["in"].as_m().unwrap()["list"].as_l().unwrap().len(), 2);
    assert!(!items[0].contains_key("bodyText"));
    assert_eq!(
        items[1]["body"].as_m().unwrap()["n"].as_n().unwrap(),
        "72.5"
    );
    assert_eq!(items[1]["bodyText"].as_s().unwrap(), r#"{"n":72.50}"#);
    assert_eq!(items[1]["receivedAt"].as_s().unwrap(), super::NOON);
}

/// A writer to the table cannot make a response differ from the item.
#[tokio::test]
async fn a_text_that_differs_from_the_body_is_ignored() {
    let inbox = &inbox().await;
    let spelt = message("testThing", "1", r#"{"n":72.50}"#);
    inbox.store(&spelt).await.unwrap();
    for (text, back) in [
        (r#"{"n":73.50}"#, r#"{"n":72.5}"#),
        (r#"{"n":72.50},"uuid":"other""#, r#"{"n":72.5}"#),
        ("", r#"{"n":72.5}"#),
        (" {\"n\" : 72.500} ", r#"{"n":72.500}"#),
    ] {
        let mut item = inbox.items().await.remove(0);
        let text = aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
        item.insert("bodyText".to_owned(), text);
        let put = inbox.client.put_item().table_name(&inbox.table);
        put.set_item(Some(item)).send().await.unwrap();
        let found = inbox.get(&source("testThing"), &id("1")).await;
        assert_eq!(found.unwrap().unwrap().body.as_json(), back);
    }
}

#[tokio::test]
async fn messages_are_returned_in_the_requested_order() {
    let inbox = &inbox().await;
    let thing = source("testThing");
    for number in 0..100 {
        let body = format!(r#"{{"n":{number}}}"#);
        let message = message("testThing", &format!("{number:03}"), &body);
        inbox.store(&message).await.unwrap();
    }
    let mut ids: Vec<_> = (0..99).map(|number| id(&format!("{number:03}"))).collect();
    ids.reverse();
    ids.push(id("never there"));
    let found = inbox.get_all(&thing, &ids).await.unwrap();
    let expected: Vec<_> = ids[..99].iter().collect();
    assert_eq!(
        found.iter().map(|message| &message.id).collect::<Vec<_>>(),
        expected
    );
    let twice = [id("007"), id("007")];
    assert_eq!(inbox.get_all(&thing, &twice).await.unwrap().len(), 2);
    assert_eq!(inbox.get_all(&thing, &[]).await.unwrap(), []);
    ids.push(id("one too many"));
    assert!(inbox.get_all(&thing, &ids).await.is_err());
}
