//! `send`: sends a message for a device to the outbound queue, from which others pass it to the device.
//!
//! A FIFO queue accepts the same idempotency key for the same device once in five minutes, and keeps the order
//! of each device's messages. A standard queue does neither; the key is in the message for the reader to
//! compare.

use std::future::Future;
use std::sync::Arc;

use antumbra_service::clock::Clock;
use antumbra_service::notifications::{Channel, Message, SendFailure, dispatch_one};
use antumbra_shadow::Timestamp;
use antumbra_wire::inbox_request::ParsedRequest;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{respond, source};
use crate::{OperationError, RequestContext};

const KEY_CHARS: usize = 128;

pub trait OutboundQueue: Send + Sync {
    /// Sends a message, and retries until the deadline.
    fn send(
        &self,
        message: Message,
        until: Timestamp,
    ) -> impl Future<Output = Result<(), SendFailure>> + Send;
}

pub struct Outbound {
    pub queue: Arc<dyn Channel>,
    pub clock: Arc<dyn Clock>,
}

impl OutboundQueue for Outbound {
    async fn send(&self, message: Message, until: Timestamp) -> Result<(), SendFailure> {
        dispatch_one(Arc::clone(&self.queue), message, until, &*self.clock).await
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutboundMessage<'a> {
    idempotency_key: &'a str,
    message: &'a RawValue,
    uuid: &'a str,
}

pub(crate) async fn send(
    outbound: &impl OutboundQueue,
    request: &ParsedRequest<'_>,
    context: &RequestContext,
) -> Result<String, OperationError> {
    let source = source(request)?;
    let uuid = source.as_str();
    let parameters = request.payload.send()?;
    // Without a key of the sender's, every invocation sends its own message.
    let key = parameters.idempotency_key.as_deref().unwrap_or(&context.id);
    if !(1..=KEY_CHARS).contains(&key.len()) || !key.bytes().all(|b| b.is_ascii_graphic()) {
        let error = format!("idempotencyKey must have 1 to {KEY_CHARS} ASCII characters, no space");
        return Err(OperationError::Bad(error));
    }
    let message = Message {
        // The same key for another device is another message.
        id: format!("{uuid}/{key}"),
        key: uuid.to_owned(),
        body: respond(&OutboundMessage {
            idempotency_key: key,
            message: parameters.message,
            uuid,
        })?,
        ..Message::default()
    };
    let sent = outbound.send(message, context.until).await;
    sent.map_err(|failure| match failure {
        SendFailure::Rejected(reason) => OperationError::Internal(reason),
        SendFailure::Late => {
            OperationError::Unavailable("the outbound queue did not accept it in time".to_owned())
        }
    })?;
    respond(&json!({ "idempotencyKey": key, "uuid": uuid }))
}
