//! A table behind an endpoint that counts and fails calls, and a channel that records responses.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbInbox, MESSAGES};
use antumbra_lambda_kit::HandlerError;
use antumbra_message_requests::config::RequestsConfig;
use antumbra_message_requests::operations::{
    DeleteFunction, GetFunction, NextFunction, QueryFunction,
};
use antumbra_message_requests::{InboxFunction, InboxRequests, RequestSummary};
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::inbox::{Body, InboxMessage, MessageId, MessageWriter as _, Source};
use antumbra_shadow::Timestamp;
use antumbra_testkit::RecordingChannel;
use antumbra_testkit::dynamodb::{Endpoint, TestTable};
use antumbra_wire::rules::Operation;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub(crate) struct Bench {
    pub(crate) inbox: DynamoDbInbox,
    pub(crate) endpoint: Endpoint,
    pub(crate) responses: Arc<RecordingChannel>,
}

impl Bench {
    pub(crate) async fn fresh() -> Bench {
        let table = TestTable::create(MESSAGES).await;
        Bench {
            inbox: DynamoDbInbox::new(table.client, &table.name),
            endpoint: table.endpoint,
            responses: Arc::new(RecordingChannel::with_limits(1, 128 * 1024)),
        }
    }

    /// Topic and payload of each response published since the last call.
    pub(crate) fn take_responses(&self) -> Vec<(String, String)> {
        let published = self.responses.take_accepted().into_iter();
        published
            .map(|message| (message.topic.unwrap(), message.body))
            .collect()
    }

    /// Stores a message, which is not counted among the calls.
    pub(crate) async fn store(&self, uuid: &str, id: &str, body: &str) {
        let message = InboxMessage {
            source: Source::new(uuid).unwrap(),
            id: MessageId::new(id).unwrap(),
            body: Body::parse(body).unwrap(),
            received_at: Timestamp::parse("2026-01-31T12:00:00Z").unwrap(),
            expires_at: None,
        };
        self.inbox.store(&message).await.unwrap();
        self.endpoint.take_calls();
    }

    /// Passes an event to the function of an operation.
    pub(crate) async fn handle(
        &self,
        operation: Operation,
        event: &[u8],
    ) -> Result<RequestSummary, HandlerError> {
        let inbox = self.inbox.clone();
        match operation.function() {
            "message-query" => self.respond(QueryFunction(inbox), event).await,
            "message-get" => self.respond(GetFunction(inbox), event).await,
            "message-next" => self.respond(NextFunction(inbox), event).await,
            "message-delete" => self.respond(DeleteFunction(inbox), event).await,
            other => panic!("{other} does not use the inbox"),
        }
    }

    pub(crate) async fn respond(
        &self,
        function: impl InboxFunction,
        event: &[u8],
    ) -> Result<RequestSummary, HandlerError> {
        let responses = Arc::clone(&self.responses);
        let config = RequestsConfig::default();
        let requests = InboxRequests::new(function, config, responses, Arc::new(SystemClock));
        let deadline = SystemClock.now().after(Duration::from_secs(20));
        requests.respond(event, "call-1", deadline).await
    }

    /// Sends a request with the token `t` and returns the payload of the one response.
    pub(crate) async fn request(&self, topic: &str, payload: &Value) -> Value {
        let mut payload = payload.clone();
        payload["token"] = json!("t");
        let operation = Operation::of_topic(topic).unwrap();
        let event = event(topic, payload.to_string().as_bytes());
        self.handle(operation, &event).await.unwrap();
        let mut responses = self.take_responses();
        assert_eq!(responses.len(), 1, "{responses:?}");
        let (to, body) = responses.remove(0);
        assert_eq!(to, format!("response/{}/t", operation.word()));
        serde_json::from_str(&body).unwrap()
    }
}

/// A rule's event.
pub(crate) fn event(topic: &str, payload: &[u8]) -> Vec<u8> {
    let payload = STANDARD.encode(payload);
    let event = json!({"payload": payload, "topic": topic, "clientId": "c", "timestamp": 1});
    event.to_string().into_bytes()
}

/// A rule's event for a message of MQTT 5.
pub(crate) fn event5(topic: &str, payload: &[u8], response_topic: &str) -> Vec<u8> {
    let mut event: Value = serde_json::from_slice(&event(topic, payload)).unwrap();
    event["responseTopic"] = json!(response_topic);
    event["correlationData"] = json!("AQID");
    event.to_string().into_bytes()
}
