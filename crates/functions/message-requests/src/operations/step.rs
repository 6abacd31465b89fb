//! `next` and `prev`: return the id of the neighbouring message. Any id serves as a bound. One read each.

use antumbra_service::inbox::{MessageId, MessageIndex};
use antumbra_wire::inbox_request::ParsedRequest;
use antumbra_wire::inbox_response::InboxErrorResponse;
use serde::Serialize;

use super::{message_id, respond, respond_none, source};
use crate::OperationError;

/// The response has either the next or the previous id.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct StepResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    next_message_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_message_id: Option<&'a str>,
    specified_message_id: &'a str,
    uuid: &'a str,
}

pub(crate) async fn next(
    index: &impl MessageIndex,
    request: &ParsedRequest<'_>,
) -> Result<String, OperationError> {
    let (source, id) = (source(request)?, message_id(request)?);
    let found = index.next(&source, &id).await?;
    let Some(next) = found.as_ref().map(MessageId::as_str) else {
        return respond_no_neighbour(request, "No newer messages available");
    };
    respond(&StepResponse {
        next_message_id: Some(next),
        specified_message_id: id.as_str(),
        uuid: source.as_str(),
        ..StepResponse::default()
    })
}

pub(crate) async fn prev(
    index: &impl MessageIndex,
    request: &ParsedRequest<'_>,
) -> Result<String, OperationError> {
    let (source, id) = (source(request)?, message_id(request)?);
    let found = index.prev(&source, &id).await?;
    let Some(previous) = found.as_ref().map(MessageId::as_str) else {
        return respond_no_neighbour(request, "No older messages available");
    };
    respond(&StepResponse {
        previous_message_id: Some(previous),
        specified_message_id: id.as_str(),
        uuid: source.as_str(),
        ..StepResponse::default()
    })
}

fn respond_no_neighbour(
    request: &ParsedRequest<'_>,
    error: &str,
) -> Result<String, OperationError> {
    respond_none(InboxErrorResponse {
        error,
        specified_message_id: request.names.message_id,
        uuid: request.names.uuid,
        ..InboxErrorResponse::default()
    })
}
