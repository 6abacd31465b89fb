//! `send`: a message for a device, put in the outbound queue for whoever reaches the device.
//!
//! A FIFO queue takes a message with the same idempotency key for the same device only once in five
//! minutes, and keeps the order of each device's messages. A standard queue does neither: the key is in the
//! message, for the reader to tell.

use std::sync::Arc;

use antumbra_service::clock::Clock;
use antumbra_service::notifications::{Channel, Message, SendFailure, dispatch_one};
use antumbra_wire::inbox_request::{Operation, ParsedRequest};
use antumbra_wire::inbox_response::InboxResponse;
use serde::Serialize;
use serde_json::value::RawValue;

use super::get::raw;
use crate::serve::{InboxOperation, OperationError, RequestContext, source};

/// Characters of an idempotency key.
const KEY_CHARS: usize = 128;

/// One message sent.
pub struct SendMessage {
    outbound: Arc<dyn Channel>,
    clock: Arc<dyn Clock>,
}

/// The message in the queue.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outbound<'a> {
    idempotency_key: &'a str,
    message: &'a RawValue,
    uuid: &'a str,
}

impl SendMessage {
    /// Into the queue that the channel leads to.
    pub fn new(outbound: Arc<dyn Channel>, clock: Arc<dyn Clock>) -> SendMessage {
        SendMessage { outbound, clock }
    }
}

impl InboxOperation for SendMessage {
    fn operation(&self) -> Operation {
        Operation::Send
    }

    async fn serve(
        &self,
        asked: &ParsedRequest<'_>,
        call: &RequestContext,
    ) -> Result<String, OperationError> {
        let source = source(asked.named)?;
        let uuid = source.as_str();
        let members = asked.members.send()?;
        // Without a key of the sender's, every call sends a message of its own.
        let key = members.idempotency_key.as_deref().unwrap_or(&call.id);
        if !(1..=KEY_CHARS).contains(&key.len()) || !key.bytes().all(|b| b.is_ascii_graphic()) {
            let told =
                format!("idempotencyKey must have 1 to {KEY_CHARS} ASCII characters, no space");
            return Err(OperationError::Bad(told));
        }
        let body = serde_json::to_string(&Outbound {
            idempotency_key: key,
            message: raw(members.message)?,
            uuid,
        });
        let message = Message {
            // A key is its device's own: another's with the same key is another message.
            id: format!("{uuid}/{key}"),
            key: uuid.to_owned(),
            body: body.map_err(|fault| OperationError::Internal(fault.to_string()))?,
            ..Message::default()
        };
        let outbound = Arc::clone(&self.outbound);
        let sent = dispatch_one(outbound, message, call.until, &self.clock).await;
        sent.map_err(|unsent| match unsent {
            SendFailure::Rejected(reason) => OperationError::Internal(reason),
            SendFailure::Late => {
                OperationError::Unavailable("the outbound queue took nothing in time".to_owned())
            }
        })?;
        Ok(InboxResponse::Sent {
            idempotency_key: key,
            uuid,
        }
        .to_json())
    }
}
