//! The use cases behind the routes, and their wiring.

use std::sync::Arc;

use antumbra_dynamodb::{
    DynamoDbClients, DynamoDbDeliveries, DynamoDbIdempotency, DynamoDbInbox, DynamoDbSensors,
    DynamoDbShadows, ShadowTableConfig, client,
};
use antumbra_publish::SqsChannel;
use antumbra_publish::webhook::Guard;
use antumbra_service::clients::Clients;
use antumbra_service::clock::Clock;
use antumbra_service::deliveries::{Deliveries, Queues};
use antumbra_service::sensors::{Sensors, ValueType};
use antumbra_service::shadows::Shadows;
use aws_types::SdkConfig;
use axum::Router;
use axum::extract::State;

use crate::{Config, router};

pub struct Services {
    pub shadows: Shadows<DynamoDbShadows>,
    pub messages: DynamoDbInbox,
    pub sensors: Sensors<DynamoDbSensors>,
    pub clients: Clients<DynamoDbClients, Guard>,
    pub deliveries: Deliveries<DynamoDbClients, DynamoDbDeliveries>,
    /// Values that signals may have.
    pub signal_values: ValueType,
    pub idempotency: DynamoDbIdempotency,
    pub clock: Arc<dyn Clock>,
}

pub(crate) type Api = State<Arc<Services>>;

pub fn build(config: Config, sdk: &SdkConfig, clock: Arc<dyn Clock>) -> Router {
    let table = &config.table;
    let shadows = ShadowTableConfig::new(table).layout(config.layout);
    let shadows = DynamoDbShadows::connect(sdk, shadows);
    let clients = DynamoDbClients::connect(sdk, table);
    let sqs = aws_sdk_sqs::Client::new(sdk);
    let queue = |url| Arc::new(SqsChannel::new(&sqs, url).with_bytes(config.queue_bytes));
    let queues = Queues {
        ordered: queue(&config.ordered_queue_url),
        unordered: queue(&config.unordered_queue_url),
    };
    let history = DynamoDbDeliveries::connect(sdk, table);
    let services = Services {
        shadows: Shadows::with_clock(shadows, Arc::clone(&clock)).with_model(config.model),
        messages: DynamoDbInbox::connect(sdk, config.messages_table),
        sensors: Sensors::with_clock(
            DynamoDbSensors::connect(sdk, config.sensors),
            Arc::clone(&clock),
        ),
        clients: Clients::new(
            clients.clone(),
            Guard::new(config.webhook_allow),
            Arc::clone(&clock),
        ),
        deliveries: Deliveries::new(clients, history, queues, Arc::clone(&clock)),
        signal_values: config.signal_values,
        idempotency: DynamoDbIdempotency::new(client(sdk), table),
        clock,
    };
    router(services, config.auth)
}
