//! `query`: the oldest and the newest message of a source.

use antumbra_service::inbox::{MessageIndex, span};
use antumbra_wire::inbox_request::{Operation, ParsedRequest};
use antumbra_wire::inbox_response::{InboxErrorResponse, InboxResponse};

use super::nothing;
use crate::serve::{InboxOperation, OperationError, RequestContext, source};

/// Two reads at most.
#[derive(Debug, Clone)]
pub struct QueryMessages<P>(pub P);

impl<P: MessageIndex> InboxOperation for QueryMessages<P> {
    fn operation(&self) -> Operation {
        Operation::Query
    }

    async fn serve(
        &self,
        asked: &ParsedRequest<'_>,
        _: &RequestContext,
    ) -> Result<String, OperationError> {
        let source = source(asked.named)?;
        let uuid = source.as_str();
        match span(&self.0, &source).await? {
            Some(span) => Ok(InboxResponse::Span {
                newest_message_id: span.newest.as_str(),
                oldest_message_id: span.oldest.as_str(),
                uuid,
            }
            .to_json()),
            None => nothing(InboxErrorResponse {
                error: "No messages available",
                uuid,
                ..InboxErrorResponse::default()
            }),
        }
    }
}
