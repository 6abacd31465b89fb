//! The stream listener, fed from the streams of both tables.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbClients, DynamoDbShadows, MAIN, ShadowTableConfig};
use antumbra_notify::Listener;
use antumbra_publish::AwsChannelFactory;
use antumbra_publish::sqs::SMALL_BYTES;
use antumbra_registration::Registrations;
use antumbra_service::clock::{Clock, ShiftedClock};
use antumbra_shadow::Model;
use antumbra_stream_listener::{NAME, response};
use bytes::Bytes;

use super::deliveries::{ORDERED, UNORDERED};
use super::{LocalServices, Sdk, StackError, UNDELIVERABLE};
use crate::function::{Function, HandlerError};

/// How long it may run, as the template says.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The function; a stream's event source calls it.
pub(super) fn function(
    ground: &LocalServices,
    registrations: Registrations,
) -> Result<Function, StackError> {
    let Sdk { aws, database } = ground.sdk_of(NAME);
    let undeliverable = ground.queues.queue_url(UNDELIVERABLE);
    let channels = AwsChannelFactory::new(&aws, None, undeliverable)
        // What the emulator's queues take.
        .with_queue_bytes(SMALL_BYTES)
        .with_clients(
            Arc::new(DynamoDbClients::connect(&database, MAIN.name)),
            ground.queues.queue_url(ORDERED),
            ground.queues.queue_url(UNORDERED),
        );
    let clock = ground.clock.clone();
    let shadows = DynamoDbShadows::connect(&database, ShadowTableConfig::new(MAIN.name));
    let listener = Listener::new(
        registrations,
        &channels,
        Model::default(),
        Arc::new(clock.clone()),
    )?
    .with_documents(Arc::new(Arc::new(shadows)));
    Ok(listening(listener, clock))
}

fn listening(listener: Listener, clock: ShiftedClock) -> Function {
    let listener = Arc::new(listener);
    Function::new(NAME, TIMEOUT, move |event: Bytes| {
        let listener = Arc::clone(&listener);
        let deadline = clock.now().after(TIMEOUT);
        async move {
            let handled = listener
                .handle(&event, deadline)
                .await
                .map_err(|error| HandlerError(error.to_string()))?;
            tracing::debug!(?handled, "changes were sent");
            let response = serde_json::to_vec(&response(&handled))
                .map_err(|error| HandlerError(error.to_string()))?;
            Ok(response.into())
        }
    })
}
