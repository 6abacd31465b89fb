//! Two tenants with 10,000 shadows, sensors, clients and deliveries each: the pages of one are read without the items of
//! the other.
//!
//! The items are served by a small model of DynamoDB's queries, which counts what they read: storing them in the embedded
//! database would take minutes. The contract of the stores compares the same listings with real queries.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use antumbra_service::clients::ClientId;
use antumbra_service::sensors::SensorId;
use antumbra_service::shadows::ShadowId;
use antumbra_testkit::dynamodb::{Call, Reply};
use antumbra_wire::items::index_keys::{self, LIST_SHARDS};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::support::TestApi;

const TENANTS: [&str; 2] = ["a:", "b:"];
const ITEMS: usize = 10_000;
const PAGE: usize = 1000;
const GRANTS: &str = "shadows:read:a: sensors:read:a: clients:read:a: deliveries:read:a:";
/// One id of the first tenant, and a text that ten of its ids start with, but that is no id.
const ONE_ID: &str = "shadows:read:a:00010 sensors:read:a:00010 clients:read:a:00010";
const NO_ID: &str = "shadows:read:a:0001 sensors:read:a:0001 clients:read:a:0001";

/// Items by index, partition key and sort key.
#[derive(Default)]
struct Model {
    partitions: BTreeMap<(String, String), BTreeMap<String, Value>>,
    /// Partition keys of the items that queries have read.
    read: Vec<String>,
    queries: usize,
}

impl Model {
    fn put(&mut self, index: &str, keys: [&str; 2], item: Value) {
        let [partition, sort] = keys.map(|key| item[key]["S"].as_str().unwrap().to_owned());
        let key = (index.to_owned(), partition);
        self.partitions.entry(key).or_default().insert(sort, item);
    }

    /// Answers a query of an equal partition key and a range of sort keys.
    fn query(&mut self, body: &Value) -> Option<Value> {
        let value = |name: &str| body["ExpressionAttributeValues"][name]["S"].as_str();
        let condition = body["KeyConditionExpression"].as_str()?;
        let (partition, range) = condition.split_once(" AND ").unwrap_or((condition, ""));
        let partition = value(partition.split_once(" = ")?.1)?;
        let index = body["IndexName"].as_str().unwrap_or_default();
        let items = self
            .partitions
            .get(&(index.to_owned(), partition.to_owned()))?;
        let (from, to) = match range.split_once(" BETWEEN ") {
            Some((_, bounds)) => {
                let (from, to) = bounds.split_once(" AND ")?;
                (value(from)?, value(to)?)
            }
            None if range.is_empty() => ("", "\u{10ffff}"),
            None => (value(range.split_once(" >= ")?.1)?, "\u{10ffff}"),
        };
        let forward = body["ScanIndexForward"] != json!(false);
        let start = body["ExclusiveStartKey"].as_object().map(|start| {
            let sort = match index {
                "Fleet" => "fleetKey",
                "Listed" => "listSort",
                _ => "SK",
            };
            start[sort]["S"].as_str().unwrap().to_owned()
        });
        let within = items.range(from.to_owned()..=to.to_owned());
        let mut within: Vec<(&String, &Value)> = within.collect();
        if !forward {
            within.reverse();
        }
        within.retain(|(key, _)| match &start {
            None => true,
            Some(start) if forward => *key > start,
            Some(start) => *key < start,
        });
        let limit = body["Limit"].as_u64().unwrap_or(1000) as usize;
        let more = within.len() > limit;
        within.truncate(limit);
        let items: Vec<Value> = within.iter().map(|(_, item)| (*item).clone()).collect();
        self.queries += 1;
        let keys = items
            .iter()
            .map(|item| item["PK"]["S"].as_str().unwrap().to_owned());
        self.read.extend(keys);
        let mut found = json!({"Items": items, "Count": items.len(), "ScannedCount": items.len()});
        if let (true, Some(last)) = (more, items.last()) {
            let names = ["PK", "SK", "fleetShard", "fleetKey", "listKey", "listSort"];
            let of_index = |name: &&str| match index {
                "Fleet" => !name.starts_with("list"),
                "Listed" => !name.starts_with("fleet"),
                _ => name.len() == 2,
            };
            let key = names
                .into_iter()
                .filter(of_index)
                .map(|name| (name.to_string(), last[name].clone()));
            found["LastEvaluatedKey"] = Value::Object(key.collect());
        }
        Some(found)
    }
}

/// An item as the database has it.
async fn item(api: &TestApi, partition: &str, sort: &str) -> Value {
    let query = json!({
        "TableName": api.table,
        "KeyConditionExpression": "PK = :p AND begins_with(SK, :s)",
        "ExpressionAttributeValues": {":p": {"S": partition}, ":s": {"S": sort}},
    });
    let (_, found) = api.endpoint.call("Query", &query).await;
    found["Items"][0].clone()
}

fn changed(item: &Value, changes: &[(&str, &str)]) -> Value {
    let mut item = item.clone();
    for (name, text) in changes {
        item[*name] = json!({"S": text});
    }
    item
}

