//! One HTTP endpoint for four services: requests of SQS and EventBridge name their operation in a header, those of
//! AWS IoT have a path of their own, everything else is SNS.

use antumbra_queues::{Queues, eventbridge, sqs};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

use super::data_plane;
use crate::mqtt::Publisher;

/// The largest request: a full batch, with room for escapes and attributes.
const MAX_REQUEST_BYTES: usize = 8 * 1024 * 1024;

pub(super) fn router(queues: Queues, mqtt: Option<Publisher>) -> Router {
    Router::new().fallback(serve).with_state((queues, mqtt))
}

async fn serve(
    State((queues, mqtt)): State<(Queues, Option<Publisher>)>,
    request: Request,
) -> Response {
    if let Some(mqtt) = mqtt.filter(|_| request.uri().path().starts_with(data_plane::PATH)) {
        return data_plane::publish(request, &mqtt).await;
    }
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let response = match head.headers.get("x-amz-target") {
        Some(target) => {
            let target = target.to_str().unwrap_or_default();
            match target.strip_prefix(eventbridge::TARGET) {
                Some(operation) => queues.eventbridge(operation, &body),
                None => {
                    let operation = target.strip_prefix(sqs::TARGET).unwrap_or(target);
                    queues.sqs(operation, &body).await
                }
            }
        }
        None => queues.sns(&body),
    };
    response.map(Body::from)
}
