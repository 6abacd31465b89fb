//! Shadows over MQTT: get, update and delete, with the topics and payloads of AWS IoT Device Shadow.
//!
//! An AWS IoT rule invokes the function with a message. [`ShadowRequests`] parses it
//! ([`antumbra_wire::shadow_mqtt`]), calls [`antumbra_service::shadows`], and publishes one response on
//! `/accepted` or `/rejected` below the request's topic; `/accepted` of an update only if it is wanted. The stream
//! listener publishes `/update/delta` and `/update/documents`.

mod config;
mod requests;
mod serve;

use std::sync::Arc;

use antumbra_dynamodb::{Client, DynamoDbShadows, ShadowTableConfig, client};
use antumbra_publish::IotChannel;
use antumbra_service::clock::Clock;
use aws_types::SdkConfig;

pub use config::{AcceptedUpdates, Config, Order};
pub use requests::{RequestSummary, ShadowRequests};

pub const NAME: &str = "shadow-requests";

pub fn build(
    config: Config,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> ShadowRequests<DynamoDbShadows> {
    build_with(client(sdk), config, sdk, clock)
}

/// Does the same with an existing client of DynamoDB.
pub fn build_with(
    database: Client,
    config: Config,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> ShadowRequests<DynamoDbShadows> {
    let table = ShadowTableConfig::new(&config.table).layout(config.layout);
    let shadows = DynamoDbShadows::new(database, table);
    let endpoint = config.iot_endpoint.as_deref();
    let responses = IotChannel::connect(sdk, endpoint, config.topic_prefix.clone());
    ShadowRequests::new(shadows, config, Arc::new(responses), clock)
}
