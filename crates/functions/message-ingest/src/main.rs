//! Message ingest as a Lambda function: wiring only.

use std::sync::Arc;

use antumbra_dynamodb::DynamoDbInbox;
use antumbra_lambda_kit::config::start;
use antumbra_lambda_kit::invocation;
use antumbra_message_ingest::{Config, Ingest};
use antumbra_publish::SqsChannel;
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::quarantine::Quarantine;
use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (settings, sdk) = start::<Config>().await?;
    let queue = SqsChannel::new(&aws_sdk_sqs::Client::new(&sdk), &settings.quarantine);
    let quarantine = Quarantine::new(Arc::new(queue.with_bytes(settings.queue_bytes)));
    let inbox = DynamoDbInbox::connect(&sdk, settings.table);
    let ingest = &Ingest::new(
        inbox.clone(),
        inbox,
        quarantine,
        settings.intake,
        Arc::new(SystemClock),
    );

    invocation::run_events(
        |event, deadline| async move { ingest.handle(&event, deadline).await },
        |handled, took| {
            handled.emit(SystemClock.now(), took);
            Ok(handled.response())
        },
    )
    .await
}
