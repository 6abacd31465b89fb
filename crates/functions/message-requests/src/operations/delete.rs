//! `delete`: one message, gone. That there was none is no error.

use antumbra_service::inbox::Delete;
use antumbra_wire::answer::Answer;
use antumbra_wire::request::{Asked, Operation};

use crate::serve::{Call, Failure, Serve, message};

/// One write.
#[derive(Debug, Clone)]
pub struct DeleteMessage<P>(pub P);

impl<P: Delete> Serve for DeleteMessage<P> {
    fn operation(&self) -> Operation {
        Operation::Delete
    }

    async fn serve(&self, asked: &Asked<'_>, call: &Call) -> Result<String, Failure> {
        let (source, id) = message(asked.named)?;
        self.0.delete(&source, &id, call.now).await?;
        Ok(Answer::Deleted {
            message_id: id.as_str(),
            uuid: source.as_str(),
        }
        .to_json())
    }
}
