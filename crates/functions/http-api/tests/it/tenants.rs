//! Two tenants with 10,000 shadows, sensors, clients and deliveries each: the pages of one are read without the items of
//! the other.

use std::collections::HashMap;

use antumbra_service::clients::ClientId;
use antumbra_service::sensors::SensorId;
use antumbra_service::shadows::ShadowId;
use antumbra_wire::items::index_keys::{self, LIST_SHARDS};
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::support::TestApi;

type Item = HashMap<String, AttributeValue>;

const TENANTS: [&str; 2] = ["a:", "b:"];
const ITEMS: usize = 10_000;
const PAGE: usize = 1000;
const GRANTS: &str = "shadows:read:a: sensors:read:a: clients:read:a: deliveries:read:a:";

/// Puts copies of an item.
async fn copy(api: &TestApi, item: &Item, change: impl Fn(usize) -> Vec<(&'static str, String)>) {
    let copies: Vec<WriteRequest> = (1..ITEMS)
        .map(|n| {
            let mut copy = item.clone();
            let changes = change(n).into_iter();
            copy.extend(changes.map(|(name, text)| (name.to_owned(), AttributeValue::S(text))));
            let put = PutRequest::builder().set_item(Some(copy)).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        })
        .collect();
    let calls = copies.chunks(25).map(|chunk| {
        let call = api.database.batch_write_item();
        call.request_items(&api.table, chunk.to_vec()).send()
    });
    let mut calls = stream::iter(calls).buffer_unordered(8);
    while let Some(done) = calls.next().await {
        assert!(done.unwrap().unprocessed_items.is_none_or(|left| left.is_empty()));
    }
}

async fn item(api: &TestApi, partition: &str, sort: &str) -> Item {
    let query = api.database.query().table_name(&api.table);
    let found = query
        .key_condition_expression("PK = :p AND begins_with(SK, :s)")
        .expression_attribute_values(":p", AttributeValue::S(partition.to_owned()))
        .expression_attribute_values(":s", AttributeValue::S(sort.to_owned()))
        .send()
        .await
        .unwrap();
    found.items()[0].clone()
}

/// Makes one of each with the API, and copies it.
async fn fill(api: &TestApi, tenant: &str) {
    let first = format!("{tenant}00000");
    let report = format!("/v1/shadows/{first}/reported");
    api.patch(&report, r#"{"led":1}"#).await.ok(200);
    api.post("/v1/sensors", &json!({"id": first}).to_string()).await.ok(201);
    let client = json!({"id": first, "name": "n", "url": "http://127.0.0.1:1/"});
    api.post("/v1/clients", &client.to_string()).await.ok(201);
    let test = format!("/v1/clients/{first}/test");
    api.post(&test, "").await.ok(202);

    let id = |n: usize| format!("{tenant}{n:05}");
    let shadow = item(api, &format!("DS#{first}"), "DSR#").await;
    copy(api, &shadow, |n| {
        let shadow = ShadowId::new(id(n)).unwrap();
        vec![
            ("PK", format!("DS#{}", id(n))),
            ("fleetShard", shadow.fleet_shard()),
            ("fleetKey", shadow.fleet_key()),
        ]
    })
    .await;
    let sensor = item(api, &format!("SENSOR#{first}"), "SENSORINFO").await;
    copy(api, &sensor, |n| {
        let shard = SensorId::new(id(n)).unwrap().shard(LIST_SHARDS);
        vec![
            ("PK", format!("SENSOR#{}", id(n))),
            ("sensorId", id(n)),
            ("listKey", index_keys::sensors(shard)),
            ("listSort", id(n)),
        ]
    })
    .await;
    let client = item(api, &format!("CLIENT#{first}"), "CLIENTINFO").await;
    copy(api, &client, |n| {
        let shard = ClientId::new(id(n)).unwrap().shard(LIST_SHARDS);
        vec![
            ("PK", format!("CLIENT#{}", id(n))),
            ("clientId", id(n)),
            ("listKey", index_keys::clients(shard)),
            ("listSort", id(n)),
        ]
    })
    .await;
    let delivery = item(api, &format!("CLIENT#{first}"), "DELIVERY#").await;
    let sort = delivery["SK"].as_s().unwrap().clone();
    let (place, hash) = sort.split_at(sort.len() - 16);
    assert_eq!(hash.len(), 16);
    copy(api, &delivery, |n| vec![("SK", format!("{place}{n:016x}"))]).await;
}

/// Reads all pages, and checks that each query read items of the tenant only. Returns the number of rows.
async fn read_pages(api: &TestApi, path: &str, rows: &str, queries: usize) -> usize {
    let (mut count, mut cursor) = (0, String::new());
    loop {
        api.endpoint.take_calls();
        let page = format!("{path}?limit={PAGE}{cursor}");
        let page = api.request_as(GRANTS, "GET", &page).send().await.ok(200);
        let listed = page[rows].as_array().unwrap();
        for row in listed {
            let id = row.get("client").unwrap_or(&row["id"]).as_str().unwrap();
            assert!(id.starts_with("a:"), "{path}: {row}");
        }
        count += listed.len();
        let calls = api.endpoint.take_calls();
        let calls = calls.iter().filter(|call| call.operation == "Query");
        let calls: Vec<Value> = calls.map(|call| call.body.clone()).collect();
        assert_eq!(calls.len(), queries, "{path}: {calls:?}");
        let mut examined = 0;
        for call in calls {
            let (status, found) = api.endpoint.call("Query", &call).await;
            assert_eq!(status, 200);
            assert_eq!(found["ScannedCount"], found["Count"]);
            for item in found["Items"].as_array().unwrap() {
                let key = item["PK"]["S"].as_str().unwrap();
                let (_, id) = key.split_once('#').unwrap();
                assert!(id.starts_with("a:"), "{path} read {key}");
                examined += 1;
            }
        }
        api.endpoint.take_calls();
        // Shards are not read equally far, so some items are read again for the next page.
        assert!(examined <= 2 * PAGE + 200, "{path} read {examined} items");
        let Some(next) = page.get("nextCursor") else {
            return count;
        };
        let next = next.as_str().unwrap();
        let content = URL_SAFE_NO_PAD.decode(next).unwrap();
        let content = String::from_utf8_lossy(&content);
        assert!(content.contains("a:") && !content.contains("b:"), "{content}");
        cursor = format!("&cursor={next}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_tenant_are_read_without_the_items_of_others() {
    let api = TestApi::start_with(&[GRANTS]).await;
    for tenant in TENANTS {
        fill(&api, tenant).await;
    }
    for (path, rows, queries) in [
        ("/v1/shadows", "shadows", 8),
        ("/v1/sensors", "sensors", 8),
        ("/v1/clients", "clients", 8),
        ("/v1/clients/a:00000/deliveries", "deliveries", 1),
    ] {
        let count = read_pages(&api, path, rows, queries).await;
        assert_eq!(count, ITEMS, "{path}");
    }
    // A wider filter is cut to the prefix, one of others finds nothing, and a cursor of others is refused.
    for (path, rows) in [("/v1/shadows", "shadows"), ("/v1/sensors", "sensors")] {
        let get = |query: &str| {
            let path = format!("{path}?{query}");
            let api = &api;
            async move { api.request_as(GRANTS, "GET", &path).send().await }
        };
        let all = get("prefix=a").await.ok(200);
        assert_eq!(all[rows].as_array().unwrap().len(), 100);
        let others = get("prefix=b:").await.ok(200);
        assert_eq!(others, json!({rows: []}));
        let theirs = api.get(&format!("{path}?prefix=b:&limit=1")).await.ok(200);
        let theirs = theirs["nextCursor"].as_str().unwrap();
        let refused = get(&format!("prefix=b:&cursor={theirs}")).await;
        refused.problem(400, "Invalid");
        let everything = api.get(&format!("{path}?limit=1")).await.ok(200);
        assert!(everything["nextCursor"].is_string());
    }
    let theirs = format!("/v1/clients/b:00000/deliveries?limit={PAGE}");
    let refused = api.request_as(GRANTS, "GET", &theirs).send().await;
    refused.problem(403, "Forbidden");
}
