//! `delete`: deletes one message. Deleting a message that does not exist succeeds. One write.

use antumbra_service::inbox::MessageDeleter;
use antumbra_shadow::Timestamp;
use antumbra_wire::inbox_request::ParsedRequest;
use serde::Serialize;

use super::{message_id, respond, source};
use crate::OperationError;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeleteResponse<'a> {
    message_id: &'a str,
    uuid: &'a str,
}

pub(crate) async fn delete(
    messages: &impl MessageDeleter,
    request: &ParsedRequest<'_>,
    now: Timestamp,
) -> Result<String, OperationError> {
    let (source, id) = (source(request)?, message_id(request)?);
    messages.delete(&source, &id, now).await?;
    respond(&DeleteResponse {
        message_id: id.as_str(),
        uuid: source.as_str(),
    })
}
