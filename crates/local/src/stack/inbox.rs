//! Message ingest, fed from the inbound queue.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbInbox, MESSAGES};
use antumbra_message_ingest::{Ingest, NAME};
use antumbra_publish::SqsChannel;
use antumbra_publish::sqs::SMALL_BYTES;
use antumbra_service::clock::Clock;
use antumbra_service::inbox::MessageParser;
use antumbra_service::quarantine::Quarantine;
use bytes::Bytes;

use super::LocalServices;
use super::feed::RunningEventSource;
use crate::function::{Function, HandlerError};

/// How long it may run, as the template says: a sixth of what a message stays hidden.
const TIMEOUT: Duration = Duration::from_secs(10);
const INBOUND: &str = "antumbra-inbound";
const QUARANTINE: &str = "antumbra-quarantine";

/// The function, fed from its queue.
pub(super) fn feed(ground: &LocalServices) -> RunningEventSource {
    let sdk = ground.sdk_of(NAME);
    let sqs = aws_sdk_sqs::Client::new(&sdk.aws);
    let quarantine = SqsChannel::new(&sqs, &ground.queues.queue_url(QUARANTINE));
    // What the emulator's queues take.
    let quarantine = Quarantine::new(Arc::new(quarantine.with_bytes(SMALL_BYTES)));
    let inbox = DynamoDbInbox::connect(&sdk.database, MESSAGES.name);
    let clock = ground.clock.clone();
    let intake = MessageParser::default();
    let ingest = Ingest::new(
        inbox.clone(),
        inbox,
        quarantine,
        intake,
        Arc::new(clock.clone()),
    );
    let ingest = Arc::new(ingest);
    let function = Function::new(NAME, TIMEOUT, move |event: Bytes| {
        let ingest = Arc::clone(&ingest);
        let deadline = clock.now().after(TIMEOUT);
        async move {
            let handled = ingest
                .handle(&event, deadline)
                .await
                .map_err(|error| HandlerError(error.to_string()))?;
            tracing::debug!(?handled, "messages were taken in");
            let response = serde_json::to_vec(&handled.response())
                .map_err(|error| HandlerError(error.to_string()))?;
            Ok(response.into())
        }
    });
    ground.feed_from_queue(INBOUND, function)
}
