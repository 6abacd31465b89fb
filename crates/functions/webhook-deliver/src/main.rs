//! Webhook deliver as a Lambda function: wiring only.

use std::sync::Arc;

use antumbra_dynamodb::DynamoDbDeliveries;
use antumbra_lambda_kit::config::start;
use antumbra_lambda_kit::{certificates, invocation};
use antumbra_publish::webhook::Guard;
use antumbra_publish::{SqsVisibility, WebhookSender};
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::deliveries::Deliver;
use antumbra_webhook_deliver::{Config, Worker};
use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (settings, sdk) = start::<Config>().await?;
    let ledger =
        DynamoDbDeliveries::connect(&sdk, settings.table).with_retention(settings.retention);
    let guard = Guard::new(settings.allow);
    let sender = WebhookSender::trusting(certificates::roots(), guard);
    let deliver = Deliver::new(ledger, sender, Arc::new(SystemClock), settings.policy);
    let queues = [settings.ordered, settings.unordered];
    let postpone = SqsVisibility::new(aws_sdk_sqs::Client::new(&sdk), queues);
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
