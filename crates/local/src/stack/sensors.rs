//! Sensor ingest, fed from the queue of signals, and the liveness sweep, fed by the clock.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbProgress, DynamoDbSensors, MAIN, SensorConfig};
use antumbra_liveness_sweep::{Sweeper, gauge};
use antumbra_publish::SqsChannel;
use antumbra_publish::sqs::SMALL_BYTES;
use antumbra_sensor_ingest::{AutoRegistration, Ingest, Rules, UnknownSensorPolicy};
use antumbra_service::clock::Clock;
use antumbra_service::liveness::Limits;
use antumbra_service::quarantine::Quarantine;
use antumbra_wire::signal::ValueType;
use aws_config::SdkConfig;
use bytes::Bytes;
use serde::Serialize;

use super::LocalServices;
use super::feed::RunningEventSource;
use crate::function::{Function, HandlerError};

/// How long the functions may run, as the template says.
const INGEST_TIMEOUT: Duration = Duration::from_secs(10);
const SWEEP_TIMEOUT: Duration = Duration::from_secs(55);
/// How often the sweep comes.
const PERIOD: Duration = Duration::from_secs(60);
/// How long the sweep waits for its marker, and for what that overtook: the queues are in this process.
const WAIT: Duration = Duration::from_secs(10);
const SETTLE: Duration = Duration::from_millis(200);
const SIGNALS: &str = "antumbra-signals";
const QUARANTINE: &str = "antumbra-quarantine";

/// Sensor ingest, fed from its queue. Any scalar is taken in: a laptop has all kinds of sensors.
pub(super) fn ingest(
    ground: &LocalServices,
    newcomer: Option<AutoRegistration>,
) -> RunningEventSource {
    let name = antumbra_sensor_ingest::NAME;
    let sdk = ground.sdk_of(name);
    let sqs = aws_sdk_sqs::Client::new(&sdk.aws);
    let quarantine = SqsChannel::new(&sqs, &ground.queues.queue_url(QUARANTINE));
    // What the emulator's queues take.
    let quarantine = Quarantine::new(Arc::new(quarantine.with_bytes(SMALL_BYTES)));
    let (sensors, progress) = stores(&sdk.database);
    let rules = Rules {
        allowed: ValueType::Scalar,
        ..Rules::default()
    };
    let admission = match newcomer {
        Some(newcomer) => UnknownSensorPolicy::AutoRegister {
            registry: sensors.clone(),
            newcomer,
        },
        None => UnknownSensorPolicy::Quarantine,
    };
    let clock = ground.clock.clone();
    let ingest = Ingest::new(
        sensors,
        progress,
        admission,
        quarantine,
        rules,
        Arc::new(clock.clone()),
    );
    let ingest = Arc::new(ingest);
    let function = Function::new(name, INGEST_TIMEOUT, move |event: Bytes| {
        let ingest = Arc::clone(&ingest);
        let deadline = clock.now().after(INGEST_TIMEOUT);
        async move {
            let handled = ingest.handle(&event, deadline).await.map_err(failed)?;
            tracing::debug!(?handled, "signals were taken in");
            json(&handled.response().map_err(failed)?)
        }
    });
    ground.feed_from_queue(SIGNALS, function)
}

/// The liveness sweep.
pub(super) fn sweep(ground: &LocalServices) -> Function {
    let name = antumbra_liveness_sweep::NAME;
    let sdk = ground.sdk_of(name);
    let sqs = aws_sdk_sqs::Client::new(&sdk.aws);
    let url = ground.queues.queue_url(SIGNALS);
    let gauge = gauge(Arc::new(SqsChannel::new(&sqs, &url)), &url, WAIT, SETTLE);
    let (sensors, progress) = stores(&sdk.database);
    let clock = ground.clock.clone();
    let limits = Limits::default();
    let sweeper = Sweeper::new(
        sensors,
        progress,
        Some(gauge),
        limits,
        Arc::new(clock.clone()),
    );
    let sweeper = Arc::new(sweeper);
    Function::new(name, SWEEP_TIMEOUT, move |_: Bytes| {
        let sweeper = Arc::clone(&sweeper);
        let deadline = clock.now().after(SWEEP_TIMEOUT);
        async move {
            let swept = sweeper.run(deadline).await;
            sweeper.purge(deadline).await;
            let report = swept.map_err(failed)?;
            tracing::debug!(?report, "sensors were looked at");
            json(&report)
        }
    })
}

/// The sweep, called every minute.
pub(super) fn sweeping(ground: &LocalServices, sweep: Function) -> RunningEventSource {
    ground.feed_from_schedule(PERIOD, sweep)
}

fn stores(sdk: &SdkConfig) -> (DynamoDbSensors, DynamoDbProgress) {
    let database = antumbra_dynamodb::client(sdk);
    let progress = DynamoDbProgress::new(database.clone(), MAIN.name);
    let sensors = DynamoDbSensors::new(database, SensorConfig::new(MAIN.name));
    (sensors, progress)
}

fn failed(error: impl std::fmt::Display) -> HandlerError {
    HandlerError(error.to_string())
}

fn json(answer: &impl Serialize) -> Result<Bytes, HandlerError> {
    serde_json::to_vec(answer).map(Bytes::from).map_err(failed)
}
