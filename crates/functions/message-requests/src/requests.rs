//! One request: parse, serve, publish the response.

use std::sync::Arc;

use antumbra_lambda_kit::metrics::Metric;
use antumbra_lambda_kit::respond::{Responder, unpublished};
use antumbra_lambda_kit::{Handler, HandlerError, Invocation, Response};
use antumbra_service::clock::Clock;
use antumbra_service::notifications::{Channel, SendFailure};
use antumbra_shadow::Timestamp;
use antumbra_wire::events::rule::RuleEvent;
use antumbra_wire::inbox_request::{
    ParsedRequest, RequestError, ResponseAddress, TopicNames, parse,
};
use antumbra_wire::inbox_response::InboxErrorResponse;
use antumbra_wire::limits::REQUEST_BYTES;
use antumbra_wire::rules::Operation;
use async_trait::async_trait;

use crate::config::RequestsConfig;
use crate::operations::{InboxFunction, RequestContext};

pub struct InboxRequests<F> {
    function: F,
    config: RequestsConfig,
    responder: Responder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSummary {
    /// Code of the error response, if it was one.
    pub code: Option<&'static str>,
    /// The request had no usable response address.
    pub rejected: bool,
}

impl RequestSummary {
    pub fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::count("requests", 1),
            Metric::count("errors", usize::from(self.code.is_some())),
            Metric::count("rejected", usize::from(self.rejected)),
        ]
    }
}

/// Payload of a response, and its error code if it is an error.
struct Payload {
    json: String,
    code: Option<&'static str>,
}

impl Payload {
    fn error(code: &'static str, response: InboxErrorResponse<'_>) -> Payload {
        let response = InboxErrorResponse {
            code: Some(code),
            ..response
        };
        Payload {
            json: response.to_json(),
            code: Some(code),
        }
    }

    fn invalid_request(error: &RequestError) -> Payload {
        let bytes = match error {
            RequestError::TooLarge { bytes } => Some(*bytes),
            RequestError::BadRequest(_) => None,
        };
        let response = InboxErrorResponse {
            error: &error.to_string(),
            bytes,
            ..InboxErrorResponse::default()
        };
        Payload::error(error.code(), response)
    }

    /// Replaces a response that is too large for AWS IoT by an error.
    fn within_limits(self, request: &ParsedRequest<'_>) -> Payload {
        let bytes = self.json.len();
        if bytes <= REQUEST_BYTES {
            return self;
        }
        let response = InboxErrorResponse {
            error: &format!("The response has {bytes} bytes, the limit is {REQUEST_BYTES}"),
            bytes: Some(bytes),
            ..about(request.names, request.operation)
        };
        Payload::error("TooLarge", response)
    }
}

impl<F: InboxFunction> InboxRequests<F> {
    pub fn new(
        function: F,
        config: RequestsConfig,
        responses: Arc<dyn Channel>,
        clock: Arc<dyn Clock>,
    ) -> InboxRequests<F> {
        InboxRequests {
            function,
            config,
            responder: Responder::new(responses, clock),
        }
    }

    /// Serves the request in a rule's event and publishes its response. `id` is the invocation's id.
    pub async fn respond(
        &self,
        event: &[u8],
        id: &str,
        deadline: Timestamp,
    ) -> Result<RequestSummary, HandlerError> {
        let times = self.responder.times(deadline);
        let event = RuleEvent::decode(event, &self.config.topic_prefix);
        let event = event.map_err(HandlerError::event)?;
        let operation = Operation::of_topic(&event.topic)
            .filter(|operation| operation.function() == F::NAME)
            .ok_or_else(|| {
                let error = format!("{} does not serve the topic {:?}", F::NAME, event.topic);
                HandlerError::new("TopicError", error)
            })?;
        let request = parse(&event, operation, self.config.tokens);
        let payload = match &request.parsed {
            Ok(parsed) => {
                let context = RequestContext {
                    now: times.now,
                    until: times.serve_until,
                    id: id.to_owned(),
                };
                self.serve(parsed, &context).await.within_limits(parsed)
            }
            Err(error) => Payload::invalid_request(error),
        };
        if let Some(code) = payload.code {
            tracing::warn!(operation = operation.word(), code, "request failed");
        }
        let names = request.parsed.map(|parsed| parsed.names);
        let about = about(names.unwrap_or_default(), operation);
        let published = self.publish(&request.address, payload, about, times.publish_until);
        Ok(RequestSummary {
            code: published.await.map_err(|failure| unpublished(&failure))?,
            rejected: request.address.rejected,
        })
    }

    async fn serve(&self, request: &ParsedRequest<'_>, context: &RequestContext) -> Payload {
        let serving = self.function.serve(request, context);
        let (code, error) = match self.responder.serve(context.until, serving).await {
            Some(Ok(json)) => return Payload { json, code: None },
            Some(Err(error)) => {
                let operation = request.operation.word();
                tracing::warn!(operation, ?error, "operation failed");
                let (code, error) = error.response();
                (code, error.to_owned())
            }
            None => ("Unavailable", "It took too long, try again".to_owned()),
        };
        let response = InboxErrorResponse {
            error: &error,
            ..about(request.names, request.operation)
        };
        Payload::error(code, response)
    }

    /// Publishes the response; to the fallback topic if AWS IoT rejects the topic that the sender chose.
    async fn publish(
        &self,
        address: &ResponseAddress,
        payload: Payload,
        about: InboxErrorResponse<'_>,
        until: Timestamp,
    ) -> Result<Option<&'static str>, SendFailure> {
        let publish = |topic, json| {
            let correlation_data = address.correlation_data.clone();
            self.responder.publish(topic, json, correlation_data, until)
        };
        let published = publish(&address.topic, payload.json).await;
        let (reason, topic) = match (published, &address.fallback_topic) {
            (Ok(()), _) => return Ok(payload.code),
            (Err(SendFailure::Rejected(reason)), Some(topic)) => (reason, topic),
            (Err(failure), _) => return Err(failure),
        };
        tracing::warn!(reason, "response topic rejected");
        let response = InboxErrorResponse {
            error: "The request was served, but nothing can be published to its response topic",
            ..about
        };
        let payload = Payload::error("BadRequest", response);
        publish(topic, payload.json).await?;
        Ok(payload.code)
    }
}

#[async_trait]
impl<F: InboxFunction> Handler for InboxRequests<F> {
    async fn handle(&self, invocation: Invocation) -> Result<Response, HandlerError> {
        let Invocation {
            event,
            deadline,
            request_id,
        } = invocation;
        let summary = self.respond(&event, &request_id, deadline).await?;
        Ok(Response::empty(summary.metrics()))
    }
}

/// An error response that repeats the names of the request's topic, under the operation's word for each.
fn about(names: TopicNames<'_>, operation: Operation) -> InboxErrorResponse<'_> {
    let is_bound = matches!(operation, Operation::Next | Operation::Prev);
    let (specified_message_id, message_id) = match is_bound {
        true => (names.message_id, ""),
        false => ("", names.message_id),
    };
    InboxErrorResponse {
        message_id,
        specified_message_id,
        uuid: names.uuid,
        ..InboxErrorResponse::default()
    }
}
