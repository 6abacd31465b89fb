//! Requests that DynamoDB rejects are rejected by the database that the tests use. `scripts/check-dynamodb` sends
//! them to AWS's own DynamoDB Local.

use antumbra_dynamodb::MAIN;
use antumbra_testkit::dynamodb::TestTable;
use serde_json::{Value, json};

/// Calls with the members that all requests of their kind have.
struct Database(TestTable);

impl Database {
    async fn call(&self, operation: &str, mut body: Value) -> (u16, Value) {
        body["TableName"] = json!(self.0.name);
        self.0.endpoint.call(operation, &body).await
    }

    async fn query(&self, condition: &str, values: Value, more: Value) -> (u16, Value) {
        let mut body = json!({
            "KeyConditionExpression": condition, "ExpressionAttributeValues": values,
        });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.call("Query", body).await
    }

    /// A write whose condition holds unless it is invalid.
    async fn put_if(&self, condition: &str, values: Value) -> (u16, Value) {
        let condition = format!("{condition} OR attribute_exists(PK) OR attribute_not_exists(PK)");
        let mut body = json!({"Item": key(), "ConditionExpression": condition});
        if values != json!({}) {
            body["ExpressionAttributeValues"] = values;
        }
        self.call("PutItem", body).await
    }
}

fn key() -> Value {
    json!({"PK": {"S": "p"}, "SK": {"S": "s"}})
}

fn item(attribute: &str, value: Value) -> Value {
    let mut item = key();
    item[attribute] = value;
    item
}

fn text(length: usize) -> Value {
    json!({"S": "x".repeat(length)})
}

async fn database() -> Database {
    Database(TestTable::create(MAIN).await)
}

#[track_caller]
fn assert_rejected(what: &str, (status, body): (u16, Value)) {
    let kind = body["__type"].as_str().unwrap_or_default();
    assert!(
        status == 400 && kind.ends_with("ValidationException"),
        "{what}: {status} {body}"
    );
}

#[tokio::test]
async fn key_conditions_have_no_empty_and_no_overlong_values() {
    let database = database().await;
    let values = |lengths: &[usize]| -> Value {
        let names = [":p", ":s", ":t"].into_iter();
        names
            .zip(lengths)
            .map(|(name, length)| (name.to_owned(), text(*length)))
            .collect()
    };
    for (condition, lengths) in [
        ("PK = :p", &[0][..]),
        ("PK = :p AND SK = :s", &[1, 0]),
        ("PK = :p AND SK >= :s", &[1, 0]),
        ("PK = :p AND begins_with(SK, :s)", &[1, 0]),
        ("PK = :p AND begins_with(SK, :s)", &[1, 1025]),
        ("PK = :p AND SK < :s", &[1, 1025]),
        ("PK = :p AND SK BETWEEN :s AND :t", &[1, 0, 1]),
    ] {
        let response = database.query(condition, values(lengths), json!({})).await;
        assert_rejected(condition, response);
    }
    let listed = json!({"IndexName": "Listed"});
    for (condition, lengths) in [
        ("listKey = :p", &[0][..]),
        ("listKey = :p AND begins_with(listSort, :s)", &[1, 0]),
    ] {
        let response = database
            .query(condition, values(lengths), listed.clone())
            .await;
        assert_rejected(condition, response);
    }
    let valid = json!({":p": text(2048), ":s": text(1024)});
    let response = database
        .query("PK = :p AND SK > :s", valid, json!({}))
        .await;
    assert_eq!(response.0, 200, "{response:?}");
    let start = json!({"ExclusiveStartKey": {"PK": text(1), "SK": text(0)}});
    assert_rejected("start", database.call("Scan", start).await);
    let get = json!({"TableName": database.0.name, "Key": {"PK": text(1), "SK": text(0)}});
    let get = json!({"TransactItems": [{"Get": get}]});
    let response = database.0.endpoint.call("TransactGetItems", &get).await;
    assert_rejected("get", response);
}

