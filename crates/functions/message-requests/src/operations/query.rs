//! `query`: the oldest and the newest message of a source.

use antumbra_service::inbox::{Query, span};
use antumbra_wire::answer::{Answer, Refusal};
use antumbra_wire::request::{Asked, Operation};

use super::nothing;
use crate::serve::{Call, Failure, Serve, source};

/// Two reads at most.
#[derive(Debug, Clone)]
pub struct QueryMessages<P>(pub P);

impl<P: Query> Serve for QueryMessages<P> {
    fn operation(&self) -> Operation {
        Operation::Query
    }

    async fn serve(&self, asked: &Asked<'_>, _: &Call) -> Result<String, Failure> {
        let source = source(asked.named)?;
        let uuid = source.as_str();
        match span(&self.0, &source).await? {
            Some(span) => Ok(Answer::Span {
                newest_message_id: span.newest.as_str(),
                oldest_message_id: span.oldest.as_str(),
                uuid,
            }
            .to_json()),
            None => nothing(Refusal {
                error: "No messages available",
                uuid,
                ..Refusal::default()
            }),
        }
    }
}
