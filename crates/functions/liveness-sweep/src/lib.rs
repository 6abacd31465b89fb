//! Liveness sweep: marks sensors as lost that were silent for too long, once a minute.
//!
//! A late or missing sweep does no harm: due sensors stay due. Two sweeps at the same time mark each sensor
//! once.

#![allow(missing_docs)]

mod config;
mod sweeper;

use std::sync::Arc;

use antumbra_dynamodb::{DynamoDbProgress, DynamoDbSensors, client};
use antumbra_publish::SqsChannel;
use antumbra_service::clock::Clock;
use aws_types::SdkConfig;

pub use config::Config;
pub use sweeper::{Report, SweepError, Sweeper, queue_probe};

/// Name of the function.
pub const NAME: &str = "liveness-sweep";

/// Wires the function.
pub fn build(
    config: Config,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> Sweeper<DynamoDbSensors, DynamoDbProgress> {
    let database = client(sdk);
    let progress = DynamoDbProgress::new(database.clone(), &config.sensors.table);
    let sensors = DynamoDbSensors::new(database, config.sensors);
    let probe = config.signals_queue_url.map(|url| {
        let queue = SqsChannel::new(&aws_sdk_sqs::Client::new(sdk), &url);
        queue_probe(Arc::new(queue), &url, config.marker_wait, config.grace)
    });
    Sweeper::new(sensors, progress, probe, config.limits, clock)
}