/// Makes one of each with the API, and copies it.
async fn fill(api: &TestApi, model: &mut Model, tenant: &str) {
    let first = format!("{tenant}00000");
    let report = format!("/v1/shadows/{first}/reported");
    api.patch(&report, r#"{"led":1}"#).await.ok(200);
    api.post("/v1/sensors", &json!({"id": first}).to_string())
        .await
        .ok(201);
    let client = json!({"id": first, "name": "n", "url": "http://127.0.0.1:1/"});
    api.post("/v1/clients", &client.to_string()).await.ok(201);
    let test = format!("/v1/clients/{first}/test");
    api.post(&test, "").await.ok(202);
    let shadow = item(api, &format!("DS#{first}"), "DSR#").await;
    let sensor = item(api, &format!("SENSOR#{first}"), "SENSORINFO").await;
    let client = item(api, &format!("CLIENT#{first}"), "CLIENTINFO").await;
    let delivery = item(api, &format!("CLIENT#{first}"), "DELIVERY#").await;
    let order = delivery["SK"]["S"].as_str().unwrap().to_owned();
    for n in 0..ITEMS {
        let id = &format!("{tenant}{n:05}");
        let place = ShadowId::new(id).unwrap();
        let (shard, key) = (place.fleet_shard(), place.fleet_key());
        let changes = [
            ("PK", &*format!("DS#{id}")),
            ("fleetShard", &shard),
            ("fleetKey", &key),
        ];
        model.put(
            "Fleet",
            ["fleetShard", "fleetKey"],
            changed(&shadow, &changes),
        );
        let shard = SensorId::new(id).unwrap().shard(LIST_SHARDS);
        let changes = [
            ("PK", &*format!("SENSOR#{id}")),
            ("sensorId", id),
            ("listKey", &index_keys::sensors(shard)),
            ("listSort", id),
        ];
        model.put(
            "Listed",
            ["listKey", "listSort"],
            changed(&sensor, &changes),
        );
        let shard = ClientId::new(id).unwrap().shard(LIST_SHARDS);
        let changes = [
            ("PK", &*format!("CLIENT#{id}")),
            ("clientId", id),
            ("listKey", &index_keys::clients(shard)),
            ("listSort", id),
        ];
        model.put(
            "Listed",
            ["listKey", "listSort"],
            changed(&client, &changes),
        );
        let order = format!("{}{n:016x}", &order[..order.len() - 16]);
        model.put("", ["PK", "SK"], changed(&delivery, &[("SK", &order)]));
    }
}

/// Reads all pages, and checks that the queries read items of the tenant only. Returns the number of rows.
async fn read_pages(
    api: &TestApi,
    model: &Mutex<Model>,
    path: &str,
    rows: &str,
    queries: usize,
) -> usize {
    let (mut count, mut cursor) = (0, String::new());
    loop {
        let page = format!("{path}?limit={PAGE}{cursor}");
        let page = api.request_as(GRANTS, "GET", &page).send().await.ok(200);
        let listed = page[rows].as_array().unwrap();
        for row in listed {
            let id = row.get("client").unwrap_or(&row["id"]).as_str().unwrap();
            assert!(id.starts_with("a:"), "{path}: {row}");
        }
        count += listed.len();
        let mut model = model.lock().unwrap();
        assert_eq!(std::mem::take(&mut model.queries), queries, "{path}");
        let read = std::mem::take(&mut model.read);
        let foreign = read.iter().find(|key| !key.contains("#a:"));
        assert_eq!(foreign, None, "{path}");
        // Shards are not read equally far, and a shadow may have two items.
        assert!(read.len() <= 3 * PAGE, "{path} read {} items", read.len());
        let Some(next) = page.get("nextCursor") else {
            return count;
        };
        let next = next.as_str().unwrap();
        let content = URL_SAFE_NO_PAD.decode(next).unwrap();
        let content = String::from_utf8_lossy(&content);
        assert!(
            content.contains("a:") && !content.contains("b:"),
            "{content}"
        );
        cursor = format!("&cursor={next}");
    }
}

#[tokio::test]
async fn pages_of_a_tenant_are_read_without_the_items_of_others() {
    let api = TestApi::start_with(&[GRANTS, ONE_ID, NO_ID]).await;
    let mut model = Model::default();
    for tenant in TENANTS {
        fill(&api, &mut model, tenant).await;
    }
    let model = Arc::new(Mutex::new(model));
    let served = Arc::clone(&model);
    api.endpoint.script(move |call: &Call| {
        let found = (call.operation == "Query").then(|| served.lock().unwrap().query(&call.body));
        match found.flatten() {
            Some(found) => Reply::Respond(200, found),
            None => Reply::Pass,
        }
    });
    for (path, rows, queries) in [
        ("/v1/shadows", "shadows", 16),
        ("/v1/sensors", "sensors", 8),
        ("/v1/clients", "clients", 8),
        ("/v1/clients/a:00000/deliveries", "deliveries", 1),
    ] {
        let count = read_pages(&api, &model, path, rows, queries).await;
        assert_eq!(count, ITEMS, "{path}");
    }
    // A grant for one id reads its index shard, from and to this id.
    for path in ["/v1/shadows", "/v1/sensors", "/v1/clients"] {
        for (grants, expected) in [(ONE_ID, &["a:00010"][..]), (NO_ID, &[])] {
            model.lock().unwrap().read.clear();
            let page = api.request_as(grants, "GET", path).send().await.ok(200);
            let rows = page[path.trim_start_matches("/v1/")].as_array().unwrap();
            let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
            assert_eq!(ids, expected, "{path} {grants}");
            assert!(page.get("nextCursor").is_none());
            let read = std::mem::take(&mut model.lock().unwrap().read);
            assert_eq!(read.len(), expected.len(), "{path} {grants}: {read:?}");
        }
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
    }
    let theirs = format!("/v1/clients/b:00000/deliveries?limit={PAGE}");
    let refused = api.request_as(GRANTS, "GET", &theirs).send().await;
    refused.problem(403, "Forbidden");
}
