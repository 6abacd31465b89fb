//! What an operation is to the responder.

use std::future::Future;

use antumbra_service::inbox::{InvalidName, MessageId, Source};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::request::{Asked, Named, Operation, RequestError};

/// One call of the function.
#[derive(Debug, Clone)]
pub struct Call {
    /// When it began.
    pub now: Timestamp,
    /// Until when the request has to be served.
    pub until: Timestamp,
    /// The call's own id, which no other has.
    pub id: String,
}

/// Why a request was not served. The text is for whoever asked, so it says nothing of how we store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It makes no sense as asked.
    Bad(String),
    /// It may be served a moment later. The reason is for the log.
    Unavailable(String),
    /// It cannot be served, and that is our fault. The reason is for the log.
    Internal(String),
}

impl Failure {
    /// The code and the sentence that stand in the answer.
    pub(crate) fn told(&self) -> (&'static str, &str) {
        match self {
            Failure::Bad(reason) => ("BadRequest", reason),
            Failure::Unavailable(_) => ("Unavailable", "Not available at the moment, try again"),
            Failure::Internal(_) => ("Internal", "The request could not be served"),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        match error {
            StoreError::Invalid(reason) => Failure::Bad(reason),
            StoreError::Throttled | StoreError::Unavailable(_) => {
                Failure::Unavailable(error.to_string())
            }
            StoreError::TooLarge { .. } => Failure::Internal(error.to_string()),
        }
    }
}

impl From<InvalidName> for Failure {
    fn from(error: InvalidName) -> Failure {
        Failure::Bad(error.to_string())
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Failure {
        Failure::Bad(error.to_string())
    }
}

/// Serves the requests of one operation.
pub trait Serve: Send + Sync {
    /// Which.
    fn operation(&self) -> Operation;

    /// Does what is asked, and gives the answer's payload. It makes no other calls than its port's.
    fn serve(
        &self,
        asked: &Asked<'_>,
        call: &Call,
    ) -> impl Future<Output = Result<String, Failure>> + Send;
}

/// Whose messages a request is about.
pub(crate) fn source(named: Named<'_>) -> Result<Source, Failure> {
    Ok(Source::new(named.uuid)?)
}

/// Which message a request names.
pub(crate) fn message(named: Named<'_>) -> Result<(Source, MessageId), Failure> {
    Ok((source(named)?, MessageId::new(named.message_id)?))
}
