//! Errors of operations, and the code and message of their error responses.

use antumbra_service::store::StoreError;
use antumbra_service::text::InvalidText;
use antumbra_wire::inbox_request::RequestError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationError {
    /// The request is invalid. The reason is sent to the caller.
    Bad(String),
    /// A later attempt may succeed. The reason is logged.
    Unavailable(String),
    /// The service or its data is at fault; another attempt would fail too. The reason is logged.
    Internal(String),
}

impl OperationError {
    /// Returns code and message for the response. They contain no details of the storage.
    pub(crate) fn response(&self) -> (&'static str, &str) {
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
            _ if error.is_retryable() => OperationError::Unavailable(error.to_string()),
            _ => OperationError::Internal(error.to_string()),
        }
    }
}

impl From<InvalidText> for OperationError {
    fn from(error: InvalidText) -> OperationError {
        OperationError::Bad(error.to_string())
    }
}

impl From<RequestError> for OperationError {
    fn from(error: RequestError) -> OperationError {
        OperationError::Bad(error.to_string())
    }
}

impl From<serde_json::Error> for OperationError {
    fn from(error: serde_json::Error) -> OperationError {
        OperationError::Internal(error.to_string())
    }
}
