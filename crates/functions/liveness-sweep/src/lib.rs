//! Liveness sweep: once a minute, marks sensors as lost that were silent for too long, and queues deliveries
//! whose next attempt is due. In the time that is left it carries out purges of sensors and of the past of shadows.
//!
//! A late or missing sweep does no harm: due sensors stay due. Two sweeps at the same time mark each sensor
//! once.

mod config;
mod sweeper;

use std::sync::Arc;

use antumbra_dynamodb::{
    DynamoDbClients, DynamoDbDeliveries, DynamoDbHistory, DynamoDbProgress, DynamoDbSensors, client,
};
use antumbra_publish::{LazyClient, SqsChannel};
use antumbra_service::clock::Clock;
use antumbra_service::deliveries::Queues;
use aws_types::SdkConfig;

pub use config::Config;
pub use sweeper::{DueQueue, Report, SweepError, Sweeper, queue_probe};

pub const NAME: &str = "liveness-sweep";

pub fn build(
    config: Config,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> Sweeper<DynamoDbSensors, DynamoDbProgress> {
    let database = client(sdk);
    let sqs = LazyClient::sqs(sdk);
    let table = &config.sensors.table;
    let progress = DynamoDbProgress::new(database.clone(), table);
    let queue = |url: &str| Arc::new(SqsChannel::new(&sqs, url).with_tenants(config.tenants));
    let deliveries = DueQueue {
        clients: DynamoDbClients::new(database.clone(), table),
        store: DynamoDbDeliveries::new(database.clone(), table),
        queues: Queues {
            ordered: queue(&config.deliveries_fifo_queue_url),
            unordered: queue(&config.deliveries_queue_url),
        },
    };
    let history = config.history;
    let history = history.map(|history| DynamoDbHistory::new(database.clone(), history));
    let sensors = DynamoDbSensors::new(database, config.sensors).with_history(history);
    let probe = config.signals_queue_url.map(|url| {
        let queue = SqsChannel::new(&sqs, &url);
        queue_probe(Arc::new(queue), &url, config.marker_wait, config.grace)
    });
    Sweeper::new(sensors, progress, probe, config.limits, clock).with_deliveries(deliveries)
}
