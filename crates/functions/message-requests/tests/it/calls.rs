//! DynamoDB calls of each operation.

use antumbra_service::inbox::{Source, SourceTracker as _};
use antumbra_shadow::Timestamp;
use serde_json::json;

use crate::support::Bench;

#[tokio::test]
async fn requests_make_few_calls() {
    let bench = Bench::fresh().await;
    for n in 0..30 {
        let id = format!("{n:02}");
        bench.store("lamp", &id, r#"{"a":1}"#).await;
    }
    // Deleted messages add no calls.
    for n in 0..25 {
        let topic = format!("request/delete/lamp/{n:02}");
        bench.request(&topic, &json!({})).await;
        assert_eq!(bench.endpoint.take_operations(), ["UpdateItem"]);
    }
    let lamp = Source::new("lamp").unwrap();
    bench
        .inbox
        .touch(&lamp, Timestamp::default())
        .await
        .unwrap();
    bench.endpoint.take_calls();
    for (topic, payload, calls) in [
        ("request/query/lamp", json!({}), &["Query", "Query"][..]),
        ("request/query/nobody", json!({}), &["Query", "Query"]),
        ("request/get/lamp/27", json!({}), &["GetItem"]),
        ("request/get/lamp/03", json!({}), &["GetItem"]),
        ("request/next/lamp/0", json!({}), &["Query"]),
        ("request/next/lamp/29", json!({}), &["Query"]),
        ("request/prev/lamp/27", json!({}), &["Query"]),
        ("request/list/lamp", json!({}), &["Query"]),
        (
            "request/list/lamp",
            json!({"bodies": true}),
            &["Query", "BatchGetItem"],
        ),
        ("request/delete/lamp/29", json!({}), &["UpdateItem"]),
        ("request/delete/lamp/none", json!({}), &["UpdateItem"]),
        // One for each shard.
        ("request/devices", json!({}), &["Query"; 16]),
    ] {
        bench.request(topic, &payload).await;
        assert_eq!(bench.endpoint.take_operations(), calls, "{topic} {payload}");
    }
}

#[tokio::test]
async fn invalid_requests_make_no_calls() {
    let bench = Bench::fresh().await;
    for (topic, payload) in [
        ("request/get/lamp", json!({})),
        ("request/get/VICTIM/1/lamp", json!({})),
        ("request/get/$lamp/1", json!({})),
        ("request/list/lamp", json!({"limit": 0})),
        ("request/list/lamp", json!({"limit": 1001})),
        ("request/list/lamp", json!({"cursor": "made up"})),
        ("request/devices", json!({"limit": 401})),
    ] {
        let response = bench.request(topic, &payload).await;
        assert_eq!(response["code"], "BadRequest", "{response}");
        assert!(bench.endpoint.take_calls().is_empty(), "{topic}");
    }
}
