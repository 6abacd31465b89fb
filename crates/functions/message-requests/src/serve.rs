//! What an operation is to the responder.

use std::future::Future;

use antumbra_service::inbox::{InvalidName, MessageId, Source};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::inbox_request::{Operation, ParsedRequest, RequestError, TopicNames};

/// One call of the function.
#[derive(Debug, Clone)]
pub struct RequestContext {
    /// When it began.
    pub now: Timestamp,
    /// Until when the request has to be served.
    pub until: Timestamp,
    /// The call's own id, which no other has.
    pub id: String,
}

/// Why a request was not served. The text is for whoever asked, so it says nothing of how we store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationError {
    /// It makes no sense as asked.
    Bad(String),
    /// It may be served a moment later. The reason is for the log.
    Unavailable(String),
    /// It cannot be served, and that is our fault. The reason is for the log.
    Internal(String),
}

impl OperationError {
    /// The code and the sentence that stand in the answer.
    pub(crate) fn told(&self) -> (&'static str, &str) {
        match self {
            OperationError::Bad(reason) => ("BadRequest", reason),
            OperationError::Unavailable(_) => {
                ("Unavailable", "Not available at the moment, try again")
            }
            OperationError::Internal(_) => ("Internal", "The request could not be served"),
        }
    }
}

impl From<StoreError> for OperationError {
    fn from(error: StoreError) -> OperationError {
        match error {
            StoreError::Invalid(reason) => OperationError::Bad(reason),
            StoreError::Throttled | StoreError::Unavailable(_) => {
                OperationError::Unavailable(error.to_string())
            }
            StoreError::NotFound | StoreError::Conflict { .. } | StoreError::TooLarge { .. } => {
                OperationError::Internal(error.to_string())
            }
        }
    }
}

impl From<InvalidName> for OperationError {
    fn from(error: InvalidName) -> OperationError {
        OperationError::Bad(error.to_string())
    }
}

impl From<RequestError> for OperationError {
    fn from(error: RequestError) -> OperationError {
        OperationError::Bad(error.to_string())
    }
}

/// Serves the requests of one operation.
pub trait InboxOperation: Send + Sync {
    /// Which.
    fn operation(&self) -> Operation;

    /// Does what is asked, and gives the answer's payload. It makes no other calls than its port's.
    fn serve(
        &self,
        asked: &ParsedRequest<'_>,
        call: &RequestContext,
    ) -> impl Future<Output = Result<String, OperationError>> + Send;
}

/// Whose messages a request is about.
pub(crate) fn source(named: TopicNames<'_>) -> Result<Source, OperationError> {
    Ok(Source::new(named.uuid)?)
}

/// Which message a request names.
pub(crate) fn message(named: TopicNames<'_>) -> Result<(Source, MessageId), OperationError> {
    Ok((source(named)?, MessageId::new(named.message_id)?))
}
