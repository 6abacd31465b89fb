//! Channels to AWS: one module per kind of target, and the factory that opens a channel for each target of a
//! registration.
//!
//! To add a kind, write a module with `open(target, factory)` and add a line to [`AwsChannelFactory::channel`].

mod batch;
mod ids;
mod text;
mod topic;

pub mod eventbridge;
pub mod iot;
pub mod sns;
pub mod sqs;

use std::sync::Arc;

use antumbra_notify::{ChannelFactory, ClientsRoute};
use antumbra_registration::Target;
use antumbra_service::clients::LinkedClients;
use antumbra_service::deliveries::{NewDeliveries, Queues};
use antumbra_service::notifications::Channel;
use antumbra_wire::topic_prefix::TopicPrefix;
use aws_types::SdkConfig;

pub use ids::{deduplication_id, group_id};

use crate::LazyClient;
use sqs::SqsChannel;

/// Opens channels to AWS with one client per service, which is created by the first message to one of its targets.
pub struct AwsChannelFactory {
    sqs: LazyClient<aws_sdk_sqs::Client>,
    sns: LazyClient<aws_sdk_sns::Client>,
    eventbridge: LazyClient<aws_sdk_eventbridge::Client>,
    iot: LazyClient<aws_sdk_iotdataplane::Client>,
    options: ChannelOptions,
}

pub struct ChannelOptions {
    /// Endpoint of AWS IoT; that of the SDK by default.
    pub iot_endpoint: Option<String>,
    /// Prefix of all MQTT topics.
    pub topic_prefix: TopicPrefix,
    /// Queue for undeliverable notifications.
    pub undeliverable: String,
    /// Maximum size of a message in a queue.
    pub queue_bytes: usize,
    /// Makes standard queues fair: see [`SqsChannel::with_tenants`].
    pub tenants: bool,
    /// Enables the target `clients`.
    pub clients: Option<DeliveryQueues>,
}

/// Deliveries to linked clients are recorded and go to these two queues.
pub struct DeliveryQueues {
    pub links: Arc<dyn LinkedClients>,
    pub deliveries: Arc<dyn NewDeliveries>,
    pub ordered: String,
    pub unordered: String,
}

impl AwsChannelFactory {
    pub fn new(sdk: &SdkConfig, options: ChannelOptions) -> AwsChannelFactory {
        let (for_sns, for_eventbridge) = (sdk.clone(), sdk.clone());
        AwsChannelFactory {
            sqs: LazyClient::sqs(sdk),
            sns: LazyClient::new(move || aws_sdk_sns::Client::new(&for_sns)),
            eventbridge: LazyClient::new(move || {
                aws_sdk_eventbridge::Client::new(&for_eventbridge)
            }),
            iot: iot::client(sdk, options.iot_endpoint.as_deref()),
            options,
        }
    }

    /// Opens a channel to a queue, with the options of this factory.
    pub fn queue(&self, queue: &str) -> Arc<dyn Channel> {
        let channel = SqsChannel::new(&self.sqs, queue)
            .with_bytes(self.options.queue_bytes)
            .with_tenants(self.options.tenants);
        Arc::new(channel)
    }
}

impl ChannelFactory for AwsChannelFactory {
    fn channel(&self, target: &Target) -> Option<Arc<dyn Channel>> {
        match target {
            Target::Sqs(target) => Some(sqs::open(target, self)),
            Target::Sns(target) => Some(sns::open(target, self)),
            Target::EventBridge(target) => Some(eventbridge::open(target, self)),
            Target::Mqtt(target) => Some(iot::open(target, self)),
            Target::Clients(_) => None,
        }
    }

    fn clients(&self) -> Option<ClientsRoute> {
        let clients = self.options.clients.as_ref()?;
        Some(ClientsRoute {
            links: Arc::clone(&clients.links),
            deliveries: Arc::clone(&clients.deliveries),
            queues: Queues {
                ordered: self.queue(&clients.ordered),
                unordered: self.queue(&clients.unordered),
            },
        })
    }

    fn undeliverable(&self) -> Arc<dyn Channel> {
        self.queue(&self.options.undeliverable)
    }
}

/// Returns a client for a region: a clone of the given one, with another configuration if its region differs.
macro_rules! client_in_region {
    ($client:expr, $region:expr) => {{
        let client: LazyClient<Client> = $client.into();
        match $region.map(str::to_owned) {
            None => client,
            Some(region) => LazyClient::new(move || {
                let config = client.config();
                if config.region().map(AsRef::as_ref) == Some(region.as_str()) {
                    return Client::clone(&client);
                }
                let region = aws_types::region::Region::new(region);
                Client::from_conf(config.to_builder().region(region).build())
            }),
        }
    }};
}
use client_in_region;
