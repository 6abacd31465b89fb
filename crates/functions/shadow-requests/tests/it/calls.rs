//! DynamoDB calls of requests, and the responses when the store fails.

use std::time::Duration;

use antumbra_dynamodb::{DynamoDbShadows, MAIN, ShadowTableConfig};
use antumbra_memory::MemoryShadows;
use antumbra_service::clock::Clock as _;
use antumbra_service::shadows::Layout;
use antumbra_shadow_requests::{AcceptedUpdates, Config};
use antumbra_testkit::dynamodb::TestTable;
use antumbra_testkit::{Failing, Faults};

use crate::support::{configured, event, function};

#[tokio::test]
async fn requests_make_few_calls() {
    // One item is first read eventually consistently. That there is no item, or nothing to write, is read once more.
    let twice = ["BatchGetItem", "BatchGetItem"];
    for (layout, read, write, first_reads) in [
        (
            Layout::Separate,
            "TransactGetItems",
            "TransactWriteItems",
            &twice[..1],
        ),
        (Layout::Combined, "BatchGetItem", "PutItem", &twice[..]),
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
                [first_reads, &["PutItem"]].concat(),
            ),
            ("shadow/lamp/update", &update[..], first_reads.to_vec()),
            (
                "shadow/lamp/update",
                &conditional[..],
                vec!["BatchGetItem", write],
            ),
            ("shadow/lamp/get", b"", vec![read]),
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
async fn an_update_gets_a_response_only_if_it_asks_and_else_reads_one_document() {
    let config = || Config {
        accepted: AcceptedUpdates::Requested,
        ..Config::default()
    };
    let table = TestTable::create(MAIN).await;
    let store = DynamoDbShadows::new(table.client.clone(), ShadowTableConfig::new(&table.name));
    let function = configured(store, config());
    let silent = async |payload: &str| {
        let event = event("shadow/lamp/update", "lamp", payload.as_bytes());
        let deadline = function.clock.now().after(Duration::from_secs(10));
        function.clock.advance(Duration::from_secs(1));
        let summary = function.requests.respond(&event, deadline).await.unwrap();
        assert_eq!(summary.code, None);
        assert!(function.responses.accepted().is_empty());
    };
    silent(r#"{"state":{"reported":{"led":1}},"timestamp":1700000000}"#).await;
    table.endpoint.take_calls();
    silent(r#"{"state":{"reported":{"led":2}},"timestamp":1700000001}"#).await;
    let calls = table.endpoint.take_calls();
    let operations: Vec<&str> = calls.iter().map(|call| &call.operation[..]).collect();
    assert_eq!(operations, ["BatchGetItem", "PutItem"]);
    let requested = &calls[0].body["RequestItems"][&table.name];
    assert_eq!(requested["Keys"].as_array().unwrap().len(), 1);
    assert_ne!(requested["ConsistentRead"], true);

    for asking in [
        r#"{"state":{"reported":{"led":3}},"clientToken":"t"}"#,
        r#"{"state":{"reported":{"led":4}},"version":3}"#,
        r#"{"state":{"reported":{"led":5}},"verbose":true}"#,
    ] {
        let (topic, response) = function
            .request("shadow/lamp/update", asking.as_bytes())
            .await;
        assert_eq!(topic, "shadow/lamp/update/accepted", "{response}");
    }
    let mut event: serde_json::Value = serde_json::from_slice(&event(
        "shadow/lamp/update",
        "lamp",
        br#"{"state":{"reported":{"led":6}}}"#,
    ))
    .unwrap();
    event["responseTopic"] = "shadow/lamp/update/accepted".into();
    let deadline = function.clock.now().after(Duration::from_secs(10));
    let event = event.to_string();
    function
        .requests
        .respond(event.as_bytes(), deadline)
        .await
        .unwrap();
    assert_eq!(function.response().0, "shadow/lamp/update/accepted");
    let (topic, _) = function.request("shadow/lamp/update", b"{}").await;
    assert_eq!(topic, "shadow/lamp/update/rejected");
    let (topic, _) = function.request("shadow/lamp/get", b"").await;
    assert_eq!(topic, "shadow/lamp/get/accepted");
    let (topic, _) = function.request("shadow/lamp/delete", b"").await;
    assert_eq!(topic, "shadow/lamp/delete/accepted");
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
