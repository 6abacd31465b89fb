//! `next` and `prev`: from one message to its neighbour. Any id serves as a bound.

use antumbra_service::inbox::Query;
use antumbra_wire::answer::{Answer, Refusal};
use antumbra_wire::request::{Asked, Operation};

use super::nothing;
use crate::serve::{Call, Failure, Serve, message};

/// One read.
#[derive(Debug, Clone)]
pub struct NextMessage<P>(pub P);

impl<P: Query> Serve for NextMessage<P> {
    fn operation(&self) -> Operation {
        Operation::Next
    }

    async fn serve(&self, asked: &Asked<'_>, _: &Call) -> Result<String, Failure> {
        let (source, id) = message(asked.named)?;
        let (uuid, specified_message_id) = (source.as_str(), id.as_str());
        match self.0.next(&source, &id).await? {
            Some(next) => Ok(Answer::Next {
                next_message_id: next.as_str(),
                specified_message_id,
                uuid,
            }
            .to_json()),
            None => nothing(Refusal {
                error: "No newer messages available",
                specified_message_id,
                uuid,
                ..Refusal::default()
            }),
        }
    }
}

/// One read.
#[derive(Debug, Clone)]
pub struct PreviousMessage<P>(pub P);

impl<P: Query> Serve for PreviousMessage<P> {
    fn operation(&self) -> Operation {
        Operation::Prev
    }

    async fn serve(&self, asked: &Asked<'_>, _: &Call) -> Result<String, Failure> {
        let (source, id) = message(asked.named)?;
        let (uuid, specified_message_id) = (source.as_str(), id.as_str());
        match self.0.prev(&source, &id).await? {
            Some(previous) => Ok(Answer::Previous {
                previous_message_id: previous.as_str(),
                specified_message_id,
                uuid,
            }
            .to_json()),
            None => nothing(Refusal {
                error: "No older messages available",
                specified_message_id,
                uuid,
                ..Refusal::default()
            }),
        }
    }
}
