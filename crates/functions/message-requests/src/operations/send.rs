//! `send`: sends a message for a device to the outbound queue.

use antumbra_service::inbox::{OutboundError, OutboundQueue};
use antumbra_wire::inbox_request::ParsedRequest;
use serde_json::json;

use super::{respond, source};
use crate::{OperationError, RequestContext};

pub(crate) async fn send(
    outbound: &impl OutboundQueue,
    request: &ParsedRequest<'_>,
    context: &RequestContext,
) -> Result<String, OperationError> {
    let source = source(request)?;
    let parameters = request.payload.send()?;
    // Without a key of the sender's, every invocation sends its own message.
    let key = parameters.idempotency_key.as_deref().unwrap_or(&context.id);
    let sent = outbound.send(&source, key, parameters.message, context.until);
    sent.await.map_err(|error| match error {
        OutboundError::InvalidKey | OutboundError::TooLarge { .. } => {
            OperationError::Bad(error.to_string())
        }
        OutboundError::Rejected(reason) => OperationError::Internal(reason),
        OutboundError::Late => OperationError::Unavailable(error.to_string()),
    })?;
    respond(&json!({ "idempotencyKey": key, "uuid": source.as_str() }))
}
