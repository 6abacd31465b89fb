//! Wires the functions. Each binary contains only the operations of its own function.

use std::sync::Arc;

use antumbra_dynamodb::DynamoDbInbox;
use antumbra_publish::{IotChannel, LazyClient, SqsChannel};
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::inbox::Outbound;
use aws_types::SdkConfig;
use lambda_runtime::Error;

use crate::config::{InboxConfig, RequestsConfig, SendConfig};
use crate::operations::SendFunction;
use crate::{InboxFunction, InboxRequests};

/// Wires a function that uses the inbox.
pub fn build<F: InboxFunction>(
    function: impl FnOnce(DynamoDbInbox) -> F,
    config: InboxConfig,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> InboxRequests<F> {
    let inbox = DynamoDbInbox::connect(sdk, config.table);
    requests(function(inbox), config.requests, sdk, clock)
}

/// Wires the function that sends messages to devices.
pub fn build_send(
    config: SendConfig,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> InboxRequests<SendFunction<Outbound>> {
    let outbound =
        SqsChannel::new(LazyClient::sqs(sdk), &config.outbound).with_bytes(config.queue_bytes);
    let function = SendFunction(Outbound {
        queue: Arc::new(outbound),
        clock: Arc::clone(&clock),
    });
    requests(function, config.requests, sdk, clock)
}

fn requests<F: InboxFunction>(
    function: F,
    config: RequestsConfig,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> InboxRequests<F> {
    let endpoint = config.iot_endpoint.as_deref();
    let responses = IotChannel::connect(sdk, endpoint, config.topic_prefix.clone());
    InboxRequests::new(function, config, Arc::new(responses), clock)
}

pub async fn run_on_inbox<F: InboxFunction>(
    function: impl FnOnce(DynamoDbInbox) -> F,
) -> Result<(), Error> {
    let (config, sdk) = antumbra_lambda_kit::start::<InboxConfig>().await?;
    let requests = build(function, config, &sdk, Arc::new(SystemClock));
    antumbra_lambda_kit::run(F::NAME, requests).await
}

pub async fn run_send() -> Result<(), Error> {
    let (config, sdk) = antumbra_lambda_kit::start::<SendConfig>().await?;
    let requests = build_send(config, &sdk, Arc::new(SystemClock));
    antumbra_lambda_kit::run(SendFunction::<Outbound>::NAME, requests).await
}
