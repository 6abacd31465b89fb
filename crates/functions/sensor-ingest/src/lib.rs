//! Sensor ingest: updates sensor states and readings from the signals in an SQS or RabbitMQ queue.
//!
//! [`Ingest`] reads the event ([`IncomingSignal`]), parses each message (`plan`, pure), writes states, then
//! readings, quarantines what can never be processed, records how far the queue was read, and reports the
//! rest as batch item failures. Every write is idempotent: after a crash the next delivery completes it.

mod arrival;
mod config;
mod ingest;
mod plan;
mod redelivered;
mod rules;

use std::sync::Arc;

use antumbra_dynamodb::{DynamoDbProgress, DynamoDbSensors, client};
use antumbra_publish::{LazyClient, SqsChannel};
use antumbra_service::clock::Clock;
use antumbra_service::quarantine::Quarantine;
use aws_types::SdkConfig;

pub use arrival::{EventError, IncomingSignal};
pub use config::Config;
pub use ingest::{COUNTERS, Ingest};
pub use rules::{AutoRegistration, IdPattern, InvalidPattern, Rules, UnknownSensorPolicy};

pub const NAME: &str = "sensor-ingest";

pub fn build(
    config: Config,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> Ingest<DynamoDbSensors, DynamoDbProgress, DynamoDbSensors> {
    let quarantine = SqsChannel::new(LazyClient::sqs(sdk), &config.quarantine_queue_url)
        .with_bytes(config.queue_bytes);
    let database = client(sdk);
    let progress = DynamoDbProgress::new(database.clone(), &config.sensors.table);
    let sensors = DynamoDbSensors::new(database, config.sensors);
    let unknown = match config.auto_registration {
        Some(registration) => UnknownSensorPolicy::AutoRegister {
            sensors: sensors.clone(),
            registration,
        },
        None => UnknownSensorPolicy::Quarantine,
    };
    Ingest::new(
        sensors,
        progress,
        unknown,
        Quarantine::new(Arc::new(quarantine)),
        config.rules,
        clock,
    )
}
