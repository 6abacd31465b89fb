//! `next` and `prev`: from one message to its neighbour. Any id serves as a bound.

use antumbra_service::inbox::MessageIndex;
use antumbra_wire::inbox_request::{Operation, ParsedRequest};
use antumbra_wire::inbox_response::{InboxErrorResponse, InboxResponse};

use super::nothing;
use crate::serve::{InboxOperation, OperationError, RequestContext, message};

/// One read.
#[derive(Debug, Clone)]
pub struct NextMessage<P>(pub P);

impl<P: MessageIndex> InboxOperation for NextMessage<P> {
    fn operation(&self) -> Operation {
        Operation::Next
    }

    async fn serve(
        &self,
        asked: &ParsedRequest<'_>,
        _: &RequestContext,
    ) -> Result<String, OperationError> {
        let (source, id) = message(asked.named)?;
        let (uuid, specified_message_id) = (source.as_str(), id.as_str());
        match self.0.next(&source, &id).await? {
            Some(next) => Ok(InboxResponse::Next {
                next_message_id: next.as_str(),
                specified_message_id,
                uuid,
            }
            .to_json()),
            None => nothing(InboxErrorResponse {
                error: "No newer messages available",
                specified_message_id,
                uuid,
                ..InboxErrorResponse::default()
            }),
        }
    }
}

/// One read.
#[derive(Debug, Clone)]
pub struct PreviousMessage<P>(pub P);

impl<P: MessageIndex> InboxOperation for PreviousMessage<P> {
    fn operation(&self) -> Operation {
        Operation::Prev
    }

    async fn serve(
        &self,
        asked: &ParsedRequest<'_>,
        _: &RequestContext,
    ) -> Result<String, OperationError> {
        let (source, id) = message(asked.named)?;
        let (uuid, specified_message_id) = (source.as_str(), id.as_str());
        match self.0.prev(&source, &id).await? {
            Some(previous) => Ok(InboxResponse::Previous {
                previous_message_id: previous.as_str(),
                specified_message_id,
                uuid,
            }
            .to_json()),
            None => nothing(InboxErrorResponse {
                error: "No older messages available",
                specified_message_id,
                uuid,
                ..InboxErrorResponse::default()
            }),
        }
    }
}
