//! `query`: returns the ids of the oldest and the newest message of a source. At most two reads.

use antumbra_service::inbox::{MessageIndex, span};
use antumbra_wire::inbox_request::ParsedRequest;
use antumbra_wire::inbox_response::InboxErrorResponse;
use serde::Serialize;

use super::{respond, respond_none, source};
use crate::OperationError;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct QueryResponse<'a> {
    newest_message_id: &'a str,
    oldest_message_id: &'a str,
    uuid: &'a str,
}

pub(crate) async fn query(
    index: &impl MessageIndex,
    request: &ParsedRequest<'_>,
) -> Result<String, OperationError> {
    let source = source(request)?;
    let uuid = source.as_str();
    match span(index, &source).await? {
        Some(span) => respond(&QueryResponse {
            newest_message_id: span.newest.as_str(),
            oldest_message_id: span.oldest.as_str(),
            uuid,
        }),
        None => respond_none(InboxErrorResponse {
            error: "No messages available",
            uuid,
            ..InboxErrorResponse::default()
        }),
    }
}
