//! Sensor ingest as a Lambda function: wiring only.

use std::sync::Arc;

use antumbra_dynamodb::{DynamoDbProgress, DynamoDbSensors, SensorConfig, client};
use antumbra_lambda_kit::environment::Environment;
use antumbra_lambda_kit::{invocation, sdk, telemetry};
use antumbra_publish::{SqsChannel, sqs};
use antumbra_sensor_ingest::{Admission, IdPattern, Ingest, Newcomer, Rules};
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::quarantine::Quarantine;
use antumbra_service::sensors::{DEFAULT_SILENCE_SECONDS, SensorType};
use lambda_runtime::Error;

/// Where a sensor is that registered itself by speaking, until somebody says better.
const NOWHERE: &str = "unknown/unknown/unknown/unknown";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut environment = Environment::process();
    telemetry::start(&environment.or("LOG_LEVEL", "info".to_owned()));
    let mut config = SensorConfig::new(environment.required("TABLE"));
    config.shards = environment.or("SHARDS", config.shards);
    config.retention = environment.or("RETENTION", config.retention);
    let quarantine = environment.required("QUARANTINE_QUEUE_URL");
    let queue_bytes = environment.or("QUEUE_BYTES", sqs::BYTES);
    let rules = Rules {
        allowed: environment.or("DATA", Rules::default().allowed),
        ids: environment
            .optional("SENSOR_ID_PATTERN")
            .map(|pattern| pattern.parse::<IdPattern>())
            .transpose()?,
    };
    let anyone: bool = environment.or("AUTO_REGISTER", false);
    let newcomer = Newcomer::new(
        &environment.or("AUTO_REGISTER_LOCATION", NOWHERE.to_owned()),
        &environment.or("AUTO_REGISTER_TYPE", SensorType::default().to_string()),
        environment.or(
            "AUTO_REGISTER_SILENCE_SECONDS",
            u64::from(DEFAULT_SILENCE_SECONDS),
        ),
    )?;
    let endpoint = environment.optional("AWS_ENDPOINT_URL");
    environment.finish()?;

    let sdk = sdk::config(endpoint).await;
    let queue = SqsChannel::new(&aws_sdk_sqs::Client::new(&sdk), &quarantine);
    let database = client(&sdk);
    let progress = DynamoDbProgress::new(database.clone(), &config.table);
    let sensors = DynamoDbSensors::new(database, config);
    let admission = match anyone {
        true => Admission::Anyone {
            registry: sensors.clone(),
            newcomer,
        },
        false => Admission::Registered,
    };
    let ingest = &Ingest::new(
        sensors,
        progress,
        admission,
        Quarantine::new(Arc::new(queue.with_bytes(queue_bytes))),
        rules,
        SystemClock,
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
