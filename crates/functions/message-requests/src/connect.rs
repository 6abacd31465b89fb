//! What the functions' binaries have in common: the clients, the loop.

use std::sync::Arc;
use std::time::Instant;

use antumbra_dynamodb::DynamoDbInbox;
use antumbra_lambda_kit::config::start;
use antumbra_lambda_kit::invocation;
use antumbra_publish::{IotChannel, SqsChannel};
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::notifications::Channel;
use aws_config::SdkConfig;
use lambda_runtime::{Diagnostic, Error};

use crate::config::{OnInbox, OnQueue};
use crate::operations::SendMessage;
use crate::{InboxOperation, Responder};

/// A function that reads or writes the inbox.
pub async fn run_on_inbox<S: InboxOperation>(
    serve: impl FnOnce(DynamoDbInbox) -> S,
) -> Result<(), Error> {
    let (settings, sdk) = start::<OnInbox>().await?;
    let answers = answers(&sdk, settings.iot_endpoint.as_deref());
    run(serve(DynamoDbInbox::connect(&sdk, settings.table)), answers).await
}

/// The function that sends to devices.
pub async fn run_on_queue() -> Result<(), Error> {
    let (settings, sdk) = start::<OnQueue>().await?;
    let answers = answers(&sdk, settings.iot_endpoint.as_deref());
    let outbound = SqsChannel::new(&aws_sdk_sqs::Client::new(&sdk), &settings.outbound);
    run(
        SendMessage::new(Arc::new(outbound), Arc::new(SystemClock)),
        answers,
    )
    .await
}

/// The way of answers: AWS IoT's data plane, at the account's own endpoint if given.
pub fn answers(sdk: &SdkConfig, iot_endpoint: Option<&str>) -> Arc<dyn Channel> {
    let mut iot = aws_sdk_iotdataplane::config::Builder::from(sdk);
    if let Some(endpoint) = iot_endpoint {
        let scheme = if endpoint.contains("://") {
            ""
        } else {
            "https://"
        };
        iot = iot.endpoint_url(format!("{scheme}{endpoint}"));
    }
    let client = aws_sdk_iotdataplane::Client::from_conf(iot.build());
    Arc::new(IotChannel::new(&client))
}

async fn run<S: InboxOperation>(serve: S, answers: Arc<dyn Channel>) -> Result<(), Error> {
    let responder = &Responder::new(serve, answers, Arc::new(SystemClock));
    invocation::run(|call: invocation::Invocation| async move {
        let started = Instant::now();
        let handled = responder
            .handle(&call.event, &call.request_id, call.deadline)
            .await
            .map_err(|error| Diagnostic {
                error_type: error.kind().to_owned(),
                error_message: error.to_string(),
            })?;
        handled.emit(SystemClock.now(), started.elapsed());
        Ok::<_, Diagnostic>(())
    })
    .await
}
