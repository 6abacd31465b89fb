//! `delete`: deletes one message. Deleting a message that does not exist succeeds. One write.

use antumbra_service::inbox::MessageDeleter;
use antumbra_wire::inbox_request::ParsedRequest;
use serde_json::json;

use super::{message_id, respond, source};
use crate::{OperationError, RequestContext};

pub(crate) async fn delete(
    messages: &impl MessageDeleter,
    request: &ParsedRequest<'_>,
    context: &RequestContext,
) -> Result<String, OperationError> {
    let (source, id) = (source(request)?, message_id(request)?);
    messages.delete(&source, &id, context.now).await?;
    respond(&json!({ "messageId": id.as_str(), "uuid": source.as_str() }))
}
