//! The alternative that was rejected: the entry is written in one transaction with the report.

use std::time::{Duration, Instant};

use antumbra_dynamodb::MAIN;
use antumbra_testkit::dynamodb::TestTable;
use serde_json::{Value, json};

use crate::load::{STEP, image};
use crate::percentiles;

const WRITES: u64 = 2000;
/// Bytes of the body of an entry without the document.
const BODY: usize = 110;

pub(crate) async fn print() {
    println!("\n| a report is written | write units | p50 ms | p99 ms |\n|---|---|---|---|");
    for (name, with_entry) in [
        ("alone", false),
        ("with its entry in one transaction", true),
    ] {
        let (units, mut times) = write(with_entry).await;
        let (median, high) = percentiles(&mut times);
        println!("| {name} | {units:.1} | {median:.2} | {high:.2} |");
    }
}

/// Returns the mean of the units, and the time of each write.
async fn write(with_entry: bool) -> (f64, Vec<Duration>) {
    let table = TestTable::create(MAIN).await;
    let (mut units, mut times) = (0.0, Vec::new());
    for version in 1..=WRITES {
        let time = version * STEP;
        let mut put = json!({
            "TableName": table.name,
            "Item": image("device", version, time),
            "ConditionExpression": "attribute_not_exists(PK) OR version = :before",
            "ExpressionAttributeValues": {":before": {"N": (version - 1).to_string()}},
        });
        let (operation, body) = match with_entry {
            true => {
                let entry = json!({"TableName": table.name, "Item": entry(version, time)});
                let items = json!([{"Put": put}, {"Put": entry}]);
                let body = json!({"TransactItems": items, "ReturnConsumedCapacity": "TOTAL"});
                ("TransactWriteItems", body)
            }
            false => {
                put["ReturnConsumedCapacity"] = json!("TOTAL");
                ("PutItem", put)
            }
        };
        let began = Instant::now();
        let (status, response) = table.endpoint.call(operation, &body).await;
        times.push(began.elapsed());
        assert_eq!(status, 200, "{response}");
        table.endpoint.take_calls();
        let consumed = &response["ConsumedCapacity"];
        // A transaction lists its tables.
        let of_table = consumed.get(0).unwrap_or(consumed);
        units += of_table["CapacityUnits"].as_f64().unwrap();
    }
    (units / WRITES as f64, times)
}

fn entry(version: u64, time: u64) -> Value {
    json!({
        "PK": {"S": "DS#device"},
        "SK": {"S": format!("DSR#main#{time:020}#{version:019}")},
        "operation": {"S": "MODIFY"},
        "previousTime": {"N": (time - STEP).to_string()},
        "ttl": {"N": (time / 1_000_000_000).to_string()},
        "body": {"S": "x".repeat(BODY)},
    })
}
