//! Message ingest as a Lambda function: wiring only.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::DynamoDbInbox;
use antumbra_lambda_kit::environment::Environment;
use antumbra_lambda_kit::{invocation, sdk, telemetry};
use antumbra_message_ingest::Ingest;
use antumbra_publish::{SqsChannel, sqs};
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::inbox::Intake;
use antumbra_service::quarantine::Quarantine;
use lambda_runtime::Error;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut environment = Environment::process();
    telemetry::start(&environment.or("LOG_LEVEL", "info".to_owned()));
    let table = environment.required("TABLE");
    let quarantine = environment.required("QUARANTINE_QUEUE_URL");
    let days: u16 = environment.or("RETENTION_DAYS", 0);
    let otherwise = Intake::default();
    let intake = Intake {
        uuid: environment.or("uuidKey", otherwise.uuid),
        message_id: environment.or("messageIdKey", otherwise.message_id),
        padding: environment.or("MESSAGE_ID_DIGITS", otherwise.padding),
        retention: (days > 0).then(|| DAY * u32::from(days)),
    };
    let endpoint = environment.optional("AWS_ENDPOINT_URL");
    let queue_bytes = environment.or("QUEUE_BYTES", sqs::BYTES);
    environment.finish()?;

    let sdk = sdk::config(endpoint).await;
    let queue = SqsChannel::new(&aws_sdk_sqs::Client::new(&sdk), &quarantine);
    let quarantine = Quarantine::new(Arc::new(queue.with_bytes(queue_bytes)));
    let inbox = DynamoDbInbox::connect(&sdk, table);
    let ingest = &Ingest::new(inbox.clone(), inbox, quarantine, intake, SystemClock);

    invocation::run_events(
        |event, deadline| async move { ingest.handle(&event, deadline).await },
        |handled, took| {
            handled.emit(SystemClock.now(), took);
            Ok(handled.response())
        },
    )
    .await
}
