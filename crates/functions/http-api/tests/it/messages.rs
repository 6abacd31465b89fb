//! `/v1/messages`, route by route.

use antumbra_service::inbox::{IncomingMessage, MessageParser, MessageWriter};
use antumbra_shadow::Timestamp;
use serde_json::Value;

use crate::support::TestApi;

/// Puts messages of a source in the inbox, numbered from 0, and gives their ids.
pub(crate) async fn fill(api: &TestApi, source: &str, count: usize, more: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..count {
        let text =
            format!(r#"{{"thingName":"{source}","epochTime":"{number:06}","temp":72.50{more}}}"#);
        let arrival = IncomingMessage {
            text: &text,
            queue_id: "q",
            sent_milliseconds: 1_564_669_332_364,
        };
        let message = MessageParser::default()
            .read(&arrival, Timestamp::default())
            .unwrap();
        api.inbox.store(&message).await.unwrap();
        ids.push(message.id.as_str().to_owned());
    }
    ids
}

fn listed(page: &Value) -> Vec<String> {
    let messages = page["messages"].as_array().unwrap().iter();
    messages
        .map(|message| message["messageId"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn sources_are_listed_in_pages() {
    use antumbra_service::inbox::{Source, SourceTracker as _};
    let api = TestApi::start().await;
    let empty = api.get("/v1/messages").await.ok(200);
    assert_eq!(empty, serde_json::json!({"sources": []}));
    let at = Timestamp::parse("2026-01-31T12:34:56Z").unwrap();
    for name in ["b", "a c"] {
        let source = Source::new(name).unwrap();
        api.inbox.touch(&source, at).await.unwrap();
    }
    let first = api.get("/v1/messages?limit=1").await.ok(200);
    assert_eq!(first["sources"][0]["uuid"], "a c");
    // The hours of this source begin at 29 seconds past minute 58.
    assert_eq!(first["sources"][0]["lastContact"], "2026-01-31T11:58:29Z");
    let next = first["nextCursor"].as_str().unwrap();
    let second = api
        .get(&format!("/v1/messages?limit=1&cursor={next}"))
        .await;
    assert_eq!(second.ok(200)["sources"][0]["uuid"], "b");
}

#[tokio::test]
async fn a_message_is_read_exactly_and_deleted() {
    let api = TestApi::start().await;
    let ids = fill(&api, "test Thing", 1, r#","big":9007199254740993"#).await;
    let path = format!("/v1/messages/test%20Thing/{}", ids[0]);
    let response = api.get(&path).await;
    let message = response.ok(200);
    assert_eq!(message["uuid"], "test Thing");
    assert_eq!(message["messageId"], ids[0].as_str());
    assert!(
        response.text.contains(r#""temp":72.50"#) && response.text.contains("9007199254740993"),
        "{}",
        response.text
    );
    api.delete(&path).await.ok(204);
    api.get(&path).await.problem(404, "NotFound");
    api.delete(&path).await.ok(204);
    assert_eq!(
        listed(&api.get("/v1/messages/test%20Thing").await.ok(200)),
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn pages_contain_every_message_once() {
    let api = TestApi::start().await;
    let padding = format!(r#","padding":"{}""#, "x".repeat(100_000));
    // More than a response and a page of DynamoDB can hold.
    let ids = fill(&api, "thing", 60, &padding).await;
    for (query, limit) in [
        ("bodies=true", 1000),
        ("bodies=true", 7),
        ("bodies=false", 7),
    ] {
        let mut seen = Vec::new();
        let mut cursor = String::new();
        let mut pages = 0;
        loop {
            let response = api
                .get(&format!("/v1/messages/thing?limit={limit}&{query}{cursor}"))
                .await;
            let page = response.ok(200);
            assert!(response.text.len() < 6_000_000, "{}", response.text.len());
            let whole = page["messages"]
                .as_array()
                .unwrap()
                .iter()
                .all(|message| message["body"].is_object());
            assert!(whole || query == "bodies=false");
            seen.extend(listed(&page));
            pages += 1;
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen, ids, "{query} {limit}");
        assert!(pages > 1);
    }
    let newest = api
        .get("/v1/messages/thing?newestFirst=true&limit=2")
        .await
        .ok(200);
    assert_eq!(listed(&newest), [ids[59].clone(), ids[58].clone()]);
    let some = api
        .get(&format!("/v1/messages/thing?from={}&to={}", ids[3], ids[5]))
        .await
        .ok(200);
    assert_eq!(listed(&some), ids[3..=5]);
}

#[tokio::test]
async fn invalid_sources_and_message_ids_are_rejected() {
    let api = TestApi::start().await;
    for path in ["a%2Fb", "a%2Bb", "%23", "$aws", "a%00", &"x".repeat(129)] {
        api.get(&format!("/v1/messages/{path}"))
            .await
            .problem(400, "InvalidPath");
        api.delete(&format!("/v1/messages/{path}/1"))
            .await
            .problem(400, "InvalidPath");
    }
    api.get("/v1/messages/thing/a%2Fb")
        .await
        .problem(400, "InvalidPath");
    for query in [
        "limit=0",
        "limit=1001",
        "limit=x",
        "limit=-1",
        "newestFirst=1",
        "from=",
        "from=a%2Fb",
        "other=1",
        "limit=1&limit=2",
    ] {
        api.get(&format!("/v1/messages/thing?{query}"))
            .await
            .problem(400, "InvalidQuery");
    }
    api.get("/v1/messages/thing?cursor=abc")
        .await
        .problem(400, "Invalid");
    let ids = fill(&api, "thing", 2, "").await;
    let page = api.get("/v1/messages/thing?limit=1").await.ok(200);
    assert_eq!(listed(&page), ids[..1]);
    let next = page["nextCursor"].as_str().unwrap();
    api.get(&format!("/v1/messages/other?cursor={next}"))
        .await
        .problem(400, "Invalid");
}
