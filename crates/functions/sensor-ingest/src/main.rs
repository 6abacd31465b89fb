//! Sensor ingest as a Lambda function: wiring only.

use std::sync::Arc;

use antumbra_dynamodb::{DynamoDbProgress, DynamoDbSensors, client};
use antumbra_lambda_kit::config::start;
use antumbra_lambda_kit::invocation;
use antumbra_publish::SqsChannel;
use antumbra_sensor_ingest::{Config, Ingest, UnknownSensorPolicy};
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::quarantine::Quarantine;
use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (settings, sdk) = start::<Config>().await?;
    let queue = SqsChannel::new(&aws_sdk_sqs::Client::new(&sdk), &settings.quarantine);
    let database = client(&sdk);
    let progress = DynamoDbProgress::new(database.clone(), &settings.sensors.table);
    let sensors = DynamoDbSensors::new(database, settings.sensors);
    let admission = match settings.newcomer {
        Some(newcomer) => UnknownSensorPolicy::AutoRegister {
            registry: sensors.clone(),
            newcomer,
        },
        None => UnknownSensorPolicy::Quarantine,
    };
    let ingest = &Ingest::new(
        sensors,
        progress,
        admission,
        Quarantine::new(Arc::new(queue.with_bytes(settings.queue_bytes))),
        settings.rules,
        Arc::new(SystemClock),
    );

    invocation::run_events(
        |event, deadline| async move { ingest.handle(&event, deadline).await },
        |handled, took| {
            handled.emit(SystemClock.now(), took);
            let unfinished = |error| invocation::diagnostic("Unfinished", &error);
            handled.response().map_err(unfinished)
        },
    )
    .await
}
