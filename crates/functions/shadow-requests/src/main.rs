//! Shadows over MQTT as a Lambda function: wiring only.

use std::sync::Arc;
use std::time::Instant;

use antumbra_dynamodb::{DynamoDbShadows, ShadowTableConfig};
use antumbra_lambda_kit::config::start;
use antumbra_lambda_kit::invocation;
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_shadow_requests::{Config, ShadowRequests, connect};
use lambda_runtime::{Diagnostic, Error};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (settings, sdk) = start::<Config>().await?;
    let config = ShadowTableConfig::new(settings.table).layout(settings.layout);
    let shadows = DynamoDbShadows::connect(&sdk, config);
    let answers = connect::answers(&sdk, settings.iot_endpoint.as_deref());
    let requests = &ShadowRequests::new(shadows, settings.model, answers, Arc::new(SystemClock))
        .own_only(settings.own_only);

    invocation::run(|call: invocation::Invocation| async move {
        let started = Instant::now();
        let handled = requests
            .handle(&call.event, call.deadline)
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
