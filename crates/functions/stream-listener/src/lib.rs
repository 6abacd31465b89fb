//! The stream listener function: [`antumbra_notify::Listener`] behind the events of a DynamoDB stream.

mod config;

use std::sync::Arc;

use antumbra_dynamodb::streams::StreamRecords;
use antumbra_dynamodb::{
    Client, DynamoDbClients, DynamoDbDeliveries, DynamoDbShadows, DynamoDbSuspensions,
    ShadowTableConfig, client,
};
use antumbra_lambda_kit::batch::batch_item_failures;
use antumbra_lambda_kit::metrics::{Metric, Unit};
use antumbra_lambda_kit::{Handler, HandlerError, Invocation, Response};
use antumbra_notify::{BatchSummary, Listener, RouteError, Spill, SpillSummary, files};
use antumbra_publish::{AwsChannelFactory, ChannelOptions, DeliveryQueues};
use antumbra_registration::Registrations;
use antumbra_service::clock::Clock;
use antumbra_wire::events::sqs;
use antumbra_wire::items::FilteredOut;
use antumbra_wire::stream::event_source;
use async_trait::async_trait;
use aws_types::SdkConfig;

pub use config::Config;

pub const NAME: &str = "stream-listener";

pub struct StreamListener(pub Listener);

/// Loads the registrations, and checks that the records they can match reach the function.
pub fn load_registrations(
    config: &Config,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Registrations, RegistrationsError> {
    let registrations = files::load(&config.registrations, env)?;
    config.stream_kinds.check(&registrations)?;
    Ok(registrations)
}

/// Registrations that the function cannot use.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum RegistrationsError {
    Files(#[from] files::FilesError),
    Filter(#[from] FilteredOut),
}

/// Wires the function. `config.registrations` is not read; the caller loads them.
pub fn build(
    config: Config,
    registrations: Registrations,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> Result<StreamListener, RouteError> {
    build_with(client(sdk), config, registrations, sdk, clock)
}

/// Does the same with an existing client of DynamoDB.
pub fn build_with(
    database: Client,
    config: Config,
    registrations: Registrations,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> Result<StreamListener, RouteError> {
    let queues = config
        .deliveries_fifo_queue_url
        .zip(config.deliveries_queue_url);
    let clients = config.table.as_ref().zip(queues);
    let channels = AwsChannelFactory::new(
        sdk,
        ChannelOptions {
            iot_endpoint: config.iot_endpoint,
            topic_prefix: config.topic_prefix,
            undeliverable: config.undeliverable_queue_url,
            queue_bytes: config.queue_bytes,
            tenants: config.tenants,
            clients: clients.map(|(table, (ordered, unordered))| DeliveryQueues {
                links: Arc::new(DynamoDbClients::new(database.clone(), table)),
                deliveries: Arc::new(DynamoDbDeliveries::new(database.clone(), table)),
                ordered,
                unordered,
            }),
        },
    );
    let spill_queue = config.spill_queue_url.map(|url| channels.queue(&url));
    let mut listener = Listener::new(registrations, &channels, config.model, clock)?;
    if let Some(table) = config.table {
        if let Some(queue) = spill_queue {
            let suspensions = Arc::new(DynamoDbSuspensions::new(database.clone(), &table));
            listener = listener.with_spill(Spill { queue, suspensions });
        }
        let table = ShadowTableConfig::new(table).layout(config.layout);
        let shadows = DynamoDbShadows::new(database, table);
        listener = listener.with_documents(shadows);
    }
    let records = StreamRecords::connect(sdk);
    listener = listener.with_records(Box::new(records));
    Ok(StreamListener(listener))
}

#[async_trait]
impl Handler for StreamListener {
    async fn handle(&self, invocation: Invocation) -> Result<Response, HandlerError> {
        let (event, deadline) = (&invocation.event, invocation.deadline);
        if event_source(event).as_deref() == Some(sqs::SOURCE) {
            let messages = sqs::read(event).map_err(HandlerError::event)?;
            let summary = self.0.handle_spilled(&messages, deadline).await;
            let failures = batch_item_failures(&summary.failed);
            return Response::json(&failures, spill_metrics(&summary));
        }
        let summary = self.0.handle(event, deadline).await;
        let summary = summary.map_err(HandlerError::event)?;
        let failures = batch_item_failures(&summary.resume_at);
        Response::json(&failures, metrics(&summary))
    }
}

pub fn metrics(summary: &BatchSummary) -> Vec<Metric> {
    let oldest = summary.oldest_milliseconds.unwrap_or(0) as f64;
    vec![
        Metric::count("records", summary.records),
        Metric::count("matched", summary.matched),
        Metric::count("sent", summary.sent),
        Metric::count("retried", summary.retried),
        Metric::count("undeliverable", summary.undeliverable),
        Metric::count("spilled", summary.spilled),
        Metric::count("suspended", summary.suspended),
        Metric::new("oldestRecordAge", oldest, Unit::Milliseconds),
    ]
}

fn spill_metrics(summary: &SpillSummary) -> Vec<Metric> {
    vec![
        Metric::count("sent", summary.sent),
        Metric::count("retried", summary.retried),
        Metric::count("undeliverable", summary.undeliverable),
    ]
}
