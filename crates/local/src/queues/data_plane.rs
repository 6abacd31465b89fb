//! AWS IoT's `Publish` over HTTP: `POST /topics/<topic>`, with MQTT 5 properties in the query and in headers, as the
//! SDKs and `aws iot-data publish` send it.
//!
//! The topic may have its slashes escaped, as in SDKs, or not. A publisher has no client id here, which rules see as
//! `n/a`.

use std::num::NonZeroU32;

use axum::Json;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use percent_encoding::percent_decode_str;
use serde_json::json;

use crate::mqtt::{MAX_PAYLOAD_BYTES, Message, Properties, PublishError, Publisher};

pub(super) const PATH: &str = "/topics/";

#[derive(Debug, PartialEq, Eq)]
struct Rejection {
    status: StatusCode,
    code: &'static str,
    reason: String,
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let body = Json(json!({ "message": self.reason }));
        (self.status, [("x-amzn-errortype", self.code)], body).into_response()
    }
}

/// Publishes the message and responds as AWS does.
pub(super) async fn publish(request: Request, mqtt: &Publisher) -> Response {
    let published = try_publish(request, mqtt).await;
    published
        .map(|()| Json(json!({ "message": "OK" })))
        .into_response()
}

async fn try_publish(request: Request, mqtt: &Publisher) -> Result<(), Rejection> {
    if request.method() != Method::POST {
        return Err(Rejection {
            status: StatusCode::METHOD_NOT_ALLOWED,
            code: "MethodNotAllowedException",
            reason: format!("{} cannot publish", request.method()),
        });
    }
    let (head, body) = request.into_parts();
    let query = head.uri.query().unwrap_or_default();
    let mut message = message(head.uri.path(), query, &head.headers)?;
    let payload = to_bytes(body, MAX_PAYLOAD_BYTES).await;
    message.payload = payload.map_err(|error| Rejection {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        code: "RequestEntityTooLargeException",
        reason: format!("the payload may have {MAX_PAYLOAD_BYTES} bytes: {error}"),
    })?;
    mqtt.publish(message).await.map_err(|error| match error {
        PublishError::Limit(limit) => invalid(limit),
        PublishError::Broker(reason) => Rejection {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            code: "InternalFailureException",
            reason,
        },
    })
}

fn message(path: &str, query: &str, headers: &HeaderMap) -> Result<Message, Rejection> {
    let topic = path.strip_prefix(PATH).unwrap_or_default();
    let topic = percent_decode_str(topic).decode_utf8().map_err(invalid)?;
    let mut message = Message::new(topic, Bytes::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match (&*name, &*value) {
            ("qos", "0") | ("retain", "false") => {}
            ("qos", "1") => message.at_least_once = true,
            ("retain", "true") => message.retain = true,
            ("responseTopic", topic) => {
                message.properties.response_topic = Some(topic.to_owned());
            }
            ("contentType", content) => message.properties.content_type = Some(content.to_owned()),
            ("messageExpiry", seconds) => {
                let seconds: u32 = seconds.parse().map_err(invalid)?;
                message.properties.expiry_seconds = NonZeroU32::new(seconds);
            }
            ("qos" | "retain", value) => {
                return Err(invalid(format!("{name} cannot be {value:?}")));
            }
            // SDKs may add parameters.
            _ => {}
        }
    }
    properties(headers, &mut message.properties)?;
    Ok(message)
}

fn properties(headers: &HeaderMap, properties: &mut Properties) -> Result<(), Rejection> {
    let header = |name: &str| {
        let value = headers.get(name).map(|value| value.to_str());
        value.transpose().map_err(invalid)
    };
    if let Some(data) = header("x-amz-mqtt5-correlation-data")? {
        properties.correlation_data = Some(STANDARD.decode(data).map_err(invalid)?.into());
    }
    match header("x-amz-mqtt5-payload-format-indicator")? {
        None | Some("UNSPECIFIED_BYTES") => {}
        Some("UTF8_DATA") => properties.utf8 = true,
        Some(other) => return Err(invalid(format!("no payload format is {other:?}"))),
    }
    if let Some(user) = header("x-amz-mqtt5-user-properties")? {
        let json = STANDARD.decode(user).map_err(invalid)?;
        let pairs: Vec<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_slice(&json).map_err(invalid)?;
        for (name, value) in pairs.into_iter().flatten() {
            let serde_json::Value::String(value) = value else {
                return Err(invalid(format!("the user property {name:?} is not a text")));
            };
            properties.user.push((name, value));
        }
    }
    Ok(())
}

fn invalid(reason: impl ToString) -> Rejection {
    Rejection {
        status: StatusCode::BAD_REQUEST,
        code: "InvalidRequestException",
        reason: reason.to_string(),
    }
}
