//! Errors in the words of SQS and SNS.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    pub code: &'static str,
    /// The code of the query protocol, if it differs.
    pub query_code: String,
    pub message: String,
    /// `true` if the caller is at fault.
    pub sender: bool,
}

impl ApiError {
    /// An error whose code is the same in both protocols.
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> ApiError {
        ApiError {
            code,
            query_code: code.to_owned(),
            message: message.into(),
            sender: true,
        }
    }

    /// An error with a code of its own in the query protocol.
    pub(crate) fn with_query_code(
        code: &'static str,
        query_code: &str,
        message: impl Into<String>,
    ) -> ApiError {
        ApiError {
            query_code: query_code.to_owned(),
            ..ApiError::new(code, message)
        }
    }

    /// An error of SQS whose code has a prefix in the query protocol.
    pub(crate) fn sqs(code: &'static str, message: impl Into<String>) -> ApiError {
        ApiError::with_query_code(code, &format!("AWS.SimpleQueueService.{code}"), message)
    }

    pub(crate) fn parameter(message: impl std::fmt::Display) -> ApiError {
        ApiError::new("InvalidParameter", format!("Invalid parameter: {message}"))
    }

    pub(crate) fn no_queue() -> ApiError {
        ApiError::with_query_code(
            "QueueDoesNotExist",
            "AWS.SimpleQueueService.NonExistentQueue",
            "The specified queue does not exist.",
        )
    }

    pub(crate) fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new("InvalidParameterValue", message)
    }

    pub(crate) fn missing(parameter: &str) -> ApiError {
        let message = format!("The request must contain the parameter {parameter}.");
        ApiError::new("MissingParameter", message)
    }

    pub(crate) fn journal(error: &std::io::Error) -> ApiError {
        ApiError {
            sender: false,
            ..ApiError::new(
                "InternalFailure",
                format!("the journal cannot be written: {error}"),
            )
        }
    }

    pub(crate) fn status(&self) -> http::StatusCode {
        match (self.sender, self.code) {
            (false, _) => http::StatusCode::INTERNAL_SERVER_ERROR,
            (true, "NotFound") => http::StatusCode::NOT_FOUND,
            (true, _) => http::StatusCode::BAD_REQUEST,
        }
    }
}
