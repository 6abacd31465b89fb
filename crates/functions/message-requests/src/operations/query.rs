//! `query`: returns the ids of the oldest and the newest message of a source. At most two reads.

use antumbra_service::inbox::{MessageIndex, span};
use antumbra_wire::inbox_request::ParsedRequest;
use antumbra_wire::inbox_response::InboxErrorResponse;
use serde_json::json;

use super::{respond, respond_none, source};
use crate::{OperationError, RequestContext};

pub(crate) async fn query(
    index: &impl MessageIndex,
    request: &ParsedRequest<'_>,
    _: &RequestContext,
) -> Result<String, OperationError> {
    let source = source(request)?;
    let uuid = source.as_str();
    match span(index, &source).await? {
        Some(span) => respond(&json!({
            "newestMessageId": span.newest.as_str(),
            "oldestMessageId": span.oldest.as_str(),
            "uuid": uuid,
        })),
        None => respond_none(InboxErrorResponse {
            error: "No messages available",
            uuid,
            ..InboxErrorResponse::default()
        }),
    }
}
