//! From the bytes of an event to the one answer: read, serve, publish.

use std::sync::Arc;
use std::time::Duration;

use antumbra_lambda_kit::metrics::Metric;
use antumbra_lambda_kit::{Handler, HandlerError, Invocation, Response};
use antumbra_service::clock::{Clock, Reserve, time_left};
use antumbra_service::notifications::{BoxFuture, Channel, Message, SendFailure, dispatch_one};
use antumbra_shadow::Timestamp;
use antumbra_wire::events::rule::{RuleEvent, RuleEventError};
use antumbra_wire::inbox_request::{
    Operation, ParsedRequest, Request, RequestError, ResponseAddress, TopicNames, read,
};
use antumbra_wire::inbox_response::InboxErrorResponse;
use antumbra_wire::limits::REQUEST_BYTES;

use crate::serve::{InboxOperation, RequestContext};

/// Time kept for publishing the answer, and the part of all there is that this may be at most.
const ANSWERING: Reserve = Reserve {
    time: Duration::from_millis(2500),
    share: 4,
};
/// The same for the end of the invocation.
const ENDING: Reserve = Reserve {
    time: Duration::from_millis(300),
    share: 8,
};

/// Answers requests of one operation.
pub struct Responder<S> {
    serve: S,
    answers: Arc<dyn Channel>,
    clock: Arc<dyn Clock>,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSummary {
    operation: Operation,
    /// The code of the error that was answered, if it was one.
    pub code: Option<&'static str>,
    /// Whether the request did not say where its answer goes to.
    pub rejected: bool,
}

/// Why there was no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// It was no request.
    #[error(transparent)]
    Event(#[from] RuleEventError),
    /// The answer could not be published.
    #[error("no answer could be published: {0}")]
    Unanswered(String),
}

impl HandleError {
    /// The type of the error, as Lambda reports it.
    pub fn kind(&self) -> &'static str {
        match self {
            HandleError::Event(_) => "EventError",
            HandleError::Unanswered(_) => "Unanswered",
        }
    }
}

impl RequestSummary {
    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::count("requests", 1),
            Metric::count("errors", usize::from(self.code.is_some())),
            Metric::count("rejected", usize::from(self.rejected)),
        ]
    }
}

/// The payload of an answer, and the code of the error it tells of.
struct Said {
    payload: String,
    code: Option<&'static str>,
}

impl<S: InboxOperation> Responder<S> {
    /// Publishes its answers through the given channel.
    pub fn new(serve: S, answers: Arc<dyn Channel>, clock: Arc<dyn Clock>) -> Responder<S> {
        Responder {
            serve,
            answers,
            clock,
        }
    }

    /// The operation that it serves.
    pub fn operation(&self) -> Operation {
        self.serve.operation()
    }

    /// Handles the event of a rule. `id` is the invocation's own.
    pub async fn respond(
        &self,
        event: &[u8],
        id: &str,
        deadline: Timestamp,
    ) -> Result<RequestSummary, HandleError> {
        let now = self.clock.now();
        let event = RuleEvent::decode(event)?;
        let operation = self.serve.operation();
        let Request { address, asked } = read(&event, operation);
        let said = match &asked {
            Ok(asked) => {
                let call = RequestContext {
                    now,
                    until: ANSWERING.deadline(deadline, now),
                    id: id.to_owned(),
                };
                within_limits(asked.named, operation, self.serve(asked, &call).await)
            }
            Err(error) => refused(error),
        };
        if let Some(code) = said.code {
            let operation = operation.word();
            tracing::warn!(operation, code, "a request was refused");
        }
        let named = asked.map(|asked| asked.named).unwrap_or_default();
        let until = ENDING.deadline(deadline, now);
        let code = self.publish(&address, said, named, until).await?;
        Ok(RequestSummary {
            operation,
            code,
            rejected: address.rejected,
        })
    }

