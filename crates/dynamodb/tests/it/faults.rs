//! Failures of DynamoDB and the errors that callers get. Emulators do not fail, so the endpoint does.

mod deletes;
mod errors;
mod reads;
mod snapshots;
mod writes;

use antumbra_service::shadows::StoreError;
use antumbra_testkit::dynamodb::{Call, Reply, failure};
use serde_json::{Value, json};

fn fails(status: u16, code: &str) -> Reply {
    Reply::fail(status, code)
}

/// DynamoDB applies the call but responds with a server error.
fn applied_but_lost() -> Reply {
    Reply::pass_then_fail(500, "InternalServerError")
}

/// A cancelled transaction with these reasons, in the order of its items.
fn cancelled(reasons: &[Value]) -> Reply {
    let (status, mut body) = failure(400, "TransactionCanceledException");
    body["CancellationReasons"] = json!(reasons);
    Reply::Respond(status, body)
}

fn reason(code: &str) -> Value {
    json!({"Code": code, "Message": "as scripted"})
}

fn unavailable<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Unavailable(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn operations(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(|call| call.operation.as_str()).collect()
}
