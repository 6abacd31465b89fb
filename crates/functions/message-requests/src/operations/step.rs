//! `next` and `prev`: return the id of the neighbouring message. Any id serves as a bound. One read each.

use antumbra_service::inbox::{MessageId, MessageIndex};
use antumbra_wire::inbox_request::ParsedRequest;
use antumbra_wire::inbox_response::InboxErrorResponse;
use serde_json::json;

use super::{message_id, respond, respond_none, source};
use crate::{OperationError, RequestContext};

pub(crate) async fn next(
    index: &impl MessageIndex,
    request: &ParsedRequest<'_>,
    _: &RequestContext,
) -> Result<String, OperationError> {
    let next = index.next(&source(request)?, &message_id(request)?).await?;
    respond_neighbour(
        request,
        "nextMessageId",
        next,
        "No newer messages available",
    )
}

pub(crate) async fn prev(
    index: &impl MessageIndex,
    request: &ParsedRequest<'_>,
    _: &RequestContext,
) -> Result<String, OperationError> {
    let previous = index.prev(&source(request)?, &message_id(request)?).await?;
    respond_neighbour(
        request,
        "previousMessageId",
        previous,
        "No older messages available",
    )
}

fn respond_neighbour(
    request: &ParsedRequest<'_>,
    member: &str,
    neighbour: Option<MessageId>,
    error: &str,
) -> Result<String, OperationError> {
    let (specified_message_id, uuid) = (request.names.message_id, request.names.uuid);
    match neighbour {
        Some(id) => respond(&json!({
            member: id.as_str(),
            "specifiedMessageId": specified_message_id,
            "uuid": uuid,
        })),
        None => respond_none(InboxErrorResponse {
            error,
            specified_message_id,
            uuid,
            ..InboxErrorResponse::default()
        }),
    }
}
