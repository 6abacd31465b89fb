//! `get`: one message.

use antumbra_service::inbox::Get;
use antumbra_wire::answer::{Answer, Refusal};
use antumbra_wire::request::{Asked, Operation};

use super::nothing;
use crate::serve::{Call, Failure, Serve, message};

/// One read.
#[derive(Debug, Clone)]
pub struct GetMessage<P>(pub P);

impl<P: Get> Serve for GetMessage<P> {
    fn operation(&self) -> Operation {
        Operation::Get
    }

    async fn serve(&self, asked: &Asked<'_>, _: &Call) -> Result<String, Failure> {
        let (source, id) = message(asked.named)?;
        let (uuid, message_id) = (source.as_str(), id.as_str());
        match self.0.get(&source, &id).await? {
            Some(message) => Ok(Answer::Message {
                body: raw(message.body.as_json())?,
                message_id,
                uuid,
            }
            .to_json()),
            None => nothing(Refusal {
                error: "Message not available",
                message_id,
                uuid,
                ..Refusal::default()
            }),
        }
    }
}

/// A body as it was written. A store that kept something else broke its law.
pub(super) fn raw(json: &str) -> Result<&serde_json::value::RawValue, Failure> {
    serde_json::from_str(json).map_err(|fault| Failure::Internal(fault.to_string()))
}
