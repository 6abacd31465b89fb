//! Lists of callers whose grants have a prefix, in the embedded database: the rows are those that the grants cover, and no
//! query reads an item of somebody else.

use antumbra_service::clients::ClientId;
use antumbra_service::paging::{Cursor, open_cursor, seal_cursor};
use antumbra_service::sensors::SensorId;
use antumbra_testkit::dynamodb::Call;
use antumbra_wire::items::index_keys::LIST_SHARDS;
use serde_json::{Value, json};

use crate::support::{Response, TestApi};

/// A list that is ordered by id.
struct List {
    path: &'static str,
    /// Resource of its grants, and name of its rows.
    rows: &'static str,
    /// Partition key of its items, without the id.
    key: &'static str,
    shards: usize,
}

const LISTS: [List; 3] = [
    List {
        path: "/v1/shadows",
        rows: "shadows",
        key: "DS#",
        shards: 16,
    },
    List {
        path: "/v1/sensors",
        rows: "sensors",
        key: "SENSOR#",
        shards: LIST_SHARDS as usize,
    },
    List {
        path: "/v1/clients",
        rows: "clients",
        key: "CLIENT#",
        shards: LIST_SHARDS as usize,
    },
];

const PAGE: usize = 7;

/// Prefixes of a caller's grants, and the ids that they cover.
const CALLERS: [(&[&str], &[&str]); 7] = [
    (&["a:"], &["a:"]),
    (&["a:1"], &["=a:1"]),
    (&["a"], &["=a"]),
    (&["a:1:"], &["a:1:"]),
    (&["b:2", "b:1", "nobody:"], &["=b:1", "=b:2"]),
    (&["a:1", "b:"], &["=a:1", "b:"]),
    (&["nobody", "A:"], &[]),
];

impl List {
    fn grants(&self, prefixes: &[&str]) -> String {
        let grant = |prefix: &&str| format!("{}:read:{prefix}", self.rows);
        let grants: Vec<String> = prefixes.iter().map(grant).collect();
        grants.join(" ")
    }

    async fn get(&self, api: &TestApi, prefixes: &[&str], query: &str) -> Response {
        let path = format!("{}?{query}", self.path);
        let grants = self.grants(prefixes);
        api.request_as(&grants, "GET", &path).send().await
    }

