//! Webhook deliver as a Lambda function: wiring only.

use std::time::Duration;

use antumbra_dynamodb::DynamoDbDeliveries;
use antumbra_lambda_kit::environment::Environment;
use antumbra_lambda_kit::{invocation, sdk, telemetry};
use antumbra_publish::webhook::{Allow, Guard};
use antumbra_publish::{SqsVisibility, WebhookSender};
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::deliveries::{Delays, Deliver, Policy};
use antumbra_webhook_deliver::Worker;
use lambda_runtime::Error;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut environment = Environment::process();
    telemetry::start(&environment.or("LOG_LEVEL", "info".to_owned()));
    let table = environment.required("TABLE");
    let ordered = environment.required("DELIVERIES_FIFO_QUEUE_URL");
    let unordered = environment.required("DELIVERIES_QUEUE_URL");
    let allow: Allow = environment.or("WEBHOOK_ALLOW", Allow::default());
    let days: u16 = environment.or("RETENTION_DAYS", 30);
    let otherwise = Policy::default();
    let seconds = Duration::as_secs;
    let policy = Policy {
        turns: environment.or("DELIVERY_TURNS", otherwise.turns),
        delays: Delays {
            curve: environment.or("RETRY_CURVE", otherwise.delays.curve),
            first: Duration::from_secs(
                environment.or("RETRY_FIRST_SECONDS", seconds(&otherwise.delays.first)),
            ),
            longest: Duration::from_secs(
                environment.or("RETRY_LONGEST_SECONDS", seconds(&otherwise.delays.longest)),
            ),
        },
        ..otherwise
    };
    let endpoint = environment.optional("AWS_ENDPOINT_URL");
    environment.finish()?;

    let sdk = sdk::config(endpoint).await;
    let ledger = DynamoDbDeliveries::connect(&sdk, table).with_retention(DAY * u32::from(days));
    let sender = WebhookSender::new(Guard::new(allow));
    let deliver = Deliver::new(ledger, sender, SystemClock, policy);
    let postpone = SqsVisibility::new(aws_sdk_sqs::Client::new(&sdk), [ordered, unordered]);
    let worker = &Worker::new(deliver, postpone);

    invocation::run_events(
        |event, deadline| async move { worker.handle(&event, deadline).await },
        |handled, took| {
            handled.emit(SystemClock.now(), took);
            Ok(handled.response())
        },
    )
    .await
}
