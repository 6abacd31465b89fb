//! DynamoDB's API over the engine, without the engine's own server: that one needs a port, and it allows requests of all
//! web pages.

use std::sync::Arc;

use antumbra_dynamodb::emulation::{REJECTED, rejection};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use dynoxide::auth_material;
use serde_json::json;
use tokio::sync::watch::Sender;

use crate::engine::{Engine, is_write};

/// DynamoDB's limit of a request.
const REQUEST_BYTES: usize = 16 * 1024 * 1024;
/// Prefixes of the header `x-amz-target`.
const TARGETS: [&str; 2] = ["DynamoDB_20120810.", "DynamoDBStreams_20120810."];
/// Media types of requests.
const JSON: [&str; 2] = ["application/x-amz-json-1.0", "application/json"];

/// Serves the engine and signals writes.
pub fn router(engine: Engine, write: Sender<()>) -> Router {
    Router::new()
        .route("/", post(respond))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES))
        .with_state((engine, Arc::new(write)))
}

async fn respond(
    State((engine, write)): State<(Engine, Arc<Sender<()>>)>,
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
                None => {
                    let executed = execute(&engine, operation, &body).await;
                    if is_write(operation) {
                        write.send_replace(());
                    }
                    executed
                }
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
async fn execute(engine: &Engine, operation: &str, body: &Bytes) -> (u16, String) {
    match engine.execute(operation, body).await {
        None => unknown_operation(),
        Some(Ok(body)) => (200, body),
        Some(Err(error)) => (error.status_code(), error.to_json()),
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
    #[tokio::test]
    async fn unreadable_requests_get_the_errors_of_dynamodb() {
        let engine = Engine::memory().unwrap();
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
            let (status, response) = execute(&engine, "PutItem", &Bytes::from(body)).await;
            assert_eq!(status, 400, "{body}");
            for part in [class, message] {
                assert!(response.contains(part), "{body}: {response}");
            }
            for mark in ["VALIDATION", "SERIALIZATION", "at line"] {
                assert!(!response.contains(mark), "{body}: {response}");
            }
        }
        let (status, response) = execute(&engine, "NoOperation", &Bytes::from("{}")).await;
        assert_eq!(status, 400);
        assert!(response.contains("UnknownOperationException"), "{response}");
    }
}
