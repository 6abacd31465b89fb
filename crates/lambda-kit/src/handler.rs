//! The interface between a function and its caller: the Lambda runtime, the local stack or the simulation.

use antumbra_shadow::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use lambda_runtime::Diagnostic;
use serde::Serialize;

use crate::metrics::Metric;

#[derive(Debug, Clone)]
pub struct Invocation {
    /// The event's JSON, not parsed yet.
    pub event: Bytes,
    /// Lambda ends the invocation at this time.
    pub deadline: Timestamp,
    pub request_id: String,
}

#[derive(Debug, Clone)]
pub struct Response {
    /// JSON that Lambda returns to the event source.
    pub payload: Bytes,
    /// Metrics of the invocation. The runtime adds `duration` unless it is among them.
    pub metrics: Vec<Metric>,
}

/// Error that fails the whole invocation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HandlerError {
    /// Error type in Lambda's error response, such as `EventError`.
    pub kind: &'static str,
    pub message: String,
}

/// A function after its wiring: `build` of each function crate returns one.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Handles one invocation and stops before its deadline.
    async fn handle(&self, invocation: Invocation) -> Result<Response, HandlerError>;
}

impl Response {
    pub fn json(payload: &impl Serialize, metrics: Vec<Metric>) -> Result<Response, HandlerError> {
        let payload = serde_json::to_vec(payload)
            .map_err(|error| HandlerError::new("ResponseError", error))?;
        Ok(Response {
            payload: payload.into(),
            metrics,
        })
    }

    /// Response of a function whose caller reads none.
    pub fn empty(metrics: Vec<Metric>) -> Response {
        Response {
            payload: Bytes::from_static(b"null"),
            metrics,
        }
    }
}

impl HandlerError {
    pub fn new(kind: &'static str, error: impl ToString) -> HandlerError {
        HandlerError {
            kind,
            message: error.to_string(),
        }
    }

    /// The event is not of the kind that the function expects.
    pub fn event(error: impl ToString) -> HandlerError {
        HandlerError::new("EventError", error)
    }
}

impl From<HandlerError> for Diagnostic {
    fn from(error: HandlerError) -> Diagnostic {
        Diagnostic {
            error_type: error.kind.to_owned(),
            error_message: error.message,
        }
    }
}
