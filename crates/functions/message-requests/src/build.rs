//! Wires the functions. Each binary contains only its own operation.

use std::sync::Arc;

use antumbra_dynamodb::DynamoDbInbox;
use antumbra_publish::{IotChannel, SqsChannel};
use antumbra_service::clock::{Clock, SystemClock};
use aws_config::SdkConfig;
use lambda_runtime::Error;

use crate::config::{OnInbox, OnQueue};
use crate::operations::SendMessage;
use crate::{InboxOperation, Responder};

/// Wires a function that reads or writes the inbox.
pub fn build<S: InboxOperation>(
    operation: impl FnOnce(DynamoDbInbox) -> S,
    config: OnInbox,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> Responder<S> {
    let responses = IotChannel::connect(sdk, config.iot_endpoint.as_deref());
    let inbox = DynamoDbInbox::connect(sdk, config.table);
    Responder::new(operation(inbox), Arc::new(responses), clock)
}

/// Wires the function that sends messages to devices.
pub fn build_send(
    config: OnQueue,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> Responder<SendMessage> {
    let responses = IotChannel::connect(sdk, config.iot_endpoint.as_deref());
    let outbound = SqsChannel::new(&aws_sdk_sqs::Client::new(sdk), &config.outbound)
        .with_bytes(config.queue_bytes);
    let send = SendMessage::new(Arc::new(outbound), Arc::clone(&clock));
    Responder::new(send, Arc::new(responses), clock)
}

/// Runs a function that reads or writes the inbox.
pub async fn run_on_inbox<S: InboxOperation>(
    operation: impl FnOnce(DynamoDbInbox) -> S,
) -> Result<(), Error> {
    let (config, sdk) = antumbra_lambda_kit::start::<OnInbox>().await?;
    let responder = build(operation, config, &sdk, Arc::new(SystemClock));
    antumbra_lambda_kit::run(responder.operation().function(), responder).await
}

/// Runs the function that sends messages to devices.
pub async fn run_on_queue() -> Result<(), Error> {
    let (config, sdk) = antumbra_lambda_kit::start::<OnQueue>().await?;
    let responder = build_send(config, &sdk, Arc::new(SystemClock));
    antumbra_lambda_kit::run(responder.operation().function(), responder).await
}
