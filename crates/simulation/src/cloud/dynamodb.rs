//! DynamoDB: the embedded one, called without a network.

use antumbra_dynamodb::emulation::{REJECTED, rejection};
use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(super) type Reply = (u16, String);

/// Executes a request.
pub(super) fn apply(database: &Database, operation: &str, body: &str) -> Reply {
    if let Some(body) = rejection(operation, body.as_bytes()) {
        return (REJECTED, body.to_string());
    }
    let done = match operation {
        "CreateTable" => run(body, |request| database.create_table(request)),
        "DescribeTable" => run(body, |request| database.describe_table(request)),
        "DescribeTimeToLive" => run(body, |request| database.describe_time_to_live(request)),
        "UpdateTimeToLive" => run(body, |request| database.update_time_to_live(request)),
        "PutItem" => run(body, |request| database.put_item(request)),
        "GetItem" => run(body, |request| database.get_item(request)),
        "DeleteItem" => run(body, |request| database.delete_item(request)),
        "UpdateItem" => run(body, |request| database.update_item(request)),
        "Query" => run(body, |request| database.query(request)),
        "Scan" => run(body, |request| database.scan(request)),
        "BatchGetItem" => run(body, |request| database.batch_get_item(request)),
        "BatchWriteItem" => run(body, |request| database.batch_write_item(request)),
        "TransactGetItems" => run(body, |request| database.transact_get_items(request)),
        "TransactWriteItems" => run(body, |request| database.transact_write_items(request)),
        other => return failure(400, "UnknownOperationException", other),
    };
    match done {
        Ok(body) => (200, body),
        Err(error) => (error.status_code(), error.to_json()),
    }
}

fn run<Q: DeserializeOwned, A: Serialize>(
    body: &str,
    call: impl FnOnce(Q) -> dynoxide::Result<A>,
) -> dynoxide::Result<String> {
    let request: Q = serde_json::from_str(body)
        .map_err(|fault| DynoxideError::ValidationException(fault.to_string()))?;
    let response = call(request)?;
    serde_json::to_string(&response)
        .map_err(|fault| DynoxideError::InternalServerError(fault.to_string()))
}

/// An error response of DynamoDB.
pub(super) fn failure(status: u16, code: &str, message: &str) -> Reply {
    let kind = format!("com.amazonaws.dynamodb.v20120810#{code}");
    let body = json!({"__type": kind, "message": message});
    (status, body.to_string())
}

/// Rejection of a write because of a concurrent one.
pub(super) fn conflict(operation: &str, body: &str) -> Option<Reply> {
    match operation {
        "TransactWriteItems" => {
            let request: Value = serde_json::from_str(body).ok()?;
            let items = request["TransactItems"].as_array()?.len();
            let reason = |at| match at {
                0 => {
                    json!({"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"})
                }
                _ => json!({"Code": "None"}),
            };
            let reasons: Vec<Value> = (0..items).map(reason).collect();
            let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
            let body = json!({
                "__type": kind,
                "Message": "Transaction cancelled [TransactionConflict]",
                "CancellationReasons": reasons,
            });
            Some((400, body.to_string()))
        }
        "PutItem" | "UpdateItem" | "DeleteItem" => Some(failure(
            400,
            "TransactionConflictException",
            "Transaction is ongoing for the item",
        )),
        _ => None,
    }
}

/// Member of a batch request that holds the entries of one table.
type Entries = fn(&mut Value) -> Option<&mut Vec<Value>>;

/// Executes a part of a batch and returns the rest as unprocessed; `keep` decides for each entry whether it is
/// executed.
pub(super) fn partly(
    database: &Database,
    operation: &str,
    body: &str,
    mut keep: impl FnMut() -> bool,
) -> Option<Reply> {
    let (left_name, entries): (&str, Entries) = match operation {
        "BatchWriteItem" => ("UnprocessedItems", |of_table| of_table.as_array_mut()),
        "BatchGetItem" => ("UnprocessedKeys", |of_table| {
            of_table["Keys"].as_array_mut()
        }),
        _ => return None,
    };
    let mut request: Value = serde_json::from_str(body).ok()?;
    let mut left = request["RequestItems"].clone();
    let mut any_left = false;
    for (table, of_table) in request["RequestItems"].as_object_mut()? {
        let all = entries(of_table)?;
        // Sorted, so that the result of a seed does not depend on the order of a map.
        all.sort_by_key(Value::to_string);
        let (done, undone): (Vec<Value>, Vec<Value>) =
            std::mem::take(all).into_iter().partition(|_| keep());
        if done.is_empty() {
            return None;
        }
        any_left |= !undone.is_empty();
        *all = done;
        *entries(&mut left[table.as_str()])? = undone;
    }
    let (status, response) = apply(database, operation, &request.to_string());
    if status != 200 || !any_left {
        return Some((status, response));
    }
    let mut response: Value = serde_json::from_str(&response).ok()?;
    response[left_name] = left;
    Some((200, response.to_string()))
}
