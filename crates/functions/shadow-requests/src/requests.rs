//! One request: parse, authorize, serve, publish the response.

use std::sync::Arc;
use std::time::Duration;

use antumbra_lambda_kit::metrics::Metric;
use antumbra_lambda_kit::respond::{Responder, unpublished};
use antumbra_lambda_kit::{Handler, HandlerError, Invocation, Response};
use antumbra_service::clock::Clock;
use antumbra_service::notifications::Channel;
use antumbra_service::redrive::UpdateHandler;
use antumbra_service::shadows::{ShadowId, ShadowStore, Shadows};
use antumbra_shadow::{Arrays, Timestamp};
use antumbra_wire::events::rule::RuleEvent;
use antumbra_wire::shadow_mqtt::{
    Operation, Rejection, Request, Requested, ShadowTopic, read, rejected,
};
use async_trait::async_trait;

use crate::config::{AcceptedUpdates, Config, Order};
use crate::serve::{RequestContext, serve};

/// Age after which `get` and `delete` requests are dropped: the device has stopped waiting.
const MAX_AGE: Duration = Duration::from_secs(60);

pub struct ShadowRequests<P> {
    shadows: Shadows<P>,
    config: Config,
    responder: Responder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSummary {
    pub operation: Operation,
    /// Error code of a rejected request.
    pub code: Option<u16>,
    /// The request was too old and got no response.
    pub dropped: bool,
}

impl RequestSummary {
    pub fn metrics(&self) -> Vec<Metric> {
        let count = |name, yes: bool| Metric::count(name, usize::from(yes));
        vec![
            count("get", self.operation == Operation::Get),
            count("update", self.operation == Operation::Update),
            count("delete", self.operation == Operation::Delete),
            count("rejected", self.code.is_some()),
            count("failed", self.code.is_some_and(|code| code >= 429)),
            count("dropped", self.dropped),
        ]
    }
}

impl<P: ShadowStore> ShadowRequests<P> {
    /// Arrays are always single values, as in AWS IoT Device Shadow, whatever the model says.
    pub fn new(
        store: P,
        mut config: Config,
        responses: Arc<dyn Channel>,
        clock: Arc<dyn Clock>,
    ) -> ShadowRequests<P> {
        config.model.arrays = Arrays::Whole;
        let shadows = Shadows::with_clock(store, Arc::clone(&clock));
        ShadowRequests {
            shadows: shadows.with_model(config.model.clone()),
            config,
            responder: Responder::new(responses, clock),
        }
    }

    /// Serves the request in a rule's event and publishes its response. An update that could not be made, and might be
    /// later, fails: Lambda repeats the invocation.
    pub async fn respond(
        &self,
        event: &[u8],
        deadline: Timestamp,
    ) -> Result<RequestSummary, HandlerError> {
        let times = self.responder.times(deadline);
        let seconds = times.now.nanoseconds().div_euclid(1_000_000_000);
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let event = RuleEvent::decode(event, &self.config.topic_prefix);
        let event = event.map_err(HandlerError::event)?;
        let topic = ShadowTopic::parse(&event.topic)
            .map_err(|error| HandlerError::new("TopicError", error))?;
        let operation = topic.operation;
        let dropped = operation != Operation::Update
            && event
                .received
                .is_some_and(|received| received.after(MAX_AGE) < times.now);
        let summary = RequestSummary {
            operation,
            code: None,
            dropped,
        };
        if dropped {
            tracing::warn!(operation = operation.as_str(), "dropped an old request");
            return Ok(summary);
        }
        let Requested {
            client_token,
            request,
        } = read(operation, &event.payload);
        let client_token = client_token.as_deref();
        let is_repeatable =
            matches!(&request, Ok(Request::Update(update)) if update.version.is_none());
        let responds = match &request {
            Ok(Request::Update(update)) => {
                self.config.accepted == AcceptedUpdates::All
                    || client_token.is_some()
                    || update.version.is_some()
                    || update.verbose
                    || event.response_topic.is_some()
            }
            _ => true,
        };
        let served = async {
            let (shadow, name) = self.authorize(&event, &topic)?;
            let context = RequestContext {
                shadow: &shadow,
                name: &name,
                client_token,
                responds,
                seconds,
                received: event.received.filter(|_| self.config.order != Order::Off),
                sent: event.sent,
                deadline: times.serve_until,
            };
            let serving = serve(&self.shadows, &self.config, request?, &context);
            let served = self.responder.serve(times.serve_until, serving).await;
            served.unwrap_or_else(|| Err(Rejection::new(500, "Internal service failure")))
        };
        let (outcome, code, body) = match served.await {
            Ok(Some(body)) => ("accepted", None, body),
            Ok(None) => return Ok(summary),
            Err(rejection) if is_repeatable && rejection.code >= 429 => {
                return Err(HandlerError::new("UpdateFailed", rejection));
            }
            Err(rejection) => {
                let (operation, code) = (operation.as_str(), rejection.code);
                tracing::warn!(operation, code, "request rejected");
                let body = rejected(&rejection, seconds, client_token);
                ("rejected", Some(code), body)
            }
        };
        let response_topic = topic.response_topic(outcome);
        let published = self.responder.publish(
            &response_topic,
            body,
            event.correlation_data.clone(),
            times.publish_until,
        );
        published.await.map_err(|failure| unpublished(&failure))?;
        Ok(RequestSummary { code, ..summary })
    }

    /// Returns the shadow of the topic, and its name in responses, if the client may reach it.
    fn authorize(
        &self,
        event: &RuleEvent,
        topic: &ShadowTopic<'_>,
    ) -> Result<(ShadowId, String), Rejection> {
        let shadow = topic.shadow.clone();
        let (thing, name) = shadow.map_err(|reason| Rejection::new(400, reason))?;
        if self.config.own_shadows_only && event.client_id.as_deref() != Some(&thing) {
            return Err(Rejection::new(403, "Forbidden"));
        }
        let full_name = match topic.named {
            true => format!("{thing}~{name}"),
            false => thing.clone(),
        };
        let shadow = ShadowId::named(thing, name);
        let shadow = shadow.map_err(|error| Rejection::new(400, error.to_string()))?;
        Ok((shadow, full_name))
    }
}

#[async_trait]
impl<P: ShadowStore> Handler for ShadowRequests<P> {
    async fn handle(&self, invocation: Invocation) -> Result<Response, HandlerError> {
        let summary = self.respond(&invocation.event, invocation.deadline).await?;
        Ok(Response::empty(summary.metrics()))
    }
}

#[async_trait]
impl<P: ShadowStore> UpdateHandler for ShadowRequests<P> {
    async fn update(&self, event: &[u8], deadline: Timestamp) -> Result<(), String> {
        let done = self.respond(event, deadline).await;
        let done = done.map_err(|error| error.to_string())?;
        match done.code {
            None => Ok(()),
            Some(code) => Err(format!("the update was rejected with code {code}")),
        }
    }
}
