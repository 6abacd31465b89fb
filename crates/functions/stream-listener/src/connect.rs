//! From a target to the channel that reaches it.

use std::sync::Arc;

use antumbra_publish::{EventBridgeChannel, IotChannel, SnsChannel, SqsChannel, sqs};
use antumbra_registration::Target;
use antumbra_service::clients::LinkedClients;
use antumbra_service::deliveries::Queues;
use antumbra_service::notifications::Channel;
use aws_config::SdkConfig;

use crate::deliveries::ClientsRoute;

/// Makes channels.
pub trait Channels: Send + Sync {
    /// The channel to a target, or `None` if there is no way to it. Nothing is called yet.
    fn channel(&self, target: &Target) -> Option<Arc<dyn Channel>>;

    /// How to reach the clients linked to sensors, or `None` if there is no way to them.
    fn clients(&self) -> Option<ClientsRoute> {
        None
    }

    /// The queue for what can never be sent.
    fn undeliverable(&self) -> Arc<dyn Channel>;
}

/// Channels to AWS, through one client per service.
pub struct AwsChannels {
    sqs: aws_sdk_sqs::Client,
    sns: aws_sdk_sns::Client,
    eventbridge: aws_sdk_eventbridge::Client,
    mqtt: Arc<dyn Channel>,
    clients: Option<DeliveryQueues>,
    undeliverable: String,
    queue_bytes: usize,
    tenants: bool,
}

/// Who is linked to sensors, and the two queues of what they are told.
struct DeliveryQueues {
    links: Arc<dyn LinkedClients>,
    ordered: String,
    unordered: String,
}

impl AwsChannels {
    /// MQTT goes through AWS IoT's data plane, at the account's own endpoint if given.
    pub fn new(sdk: &SdkConfig, iot_endpoint: Option<&str>, undeliverable: String) -> AwsChannels {
        let mut iot = aws_sdk_iotdataplane::config::Builder::from(sdk);
        if let Some(endpoint) = iot_endpoint {
            let scheme = if endpoint.contains("://") {
                ""
            } else {
                "https://"
            };
            iot = iot.endpoint_url(format!("{scheme}{endpoint}"));
        }
        let iot = aws_sdk_iotdataplane::Client::from_conf(iot.build());
        AwsChannels::with_mqtt(sdk, Arc::new(IotChannel::new(&iot)), undeliverable)
    }

    /// MQTT goes wherever the given channel leads.
    pub fn with_mqtt(
        sdk: &SdkConfig,
        mqtt: Arc<dyn Channel>,
        undeliverable: String,
    ) -> AwsChannels {
        AwsChannels {
            sqs: aws_sdk_sqs::Client::new(sdk),
            sns: aws_sdk_sns::Client::new(sdk),
            eventbridge: aws_sdk_eventbridge::Client::new(sdk),
            mqtt,
            clients: None,
            undeliverable,
            queue_bytes: sqs::BYTES,
            tenants: false,
        }
    }

    /// Another size limit of queues than SQS's own, for queues that are set to less.
    #[must_use]
    pub fn with_queue_bytes(self, queue_bytes: usize) -> AwsChannels {
        AwsChannels {
            queue_bytes,
            ..self
        }
    }

    /// Whether standard queues are told whose message it is, and so are fair. Emulators' take no such.
    #[must_use]
    pub fn with_tenants(self, tenants: bool) -> AwsChannels {
        AwsChannels { tenants, ..self }
    }

    /// Tells the clients linked to sensors, through these queues.
    #[must_use]
    pub fn with_clients(
        self,
        links: Arc<dyn LinkedClients>,
        ordered: String,
        unordered: String,
    ) -> AwsChannels {
        let clients = Some(DeliveryQueues {
            links,
            ordered,
            unordered,
        });
        AwsChannels { clients, ..self }
    }

    fn queue(&self, queue: &str) -> Arc<dyn Channel> {
        Arc::new(
            SqsChannel::new(&self.sqs, queue)
                .with_bytes(self.queue_bytes)
                .with_tenants(self.tenants),
        )
    }
}

impl Channels for AwsChannels {
    fn channel(&self, target: &Target) -> Option<Arc<dyn Channel>> {
        match target {
            Target::Sqs(sqs) => Some(self.queue(sqs.queue.as_str())),
            Target::Sns(sns) => Some(Arc::new(SnsChannel::new(&self.sns, &sns.topic))),
            Target::EventBridge(bus) => Some(Arc::new(EventBridgeChannel::new(
                &self.eventbridge,
                &bus.bus,
            ))),
            Target::Mqtt(_) => Some(Arc::clone(&self.mqtt)),
            Target::Clients(_) => None,
        }
    }

    fn clients(&self) -> Option<ClientsRoute> {
        let clients = self.clients.as_ref()?;
        Some(ClientsRoute {
            links: Arc::clone(&clients.links),
            queues: Queues {
                ordered: self.queue(&clients.ordered),
                unordered: self.queue(&clients.unordered),
            },
        })
    }

    fn undeliverable(&self) -> Arc<dyn Channel> {
        self.queue(&self.undeliverable)
    }
}
