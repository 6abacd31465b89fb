//! DynamoDB calls of requests, and the responses when the store fails.

use antumbra_dynamodb::{DynamoDbShadows, MAIN, ShadowTableConfig};
use antumbra_memory::MemoryShadows;
use antumbra_service::shadows::Layout;
use antumbra_testkit::dynamodb::TestTable;
use antumbra_testkit::{Failing, Faults};

use crate::support::function;

#[tokio::test]
async fn requests_make_few_calls() {
    for (layout, read, write) in [
        (Layout::Separate, "TransactGetItems", "TransactWriteItems"),
        (Layout::Combined, "BatchGetItem", "PutItem"),
    ] {
        let table = TestTable::create(MAIN).await;
        let endpoint = &table.endpoint;
        let config = ShadowTableConfig::new(&table.name).layout(layout);
        let function = function(DynamoDbShadows::new(table.client.clone(), config));
        let update = br#"{"state":{"desired":{"led":1}}}"#;
        let conditional = br#"{"state":{"reported":{"led":1}},"version":1}"#;
        for (topic, payload, calls) in [
            (
                "shadow/lamp/update",
                &update[..],
                &["BatchGetItem", "PutItem"][..],
            ),
            ("shadow/lamp/update", &update[..], &["BatchGetItem"]),
            (
                "shadow/lamp/update",
                &conditional[..],
                &["BatchGetItem", write],
            ),
            ("shadow/lamp/get", b"", &[read]),
        ] {
            let (response_topic, response) = function.request(topic, payload).await;
            assert!(response_topic.ends_with("/accepted"), "{response}");
            assert_eq!(endpoint.take_operations(), calls, "{layout:?} {topic}");
        }
        let (response_topic, _) = function.request("shadow/lamp/delete", b"").await;
        assert_eq!(response_topic, "shadow/lamp/delete/accepted");
        assert_eq!(endpoint.take_operations().len(), 2);
    }
}

#[tokio::test]
async fn store_failures_have_awss_codes() {
    for (faults, code) in [
        (
            Faults {
                throttled: 1.0,
                ..Faults::default()
            },
            429,
        ),
        (
            Faults {
                lost_before: 1.0,
                ..Faults::default()
            },
            500,
        ),
    ] {
        let function = function(Failing::new(MemoryShadows::default(), faults, 1));
        for (topic, payload) in [
            ("shadow/lamp/get", ""),
            ("shadow/lamp/delete", ""),
            (
                "shadow/lamp/update",
                r#"{"state":{"desired":{"led":1}},"version":0}"#,
            ),
        ] {
            let (response_topic, response) = function.request(topic, payload.as_bytes()).await;
            assert_eq!(response_topic, format!("{topic}/rejected"));
            assert_eq!(response["code"], code, "{response}");
        }
    }
}
