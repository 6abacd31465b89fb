//! `BatchWriteItem` in one transaction of the storage.
//!
//! The engine commits every item of a batch by itself. DynamoDB promises nothing about a batch as a whole, so that it may
//! also be applied at once.

use dynoxide::actions::batch_write_item::{
    self, BatchWriteItemRequest, BatchWriteItemResponse, WriteRequest,
};
use dynoxide::actions::transact_write_items::{
    self, TransactDelete, TransactPut, TransactWriteItem, TransactWriteItemsRequest,
};
use dynoxide::storage::Storage;

use crate::engine::ready;

/// Writes of a batch, as on DynamoDB.
const MAX_WRITES: usize = 25;

/// Applies a batch at once, or each write by itself if that is not possible.
pub(crate) fn execute(
    storage: &Storage,
    request: BatchWriteItemRequest,
) -> dynoxide::Result<BatchWriteItemResponse> {
    if let Some(transaction) = transaction(&request)
        && ready(transact_write_items::execute(storage, transaction)).is_ok()
    {
        return Ok(BatchWriteItemResponse::default());
    }
    // Nothing is applied. A batch has larger limits and other errors.
    ready(batch_write_item::execute(storage, request))
}

/// The writes of a batch as a transaction; `None` if its response says more than that it was applied.
fn transaction(request: &BatchWriteItemRequest) -> Option<TransactWriteItemsRequest> {
    let is_plain = request.return_consumed_capacity.is_none()
        && request.return_item_collection_metrics.is_none();
    let tables = request.request_items.iter();
    let writes =
        tables.flat_map(|(table, writes)| writes.iter().map(|write| write_of(table, write)));
    let writes: Vec<TransactWriteItem> = writes.collect();
    (is_plain && writes.len() <= MAX_WRITES).then(|| TransactWriteItemsRequest {
        transact_items: writes,
        ..TransactWriteItemsRequest::default()
    })
}

fn write_of(table: &str, write: &WriteRequest) -> TransactWriteItem {
    let put = write.put_request.as_ref().map(|put| TransactPut {
        table_name: table.to_owned(),
        item: put.item.clone(),
        ..TransactPut::default()
    });
    let delete = write.delete_request.as_ref().map(|delete| TransactDelete {
        table_name: table.to_owned(),
        key: delete.key.clone(),
        ..TransactDelete::default()
    });
    TransactWriteItem {
        put,
        delete,
        ..TransactWriteItem::default()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::FutureExt as _;
    use serde_json::{Value, json};

    use crate::engine::Engine;

    fn execute(engine: &Engine, operation: &str, request: Value) -> Result<Value, String> {
        let body = Bytes::from(request.to_string());
        let executed = engine.execute(operation, &body).now_or_never().flatten();
        let response = executed.unwrap().map_err(|error| error.to_json())?;
        Ok(serde_json::from_str(&response).unwrap())
    }

    fn create_table(engine: &Engine) {
        let table = json!({
            "TableName": "table",
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
            "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        });
        execute(engine, "CreateTable", table).unwrap();
    }

    fn put(key: &str, value: &str) -> Value {
        json!({"PutRequest": {"Item": {"PK": {"S": key}, "value": {"S": value}}}})
    }

    fn write(engine: &Engine, writes: &[Value]) -> Result<Value, String> {
        let request = json!({"RequestItems": {"table": writes}});
        execute(engine, "BatchWriteItem", request)
    }

    /// Event names of the stream with the keys.
    fn events(engine: &Engine) -> Vec<(String, String)> {
        engine.with_storage(|storage| {
            let select = "SELECT event_name, keys_json FROM _stream_records ORDER BY id";
            let mut select = storage.conn().prepare(select).unwrap();
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
            rows.unwrap().collect::<Result<_, _>>().unwrap()
        })
    }

    #[test]
    fn a_batch_is_applied_in_order_with_a_stream_record_for_each_write() {
        let engine = Engine::memory().unwrap();
        create_table(&engine);
        write(&engine, &[put("a", "1"), put("b", "1")]).unwrap();
        let delete = json!({"DeleteRequest": {"Key": {"PK": {"S": "a"}}}});
        let absent = json!({"DeleteRequest": {"Key": {"PK": {"S": "none"}}}});
        let response = write(&engine, &[delete, put("b", "2"), put("c", "1"), absent]);
        assert_eq!(response, Ok(json!({"UnprocessedItems": {}})));
        let expected = [
            ("INSERT", "a"),
            ("INSERT", "b"),
            ("REMOVE", "a"),
            ("MODIFY", "b"),
            ("INSERT", "c"),
        ];
        let expected = expected.map(|(event, key)| {
            let keys = json!({"PK": {"S": key}});
            (event.to_owned(), keys.to_string())
        });
        assert_eq!(events(&engine), expected);
        let get = json!({"TableName": "table", "Key": {"PK": {"S": "b"}}});
        let found = execute(&engine, "GetItem", get).unwrap();
        assert_eq!(found["Item"]["value"]["S"], "2");
    }

    #[test]
    fn a_batch_keeps_its_own_errors_and_limits() {
        let engine = Engine::memory().unwrap();
        create_table(&engine);
        let many: Vec<Value> = (0..26).map(|at| put(&at.to_string(), "")).collect();
        let large = "x".repeat(300 * 1024);
        let keys: Vec<String> = (0..20).map(|at| at.to_string()).collect();
        for (writes, message) in [
            (vec![put("a", "1"), put("a", "2")], "contains duplicates"),
            (vec![put("", "1")], "ValidationException"),
            (many, "less than or equal to 25"),
            (vec![json!({})], "ValidationException"),
        ] {
            let error = write(&engine, &writes).unwrap_err();
            assert!(error.contains(message), "{error}");
            assert!(!error.contains("Transaction"), "{error}");
        }
        assert_eq!(events(&engine), []);
        // More bytes than a transaction may have.
        let writes: Vec<Value> = keys.iter().map(|key| put(key, &large)).collect();
        write(&engine, &writes).unwrap();
        assert_eq!(events(&engine).len(), keys.len());
        let capacity =
            json!({"RequestItems": {"table": [put("a", "1")]}, "ReturnConsumedCapacity": "TOTAL"});
        let response = execute(&engine, "BatchWriteItem", capacity).unwrap();
        assert_eq!(response["ConsumedCapacity"][0]["CapacityUnits"], 1.0);
    }

    #[test]
    fn a_batch_is_committed_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tables.sqlite");
        let engine = Engine::file(path.clone()).unwrap();
        create_table(&engine);
        let log_bytes = || {
            std::fs::metadata(format!("{}-wal", path.display()))
                .unwrap()
                .len()
        };
        let writes: Vec<Value> = (0..25).map(|at| put(&at.to_string(), "")).collect();
        let before = log_bytes();
        write(&engine, &writes).unwrap();
        let batch = log_bytes() - before;
        write(&engine, &writes[..1]).unwrap();
        let one = log_bytes() - before - batch;
        assert!(
            batch < 5 * one,
            "{batch} bytes for 25 writes, {one} for one"
        );
    }
}
