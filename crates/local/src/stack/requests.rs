//! The functions that answer requests to the inbox, each called by the rule of its operation.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbInbox, MESSAGES};
use antumbra_message_requests::operations::{
    DeleteMessage, GetMessage, ListDevices, ListMessages, NextMessage, PreviousMessage,
    QueryMessages, SendMessage,
};
use antumbra_message_requests::{InboxOperation, Responder, connect};
use antumbra_publish::SqsChannel;
use antumbra_publish::sqs::SMALL_BYTES;
use antumbra_service::clock::Clock;
use antumbra_wire::inbox_request::Operation;
use antumbra_wire::rules::MESSAGE_RULES;
use bytes::Bytes;

use super::feed::RunningEventSource;
use super::{LocalServices, Sdk};
use crate::function::{Function, HandlerError};
use crate::rules::RuleError;

/// How long one may run, as the template says: whoever asks waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Where messages for devices go.
const OUTBOUND: &str = "antumbra-outbound";

/// All of them, fed by their rules.
pub(super) fn feed(ground: &LocalServices) -> Result<RunningEventSource, RuleError> {
    let functions = [
        on_inbox(ground, Operation::Query, QueryMessages),
        on_inbox(ground, Operation::Get, GetMessage),
        on_inbox(ground, Operation::Next, NextMessage),
        on_inbox(ground, Operation::Prev, PreviousMessage),
        on_inbox(ground, Operation::List, ListMessages),
        on_inbox(ground, Operation::Delete, DeleteMessage),
        on_inbox(ground, Operation::Devices, ListDevices),
        on_queue(ground),
    ];
    let called = |name: &str| functions.iter().find(|function| function.name() == name);
    let rules = MESSAGE_RULES.iter();
    let rules = rules.filter_map(|rule| Some((*rule, called(rule.function)?.clone())));
    ground.feed_from_rules(rules.collect())
}

/// A function that reads or writes the inbox.
fn on_inbox<S: InboxOperation + 'static>(
    ground: &LocalServices,
    operation: Operation,
    serve: impl FnOnce(DynamoDbInbox) -> S,
) -> Function {
    let sdk = ground.sdk_of(operation.function());
    let inbox = DynamoDbInbox::connect(&sdk.database, MESSAGES.name);
    function(ground, &sdk, serve(inbox))
}

/// The function that sends to devices.
fn on_queue(ground: &LocalServices) -> Function {
    let sdk = ground.sdk_of(Operation::Send.function());
    let sqs = aws_sdk_sqs::Client::new(&sdk.aws);
    let outbound = SqsChannel::new(&sqs, &ground.queues.queue_url(OUTBOUND));
    // What the emulator's queues take.
    let outbound = Arc::new(outbound.with_bytes(SMALL_BYTES));
    let send = SendMessage::new(outbound, Arc::new(ground.clock.clone()));
    function(ground, &sdk, send)
}

fn function<S: InboxOperation + 'static>(ground: &LocalServices, sdk: &Sdk, serve: S) -> Function {
    let answers = connect::answers(&sdk.aws, None);
    let clock = ground.clock.clone();
    let name = serve.operation().function();
    let responder = Arc::new(Responder::new(serve, answers, Arc::new(clock.clone())));
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
