//! From the bytes of an event to the one answer: read, serve, publish.

use std::sync::Arc;
use std::time::Duration;

use antumbra_lambda_kit::metrics::{self, Unit};
use antumbra_service::clock::{Clock, Reserve, time_left};
use antumbra_service::notifications::{Channel, Message, dispatch_one};
use antumbra_service::shadows::{ShadowId, ShadowStore, Shadows};
use antumbra_shadow::{Arrays, Model, Timestamp};
use antumbra_wire::events::rule::{RuleEvent, RuleEventError};
use antumbra_wire::shadow_mqtt::{
    NotAShadowTopic, Operation, Rejection, Request, Requested, ShadowTopic, read, rejected,
};

use crate::NAME;
use crate::serve::{Asked, serve};

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

/// Answers requests to shadows.
pub struct ShadowRequests<P> {
    shadows: Shadows<P>,
    model: Model,
    answers: Arc<dyn Channel>,
    clock: Arc<dyn Clock>,
    own_only: bool,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSummary {
    /// What was asked.
    pub operation: Operation,
    /// The code of the answer, if it was rejected.
    pub code: Option<u16>,
}

/// Why there was no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// It was no message that a rule handed over.
    #[error(transparent)]
    Event(#[from] RuleEventError),
    /// It was no request to a shadow.
    #[error(transparent)]
    Topic(#[from] NotAShadowTopic),
    /// The answer could not be published.
    #[error("no answer could be published: {0}")]
    Unanswered(String),
}

impl HandleError {
    /// The type of the error, as Lambda reports it.
    pub fn kind(&self) -> &'static str {
        match self {
            HandleError::Event(_) => "EventError",
            HandleError::Topic(_) => "TopicError",
            HandleError::Unanswered(_) => "Unanswered",
        }
    }
}

impl RequestSummary {
    /// The metrics of one invocation.
    pub fn emit(&self, now: Timestamp, took: Duration) {
        let count = |yes: bool| f64::from(u8::from(yes));
        let is = |operation| count(self.operation == operation);
        let failed = self.code.is_some_and(|code| code >= 429);
        metrics::emit(
            NAME,
            now,
            &[
                ("get", is(Operation::Get), Unit::Count),
                ("update", is(Operation::Update), Unit::Count),
                ("delete", is(Operation::Delete), Unit::Count),
                ("rejected", count(self.code.is_some()), Unit::Count),
                ("failed", count(failed), Unit::Count),
                ("duration", took.as_secs_f64() * 1000.0, Unit::Milliseconds),
            ],
        );
    }
}

impl<P: ShadowStore> ShadowRequests<P> {
    /// Keeps shadows there, and publishes answers through the channel. To AWS an array is one value, and so
    /// it is here, whatever the model says.
    pub fn new(
        persistence: P,
        model: Model,
        answers: Arc<dyn Channel>,
        clock: Arc<dyn Clock>,
    ) -> ShadowRequests<P> {
        let model = Model {
            arrays: Arrays::Whole,
            ..model
        };
        ShadowRequests {
            shadows: Shadows::with_clock(persistence, clock.clone()).with_model(model.clone()),
            model,
            answers,
            clock,
            own_only: false,
        }
    }

    /// Lets each client reach only the shadows of the thing it is called by.
    #[must_use]
    pub fn own_only(self, own_only: bool) -> ShadowRequests<P> {
        ShadowRequests { own_only, ..self }
    }

    /// Handles the event of a rule.
    pub async fn handle(
        &self,
        event: &[u8],
        deadline: Timestamp,
    ) -> Result<RequestSummary, HandleError> {
        let now = self.clock.now();
        let seconds = now.nanoseconds().div_euclid(1_000_000_000);
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let event = RuleEvent::decode(event)?;
        let topic = ShadowTopic::parse(&event.topic)?;
        let Requested {
            client_token,
            request,
        } = read(topic.operation, &event.payload);
        let client_token = client_token.as_deref();
        let served = match self.admit(&event, &topic) {
            Ok((shadow, called)) => {
                let asked = Asked {
                    shadow: &shadow,
                    called: &called,
                    client_token,
                    seconds,
                };
                let until = ANSWERING.deadline(deadline, now);
                match request {
                    Ok(request) => self.serve(request, &asked, until).await,
                    Err(rejection) => Err(rejection),
                }
            }
            Err(rejection) => Err(rejection),
        };
        let (outcome, code, body) = match served {
            Ok(body) => ("accepted", None, body),
            Err(rejection) => {
                let operation = topic.operation.word();
                tracing::warn!(operation, code = rejection.code, "a request was rejected");
                let body = rejected(&rejection, seconds, client_token);
                ("rejected", Some(rejection.code), body)
            }
        };
        let answer = topic.answer(outcome);
        let message = Message {
            id: answer.clone(),
            key: answer.clone(),
            body,
            topic: Some(answer),
            qos: 1,
            correlation_data: event.correlation_data.clone(),
            ..Message::default()
        };
        self.publish(message, ENDING.deadline(deadline, now))
            .await?;
        Ok(RequestSummary {
            operation: topic.operation,
            code,
        })
    }

    /// The shadow that a client may reach by a topic, and what answers call it.
    fn admit(
        &self,
        event: &RuleEvent,
        topic: &ShadowTopic<'_>,
    ) -> Result<(ShadowId, String), Rejection> {
        let named = topic.shadow.clone();
        let (thing, name) = named.map_err(|reason| Rejection::new(400, reason))?;
        if self.own_only && event.client_id.as_deref() != Some(&thing) {
            return Err(Rejection::new(403, "Forbidden"));
        }
        let called = match topic.named {
            true => format!("{thing}~{name}"),
            false => thing.clone(),
        };
        let shadow = ShadowId::named(thing, name);
        let shadow = shadow.map_err(|error| Rejection::new(400, error.to_string()))?;
        Ok((shadow, called))
    }

    async fn serve(
        &self,
        request: Request,
        asked: &Asked<'_>,
        until: Timestamp,
    ) -> Result<String, Rejection> {
        let time = time_left(self.clock.now(), until);
        // In a box: the compiler loses itself in what a call of an SDK is made of.
        let served = Box::pin(serve(&self.shadows, &self.model, request, asked));
        let late = || Rejection::new(500, "Internal service failure");
        let served = tokio::time::timeout(time, served).await;
        served.unwrap_or_else(|_| Err(late()))
    }

    async fn publish(&self, message: Message, until: Timestamp) -> Result<(), HandleError> {
        let sent = dispatch_one(Arc::clone(&self.answers), message, until, &self.clock).await;
        sent.map_err(|unsent| HandleError::Unanswered(unsent.to_string()))
    }
}
