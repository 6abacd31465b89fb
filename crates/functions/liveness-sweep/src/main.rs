//! The liveness sweep as a Lambda function: wiring only.

use std::sync::Arc;
use std::time::{Duration, Instant};

use antumbra_dynamodb::{DynamoDbProgress, DynamoDbSensors, SensorConfig, client};
use antumbra_lambda_kit::environment::Environment;
use antumbra_lambda_kit::{invocation, sdk, telemetry};
use antumbra_liveness_sweep::{Sweeper, gauge};
use antumbra_publish::SqsChannel;
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::liveness::Limits;
use lambda_runtime::{Diagnostic, Error};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut environment = Environment::process();
    telemetry::start(&environment.or("LOG_LEVEL", "info".to_owned()));
    let mut config = SensorConfig::new(environment.required("TABLE"));
    config.shards = environment.or("SHARDS", config.shards);
    let signals = environment.optional("SIGNALS_QUEUE_URL");
    let wait = Duration::from_secs(environment.or("MARKER_WAIT_SECONDS", 10));
    let settle = Duration::from_secs(environment.or("GRACE_SECONDS", 5));
    let limits = Limits {
        at_once: environment.or("CONCURRENCY", Limits::default().at_once),
        ..Limits::default()
    };
    let endpoint = environment.optional("AWS_ENDPOINT_URL");
    environment.finish()?;

    let sdk = sdk::config(endpoint).await;
    let database = client(&sdk);
    let progress = DynamoDbProgress::new(database.clone(), &config.table);
    let sensors = DynamoDbSensors::new(database, config);
    let gauge = signals.map(|url| {
        let queue = SqsChannel::new(&aws_sdk_sqs::Client::new(&sdk), &url);
        gauge(Arc::new(queue), &url, wait, settle)
    });
    let sweeper = &Sweeper::new(sensors, progress, gauge, limits, SystemClock);

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