    async fn serve(&self, asked: &ParsedRequest<'_>, call: &RequestContext) -> Said {
        let time = time_left(self.clock.now(), call.until);
        let operation = self.serve.operation();
        // In a box: the compiler loses itself in what a call of an SDK is made of.
        let served = Box::pin(self.serve.serve(asked, call));
        let (code, error) = match tokio::time::timeout(time, served).await {
            Ok(Ok(payload)) => {
                return Said {
                    payload,
                    code: None,
                };
            }
            Ok(Err(failure)) => {
                tracing::warn!(operation = operation.word(), ?failure, "not served");
                let (code, error) = failure.told();
                (code, error.to_owned())
            }
            Err(_) => ("Unavailable", "It took too long, try again".to_owned()),
        };
        let refusal = InboxErrorResponse {
            error: &error,
            code: Some(code),
            ..about(asked.named, operation)
        };
        Said {
            payload: refusal.to_json(),
            code: Some(code),
        }
    }

    /// Publishes the one answer; to the second address if the first, which the sender chose, is refused.
    async fn publish(
        &self,
        address: &ResponseAddress,
        said: Said,
        named: TopicNames<'_>,
        until: Timestamp,
    ) -> Result<Option<&'static str>, HandleError> {
        let answer = |topic: &str, body: String| Message {
            id: topic.to_owned(),
            key: topic.to_owned(),
            body,
            topic: Some(topic.to_owned()),
            qos: 1,
            correlation_data: address.correlation_data.clone(),
            ..Message::default()
        };
        let first = self.send(answer(&address.topic, said.payload), until).await;
        let (refused, topic) = match (first, &address.otherwise) {
            (Ok(()), _) => return Ok(said.code),
            (Err(SendFailure::Rejected(reason)), Some(topic)) => (reason, topic),
            (Err(unsent), _) => return Err(unanswered(&unsent)),
        };
        tracing::warn!(reason = refused, "a response topic was refused");
        let code = "BadRequest";
        let refusal = InboxErrorResponse {
            error: "The request was served, but nothing can be published to its response topic",
            code: Some(code),
            ..about(named, self.serve.operation())
        };
        let second = self.send(answer(topic, refusal.to_json()), until).await;
        second
            .map(|()| Some(code))
            .map_err(|unsent| unanswered(&unsent))
    }

    async fn send(&self, message: Message, until: Timestamp) -> Result<(), SendFailure> {
        dispatch_one(Arc::clone(&self.answers), message, until, &self.clock).await
    }
}

impl<S: InboxOperation> Handler for Responder<S> {
    fn handle(&self, invocation: Invocation) -> BoxFuture<'_, Result<Response, HandlerError>> {
        Box::pin(async move {
            let Invocation {
                event,
                deadline,
                request_id,
            } = invocation;
            let summary = self.respond(&event, &request_id, deadline).await;
            let summary = summary.map_err(|error| HandlerError::new(error.kind(), error))?;
            Ok(Response::empty(summary.metrics()))
        })
    }
}

fn unanswered(unsent: &SendFailure) -> HandleError {
    HandleError::Unanswered(unsent.to_string())
}

fn refused(error: &RequestError) -> Said {
    let bytes = match error {
        RequestError::TooLarge { bytes } => Some(*bytes),
        RequestError::BadRequest(_) => None,
    };
    let refusal = InboxErrorResponse {
        error: &error.to_string(),
        code: Some(error.code()),
        bytes,
        ..InboxErrorResponse::default()
    };
    Said {
        payload: refusal.to_json(),
        code: Some(error.code()),
    }
}

/// The answer, or if it is larger than MQTT allows, the answer that says so.
fn within_limits(named: TopicNames<'_>, operation: Operation, said: Said) -> Said {
    let bytes = said.payload.len();
    if bytes <= REQUEST_BYTES {
        return said;
    }
    let code = "TooLarge";
    let error = format!("The answer has {bytes} bytes, the limit is {REQUEST_BYTES}");
    let refusal = InboxErrorResponse {
        error: &error,
        code: Some(code),
        bytes: Some(bytes),
        ..about(named, operation)
    };
    Said {
        payload: refusal.to_json(),
        code: Some(code),
    }
}

/// A refusal that repeats what the request named, each under the name that the operation has for it.
fn about(named: TopicNames<'_>, operation: Operation) -> InboxErrorResponse<'_> {
    let bound = matches!(operation, Operation::Next | Operation::Prev);
    let id = named.message_id;
    InboxErrorResponse {
        message_id: if bound { "" } else { id },
        specified_message_id: if bound { id } else { "" },
        uuid: named.uuid,
        ..InboxErrorResponse::default()
    }
}