    fn ids(&self, page: &Value) -> Vec<String> {
        let rows = page[self.rows].as_array().unwrap().iter();
        rows.map(|row| row["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Place of the id in the parts of a cursor.
    fn id_at(&self, parts: &[String]) -> usize {
        match self.rows {
            // The name of the shadow follows.
            "shadows" => parts.len() - 2,
            _ => parts.len() - 1,
        }
    }

    /// Fails unless the calls read items of covered ids only. Returns the number of queries.
    async fn check_reads(&self, api: &TestApi, covered: &[String], calls: &[Call]) -> usize {
        let is_covered = |key: &Value| {
            let key = key["PK"]["S"].as_str().unwrap();
            let id = key.strip_prefix(self.key);
            id.is_some_and(|id| covered.iter().any(|one| one == id))
        };
        let mut queries = 0;
        for call in calls {
            let read: Vec<Value> = match &*call.operation {
                "Query" => {
                    queries += 1;
                    read_by(api, &call.body).await
                }
                "BatchGetItem" => {
                    let tables = call.body["RequestItems"].as_object().unwrap().values();
                    let keys = tables.map(|table| table["Keys"].as_array().unwrap());
                    keys.flatten().cloned().collect()
                }
                other => panic!("{other}"),
            };
            let foreign: Vec<&Value> = read.iter().filter(|key| !is_covered(key)).collect();
            assert!(foreign.is_empty(), "{:?} read {foreign:?}", call.body);
        }
        queries
    }
}

/// The items that a query examines, as the database returns them without filter and projection.
async fn read_by(api: &TestApi, query: &Value) -> Vec<Value> {
    let mut query = query.clone();
    let query_members = query.as_object_mut().unwrap();
    for left_out in ["FilterExpression", "ProjectionExpression"] {
        query_members.remove(left_out);
    }
    // Names that no expression uses are refused.
    let condition = query["KeyConditionExpression"].as_str().unwrap().to_owned();
    if let Some(names) = query["ExpressionAttributeNames"].as_object_mut() {
        names.retain(|name, _| condition.contains(name.as_str()));
    }
    let (status, found) = api.endpoint.call("Query", &query).await;
    assert_eq!(status, 200, "{found}");
    api.endpoint.take_calls();
    found["Items"].as_array().unwrap().clone()
}

/// Ids of two tenants, and ids that begin like theirs. Those that begin like `a:1` are in the index shard of `a:1`, so that
/// only the range of keys keeps them apart.
fn ids() -> Vec<String> {
    let sensor_shard = |id: &str| SensorId::new(id).unwrap().shard(LIST_SHARDS);
    let client_shard = |id: &str| ClientId::new(id).unwrap().shard(LIST_SHARDS);
    let beside = |own: &'static str| {
        let longer = (10..).map(move |n| format!("{own}{n}"));
        let longer = longer.filter(move |id| {
            sensor_shard(id) == sensor_shard(own) && client_shard(id) == client_shard(own)
        });
        longer.take(3)
    };
    let odd = ["a", "A", "a:1:x", "a:1:", "aa:1", "ab", "b", "A-1"];
    let mut ids: Vec<String> = odd.map(str::to_owned).into();
    for tenant in ["a:", "b:"] {
        ids.extend((0..12).map(|n| format!("{tenant}{n}")));
    }
    ids.extend(beside("a:1"));
    ids.extend(beside("a"));
    ids.sort();
    ids.dedup();
    ids
}

async fn fill(api: &TestApi, ids: &[String]) {
    for id in ids {
        let report = format!("/v1/shadows/{id}/reported");
        api.patch(&report, r#"{"led":1}"#).await.ok(200);
        let sensor = json!({ "id": id }).to_string();
        api.post("/v1/sensors", &sensor).await.ok(201);
        let client = json!({"id": id, "name": "n", "url": "http://127.0.0.1:1/"});
        api.post("/v1/clients", &client.to_string()).await.ok(201);
    }
}

/// Returns the ids that start with one of these texts, or that are one that begins with `=`.
fn select(ids: &[String], texts: &[&str]) -> Vec<String> {
    let is_selected = |id: &&String| {
        texts.iter().any(|text| match text.strip_prefix('=') {
            Some(own) => *id == own,
            None => id.starts_with(text),
        })
    };
    ids.iter().filter(is_selected).cloned().collect()
}

async fn start() -> (TestApi, Vec<String>) {
    let callers = CALLERS.iter().map(|(prefixes, _)| prefixes);
    let grants = |prefixes| LISTS.each_ref().map(|list| list.grants(prefixes));
    let lists: Vec<String> = callers.flat_map(|prefixes| grants(prefixes)).collect();
    let lists: Vec<&str> = lists.iter().map(String::as_str).collect();
    let api = TestApi::start_with(&lists).await;
    let ids = ids();
    fill(&api, &ids).await;
    (api, ids)
}

#[tokio::test]
async fn lists_hold_and_read_what_the_prefixes_cover() {
    let (api, ids) = start().await;
    for list in &LISTS {
        for (prefixes, texts) in CALLERS {
            let covered = select(&ids, texts);
            let (mut found, mut cursor) = (Vec::new(), String::new());
            loop {
                api.endpoint.take_calls();
                let query = format!("limit={PAGE}{cursor}");
                let page = list.get(&api, prefixes, &query).await.ok(200);
                let calls = api.endpoint.take_calls();
                let queries = list.check_reads(&api, &covered, &calls).await;
                // One per shard for all ids below a prefix, one for a whole id.
                let most = prefixes.iter().map(|prefix| match prefix.ends_with(':') {
                    true => list.shards,
                    false => 1,
                });
                assert!(queries <= most.sum(), "{prefixes:?}: {queries} queries");
                found.extend(list.ids(&page));
                let Some(next) = page.get("nextCursor") else {
                    break;
                };
                let next = next.as_str().unwrap();
                let parts = open_cursor(&Cursor(next.to_owned())).unwrap();
                let names_covered = parts.iter().any(|part| covered.contains(part));
                assert!(names_covered, "{parts:?}");
                cursor = format!("&cursor={next}");
            }
            assert_eq!(found, covered, "{} within {prefixes:?}", list.path);
        }
    }
}

#[tokio::test]
async fn the_prefix_of_one_resource_is_not_that_of_another() {
    let mixed = "shadows:read:a: sensors:write:b: clients:admin:a:1 messages:read deliveries:read";
    let api = TestApi::start_with(&[mixed]).await;
    let ids = ["a:1", "a:2", "b:1"].map(str::to_owned);
    fill(&api, &ids).await;
    for (list, expected) in LISTS.iter().zip([&["a:1", "a:2"][..], &["b:1"], &["a:1"]]) {
        let page = api.request_as(mixed, "GET", list.path).send().await.ok(200);
        assert_eq!(list.ids(&page), expected, "{}", list.path);
    }
}

#[tokio::test]
async fn cursors_that_point_outside_of_the_prefixes_are_refused() {
    let (api, _) = start().await;
    for list in &LISTS {
        let own = list.get(&api, &["a:"], "limit=1").await.ok(200);
        let own = own["nextCursor"].as_str().unwrap().to_owned();
        let parts = open_cursor(&Cursor(own.clone())).unwrap();
        // A checksum protects cursors against damage, not against those who know how it is computed.
        let forged = |id: &str| {
            let last = list.id_at(&parts);
            let mut parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            parts[last] = id;
            seal_cursor(&parts).0
        };
        let status = async |prefixes: &[&str], cursor: &str| {
            api.endpoint.take_calls();
            let query = format!("limit=2&cursor={cursor}");
            let response = list.get(&api, prefixes, &query).await;
            if response.status != 200 {
                response.problem(400, "Invalid");
                let calls = api.endpoint.take_calls();
                assert!(calls.is_empty(), "{calls:?}");
            }
            response.status
        };
        assert_eq!(status(&["a:"], &own).await, 200, "{}", list.path);
        assert_eq!(status(&["a:"], &forged("a:3")).await, 200);
        for outside in ["b:1", "a", "aa:1", "A:1", ""] {
            let found = status(&["a:"], &forged(outside)).await;
            assert_eq!(found, 400, "{} {outside}", list.path);
        }
        // The cursor of one tenant in the hands of another, and one of fewer grants.
        assert_eq!(status(&["a:1", "b:"], &own).await, 400);
        assert_eq!(status(&["a:1"], &forged("a:10")).await, 400);
        assert_eq!(status(&["nobody", "A:"], &own).await, 400);
        // The cursor of another list.
        for other in LISTS.iter().filter(|other| other.path != list.path) {
            let query = format!("cursor={own}");
            let response = other.get(&api, &["a:"], &query).await;
            response.problem(400, "Invalid");
        }
    }
}