#[tokio::test]
async fn keys_of_indexes_are_limited() {
    let database = database().await;
    for (attribute, limit) in [("listKey", 2048), ("listSort", 1024), ("cityKey", 2048)] {
        for (length, rejected) in [(limit, false), (limit + 1, true)] {
            let put = json!({"Item": item(attribute, text(length))});
            let update = json!({
                "Key": key(),
                "UpdateExpression": "SET #a = :a",
                "ExpressionAttributeNames": {"#a": attribute},
                "ExpressionAttributeValues": {":a": text(length)},
            });
            let mut transaction = update.clone();
            transaction["TableName"] = json!(database.0.name);
            let transaction = json!({"TransactItems": [{"Update": transaction}]});
            let batch = json!([{"PutRequest": {"Item": item(attribute, text(length))}}]);
            let batch = json!({"RequestItems": {&database.0.name: batch}});
            let endpoint = &database.0.endpoint;
            for response in [
                database.call("PutItem", put).await,
                database.call("UpdateItem", update).await,
                endpoint.call("TransactWriteItems", &transaction).await,
                endpoint.call("BatchWriteItem", &batch).await,
            ] {
                match rejected {
                    true => assert_rejected(attribute, response),
                    false => assert_eq!(response.0, 200, "{response:?}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn conditions_compare_different_operands_of_ordered_types() {
    let database = database().await;
    let (truth, none) = (json!({"BOOL": true}), json!({"NULL": true}));
    let (list, map, set) = (json!({"L": []}), json!({"M": {}}), json!({"SS": ["a"]}));
    let one = |value: &Value| json!({":x": value});
    let many: serde_json::Map<_, _> = (0..101).map(|n| (format!(":v{n}"), text(1))).collect();
    let all = many.keys().cloned().collect::<Vec<_>>().join(", ");
    for (condition, values) in [
        ("a > :x", one(&truth)),
        (":x < a", one(&none)),
        ("a <= :x", one(&map)),
        ("a >= :x", one(&set)),
        ("a > :x", one(&list)),
        ("a BETWEEN :x AND :y", json!({":x": truth, ":y": truth})),
        ("a = a", json!({})),
        ("NOT a <> a", json!({})),
        ("a.b = a.b", json!({})),
        ("a IN (b, a)", json!({})),
        ("attribute_type(a, :x)", one(&json!({"S": "Q"}))),
        ("attribute_type(a, :x)", one(&json!({"S": "s"}))),
        ("attribute_type(a, :x)", one(&json!({"N": "1"}))),
        ("Attribute_Exists(a)", json!({})),
        (&format!("a IN ({all})"), json!(many)),
    ] {
        assert_rejected(condition, database.put_if(condition, values).await);
    }
    for (condition, values) in [
        ("a = :x", one(&truth)),
        (
            "a > :x AND size(a) > :y",
            json!({":x": {"B": "YQ=="}, ":y": {"N": "1"}}),
        ),
        (
            "a BETWEEN :x AND :y",
            json!({":x": {"N": "1"}, ":y": {"N": "2"}}),
        ),
        (
            "NOT (a = b) AND (contains(a, :x) OR begins_with(b, :x))",
            one(&text(1)),
        ),
        ("attribute_type(a, :x)", one(&json!({"S": "BOOL"}))),
        ("a IN (:x, :y)", json!({":x": truth, ":y": text(1)})),
    ] {
        let (status, body) = database.put_if(condition, values).await;
        assert_eq!(status, 200, "{condition}: {body}");
    }
    let filter = json!({"FilterExpression": "a = a"});
    let values = json!({":p": text(1)});
    assert_rejected("filter", database.query("PK = :p", values, filter).await);
}

#[tokio::test]
async fn batches_and_transactions_are_complete() {
    let database = database().await;
    let name = &database.0.name;
    let both = json!([{"PutRequest": {"Item": key()}, "DeleteRequest": {"Key": key()}}]);
    let both = json!({"RequestItems": {name: both}});
    assert_rejected(
        "both",
        database.0.endpoint.call("BatchWriteItem", &both).await,
    );
    let lone = json!({
        "TableName": name, "Key": key(), "ExpressionAttributeValues": {":x": text(1)},
    });
    let lone = json!({"TransactItems": [{"Delete": lone}]});
    let response = database.0.endpoint.call("TransactWriteItems", &lone).await;
    assert_rejected("values", response);
    let rename = json!({
        "Key": key(), "UpdateExpression": "SET SK = :x",
        "ExpressionAttributeValues": {":x": text(2)},
    });
    assert_rejected("key", database.call("UpdateItem", rename).await);
}
