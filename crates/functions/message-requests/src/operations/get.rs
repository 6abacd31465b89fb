//! `get`: one message.

use antumbra_service::inbox::MessageReader;
use antumbra_wire::inbox_request::{Operation, ParsedRequest};
use antumbra_wire::inbox_response::{InboxErrorResponse, InboxResponse};

use super::nothing;
use crate::serve::{InboxOperation, OperationError, RequestContext, message};

/// One read.
#[derive(Debug, Clone)]
pub struct GetMessage<P>(pub P);

impl<P: MessageReader> InboxOperation for GetMessage<P> {
    fn operation(&self) -> Operation {
        Operation::Get
    }

    async fn serve(
        &self,
        asked: &ParsedRequest<'_>,
        _: &RequestContext,
    ) -> Result<String, OperationError> {
        let (source, id) = message(asked.named)?;
        let (uuid, message_id) = (source.as_str(), id.as_str());
        match self.0.get(&source, &id).await? {
            Some(message) => Ok(InboxResponse::Message {
                body: raw(message.body.as_json())?,
                message_id,
                uuid,
            }
            .to_json()),
            None => nothing(InboxErrorResponse {
                error: "Message not available",
                message_id,
                uuid,
                ..InboxErrorResponse::default()
            }),
        }
    }
}

/// A body as it was written. A store that kept something else broke its law.
pub(super) fn raw(json: &str) -> Result<&serde_json::value::RawValue, OperationError> {
    serde_json::from_str(json).map_err(|fault| OperationError::Internal(fault.to_string()))
}
