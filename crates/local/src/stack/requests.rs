//! The functions that answer requests to the inbox, each called by the rule of its operation.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbInbox, MESSAGES};
use antumbra_message_requests::operations::{
    DeleteMessage, GetMessage, ListDevices, ListMessages, NextMessage, PreviousMessage,
    QueryMessages, SendMessage,
};
use antumbra_message_requests::{Responder, Serve, connect};
use antumbra_publish::SqsChannel;
use antumbra_publish::sqs::SMALL_BYTES;
use antumbra_service::clock::{Clock, ShiftedClock};
use antumbra_service::notifications::Channel;
use antumbra_wire::rules::MESSAGE_RULES;
use bytes::Bytes;

use super::{Feed, Ground};
use crate::function::{Function, HandlerError};
use crate::rules::RuleError;

/// How long one may run, as the template says: whoever asks waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Where messages for devices go.
const OUTBOUND: &str = "antumbra-outbound";

/// All of them, fed by their rules.
pub(super) fn feed(ground: &Ground) -> Result<Feed, RuleError> {
    let inbox = DynamoDbInbox::connect(&ground.database(), MESSAGES.name);
    let sqs = aws_sdk_sqs::Client::new(&ground.aws());
    let outbound = SqsChannel::new(&sqs, &ground.queues.queue_url(OUTBOUND));
    // What the emulator's queues take.
    let outbound: Arc<dyn Channel> = Arc::new(outbound.with_bytes(SMALL_BYTES));
    let wiring = Wiring {
        answers: connect::answers(&ground.aws(), None),
        clock: ground.clock.clone(),
    };
    let functions = [
        wiring.function(QueryMessages(inbox.clone())),
        wiring.function(GetMessage(inbox.clone())),
        wiring.function(NextMessage(inbox.clone())),
        wiring.function(PreviousMessage(inbox.clone())),
        wiring.function(ListMessages(inbox.clone())),
        wiring.function(DeleteMessage(inbox.clone())),
        wiring.function(ListDevices(inbox)),
        wiring.function(SendMessage::new(outbound, ground.clock.clone())),
    ];
    let called = |name: &str| functions.iter().find(|function| function.name() == name);
    let rules = MESSAGE_RULES.iter();
    let rules = rules.filter_map(|rule| Some((*rule, called(rule.function)?.clone())));
    ground.feed_from_rules(rules.collect())
}

struct Wiring {
    answers: Arc<dyn Channel>,
    clock: ShiftedClock,
}

impl Wiring {
    fn function<S: Serve + 'static>(&self, serve: S) -> Function {
        let (answers, clock) = (Arc::clone(&self.answers), self.clock.clone());
        let name = serve.operation().function();
        let responder = Arc::new(Responder::new(serve, answers, clock.clone()));
        Function::new(name, TIMEOUT, move |event: Bytes| {
            let responder = Arc::clone(&responder);
            let deadline = clock.now().after(TIMEOUT);
            async move {
                let id = uuid::Uuid::new_v4().to_string();
                let handled = responder
                    .handle(&event, &id, deadline)
                    .await
                    .map_err(|error| HandlerError(error.to_string()))?;
                tracing::debug!(?handled, "a request was answered");
                Ok(Bytes::from_static(b"null"))
            }
        })
    }
}
