//! Failures of DynamoDB and the errors that callers get. Emulators do not fail, so the endpoint does.

mod deletes;
mod errors;
mod reads;
mod snapshots;
mod writes;

use antumbra_dynamodb::{DynamoDbShadows, ShadowTableConfig};
use antumbra_service::shadows::{DocumentSet, Layout, Read, ShadowStore as _, StoreError, Write};
use antumbra_testkit::dynamodb::{Call, Reply, failure};
use antumbra_testkit::sample::{shadow, whole};
use serde_json::{Value, json};

use crate::store::{Store, shadows};

/// A store with lamps, a client of it with this many read attempts, and reads of all lamps.
async fn lamps(
    count: i64,
    read_attempts: u32,
) -> (Store<DynamoDbShadows>, DynamoDbShadows, Vec<Read>) {
    let store = shadows(Layout::Separate).await;
    let ids: Vec<_> = (0..count).map(|n| shadow(&format!("lamp-{n}"))).collect();
    let writes: Vec<Write> = ids.iter().map(|id| whole(id, 1, 0)).collect();
    assert!(store.write_many(&writes).await.iter().all(Result::is_ok));
    store.endpoint.take_calls();
    let config = ShadowTableConfig {
        read_attempts,
        ..ShadowTableConfig::new(&store.table)
    };
    let shadows = DynamoDbShadows::new(store.client.clone(), config);
    let reads = ids.into_iter().map(|shadow| Read {
        shadow,
        parts: DocumentSet::Both,
    });
    let reads = reads.collect();
    (store, shadows, reads)
}

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
