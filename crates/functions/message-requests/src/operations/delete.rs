//! `delete`: one message, gone. That there was none is no error.

use antumbra_service::inbox::MessageDeleter;
use antumbra_wire::inbox_request::{Operation, ParsedRequest};
use antumbra_wire::inbox_response::InboxResponse;

use crate::serve::{InboxOperation, OperationError, RequestContext, message};

/// One write.
#[derive(Debug, Clone)]
pub struct DeleteMessage<P>(pub P);

impl<P: MessageDeleter> InboxOperation for DeleteMessage<P> {
    fn operation(&self) -> Operation {
        Operation::Delete
    }

    async fn serve(
        &self,
        asked: &ParsedRequest<'_>,
        call: &RequestContext,
    ) -> Result<String, OperationError> {
        let (source, id) = message(asked.named)?;
        self.0.delete(&source, &id, call.now).await?;
        Ok(InboxResponse::Deleted {
            message_id: id.as_str(),
            uuid: source.as_str(),
        }
        .to_json())
    }
}
