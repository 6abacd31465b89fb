//! `get`: returns one message. One read.

use antumbra_service::inbox::MessageReader;
use antumbra_wire::inbox_request::ParsedRequest;
use antumbra_wire::inbox_response::InboxErrorResponse;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{message_id, respond, respond_none, source};
use crate::{OperationError, RequestContext};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GetResponse<'a> {
    body: &'a RawValue,
    message_id: &'a str,
    uuid: &'a str,
}

pub(crate) async fn get(
    messages: &impl MessageReader,
    request: &ParsedRequest<'_>,
    _: &RequestContext,
) -> Result<String, OperationError> {
    let (source, id) = (source(request)?, message_id(request)?);
    let (uuid, message_id) = (source.as_str(), id.as_str());
    match messages.get(&source, &id).await? {
        Some(message) => respond(&GetResponse {
            body: serde_json::from_str(message.body.as_json())?,
            message_id,
            uuid,
        }),
        None => respond_none(InboxErrorResponse {
            error: "Message not available",
            message_id,
            uuid,
            ..InboxErrorResponse::default()
        }),
    }
}
