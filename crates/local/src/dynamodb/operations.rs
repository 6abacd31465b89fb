//! DynamoDB's API over the engine, without the engine's own server: that one needs a port, and it allows requests of all
//! web pages.

use antumbra_dynamodb::emulation::{REJECTED, rejection};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use dynoxide::{Database, DynoxideError, auth_material};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// DynamoDB's limit of a request.
const REQUEST_BYTES: usize = 16 * 1024 * 1024;
/// Prefixes of the header `x-amz-target`.
const TARGETS: [&str; 2] = ["DynamoDB_20120810.", "DynamoDBStreams_20120810."];
/// Media types of requests.
const JSON: [&str; 2] = ["application/x-amz-json-1.0", "application/json"];

pub(super) fn router(database: Database) -> Router {
    Router::new()
        .route("/", post(respond))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES))
        .with_state(database)
}

async fn respond(
    State(database): State<Database>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let media_type = text("content-type").and_then(|value| value.split(';').next());
    let Some(media_type) = JSON
        .into_iter()
        .find(|json| media_type.is_some_and(|found| found.trim().eq_ignore_ascii_case(json)))
    else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let target = text("x-amz-target").unwrap_or_default();
    let operation = TARGETS
        .iter()
        .find_map(|prefix| target.strip_prefix(prefix));
    let unauthenticated = || {
        auth_material::validate(auth_material::AuthMaterial {
            authorization: text("authorization"),
            query: query.as_deref().unwrap_or_default(),
            has_date_header: headers.contains_key("x-amz-date") || headers.contains_key("date"),
        })
    };
    let (status, body) = match operation {
        None => unknown_operation(),
        Some(operation) => match rejection(operation, &body) {
            Some(rejected) => (REJECTED, rejected.to_string()),
            None => match unauthenticated() {
                Some(error) => (REJECTED, error),
                None => execute(&database, operation, &body),
            },
        },
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let request_id = uuid::Uuid::new_v4().to_string();
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (
            header::HeaderName::from_static("x-amzn-requestid"),
            request_id.as_str(),
        ),
    ];
    (status, headers, body).into_response()
}

/// Executes an operation and returns the status and the JSON of the response.
fn execute(database: &Database, operation: &str, body: &[u8]) -> (u16, String) {
    macro_rules! operations {
        ($($name:literal => $method:ident,)*) => {
            match operation {
                $($name => run(body, |request| database.$method(request)),)*
                _ => return unknown_operation(),
            }
        };
    }
    let done = operations! {
        "BatchExecuteStatement" => batch_execute_statement,
        "BatchGetItem" => batch_get_item,
        "BatchWriteItem" => batch_write_item,
        "CreateTable" => create_table,
        "DeleteItem" => delete_item,
        "DeleteTable" => delete_table,
        "DescribeStream" => describe_stream,
        "DescribeTable" => describe_table,
        "DescribeTimeToLive" => describe_time_to_live,
        "ExecuteStatement" => execute_statement,
        "ExecuteTransaction" => execute_transaction,
        "GetItem" => get_item,
        "GetRecords" => get_records,
        "GetShardIterator" => get_shard_iterator,
        "ListStreams" => list_streams,
        "ListTables" => list_tables,
        "ListTagsOfResource" => list_tags_of_resource,
        "PutItem" => put_item,
        "Query" => query,
        "Scan" => scan,
        "TagResource" => tag_resource,
        "TransactGetItems" => transact_get_items,
        "TransactWriteItems" => transact_write_items,
        "UntagResource" => untag_resource,
        "UpdateItem" => update_item,
        "UpdateTable" => update_table,
        "UpdateTimeToLive" => update_time_to_live,
    };
    match done {
        Ok(body) => (200, body),
        Err(error) => (error.status_code(), error.to_json()),
    }
}

fn run<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    call: impl FnOnce(Q) -> dynoxide::Result<A>,
) -> dynoxide::Result<String> {
    let request = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    serde_json::to_string(&call(request)?)
        .map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// DynamoDB's error for a request that cannot be read. The engine's types mark the class of an error that they found.
fn unreadable(error: &serde_json::Error) -> DynoxideError {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    if message.starts_with("empty AttributeValue") {
        let message =
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes";
        return DynoxideError::ValidationException(message.to_owned());
    }
    let (class, message) = match message.split_once(':') {
        Some((mark, rest)) if mark.starts_with("VALIDATION") => ("VALIDATION", rest),
        Some((mark, rest)) if mark.starts_with("SERIALIZATION") => ("SERIALIZATION", rest),
        _ => ("", message),
    };
    let is_invalid = [
        "missing field",
        "unknown variant",
        "invalid type: null",
        "AttributeValue",
    ]
    .iter()
    .any(|part| message.contains(part));
    match class {
        "SERIALIZATION" => DynoxideError::SerializationException(message.to_owned()),
        "" if !is_invalid => DynoxideError::SerializationException(message.to_owned()),
        _ => DynoxideError::ValidationException(message.to_owned()),
    }
}

fn unknown_operation() -> (u16, String) {
    let kind = "com.amazon.coral.service#UnknownOperationException";
    (REJECTED, json!({ "__type": kind }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first error would otherwise show the engine's mark to users.
    #[test]
    fn unreadable_requests_get_the_errors_of_dynamodb() {
        let database = Database::memory().unwrap();
        for (body, class, message) in [
            (
                r#"{"TableName":"table","Item":{"a":{"NULL":false}}}"#,
                "ValidationException",
                "Null attribute value types must have the value of true",
            ),
            (
                r#"{"TableName":"table","Item":{"a":{}}}"#,
                "ValidationException",
                "must contain exactly one of the supported datatypes",
            ),
            (r#"{"TableName":7}"#, "SerializationException", ""),
            ("{", "SerializationException", ""),
        ] {
            let (status, response) = execute(&database, "PutItem", body.as_bytes());
            assert_eq!(status, 400, "{body}");
            for part in [class, message] {
                assert!(response.contains(part), "{body}: {response}");
            }
            for mark in ["VALIDATION", "SERIALIZATION", "at line"] {
                assert!(!response.contains(mark), "{body}: {response}");
            }
        }
        let (status, response) = execute(&database, "NoOperation", b"{}");
        assert_eq!(status, 400);
        assert!(response.contains("UnknownOperationException"), "{response}");
    }
}
