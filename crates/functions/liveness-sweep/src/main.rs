//! The liveness sweep as a Lambda function: wiring only.

use std::sync::Arc;
use std::time::Instant;

use antumbra_dynamodb::{DynamoDbProgress, DynamoDbSensors, client};
use antumbra_lambda_kit::config::start;
use antumbra_lambda_kit::invocation;
use antumbra_liveness_sweep::{Config, Sweeper, gauge};
use antumbra_publish::SqsChannel;
use antumbra_service::clock::{Clock, SystemClock};
use lambda_runtime::{Diagnostic, Error};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (settings, sdk) = start::<Config>().await?;
    let database = client(&sdk);
    let progress = DynamoDbProgress::new(database.clone(), &settings.sensors.table);
    let sensors = DynamoDbSensors::new(database, settings.sensors);
    let (wait, settle) = (settings.wait, settings.settle);
    let gauge = settings.signals.map(|url| {
        let queue = SqsChannel::new(&aws_sdk_sqs::Client::new(&sdk), &url);
        gauge(Arc::new(queue), &url, wait, settle)
    });
    let sweeper = &Sweeper::new(
        sensors,
        progress,
        gauge,
        settings.limits,
        Arc::new(SystemClock),
    );

    invocation::run(|invocation: invocation::Invocation| async move {
        let started = Instant::now();
        let swept = sweeper.run(invocation.deadline).await;
        let elapsed = started.elapsed();
        sweeper.purge(invocation.deadline).await;
        let report = swept.map_err(|error| Diagnostic {
            error_type: "SweepError".to_owned(),
            error_message: error.to_string(),
        })?;
        report.emit(SystemClock.now(), elapsed);
        Ok::<_, Diagnostic>(report)
    })
    .await
}
