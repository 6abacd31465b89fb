//! From a target to the channel that reaches it.

use std::sync::{Arc, OnceLock};

use antumbra_notify::{ChannelFactory, ClientsRoute};
use antumbra_registration::Target;
use antumbra_service::clients::LinkedClients;
use antumbra_service::deliveries::Queues;
use antumbra_service::notifications::Channel;
use aws_types::SdkConfig;

use crate::{EventBridgeChannel, IotChannel, SnsChannel, SqsChannel, sqs};

/// Channels to AWS, through one client per service. All but SQS's are made when a target asks for them:
/// each takes its part of a cold start.
pub struct AwsChannelFactory {
    sdk: SdkConfig,
    sqs: aws_sdk_sqs::Client,
    sns: OnceLock<aws_sdk_sns::Client>,
    eventbridge: OnceLock<aws_sdk_eventbridge::Client>,
    iot_endpoint: Option<String>,
    mqtt: OnceLock<Arc<dyn Channel>>,
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

impl AwsChannelFactory {
    /// MQTT goes through AWS IoT's data plane, at the account's own endpoint if given.
    pub fn new(
        sdk: &SdkConfig,
        iot_endpoint: Option<&str>,
        undeliverable: String,
    ) -> AwsChannelFactory {
        AwsChannelFactory {
            sdk: sdk.clone(),
            sqs: aws_sdk_sqs::Client::new(sdk),
            sns: OnceLock::new(),
            eventbridge: OnceLock::new(),
            iot_endpoint: iot_endpoint.map(str::to_owned),
            mqtt: OnceLock::new(),
            clients: None,
            undeliverable,
            queue_bytes: sqs::BYTES,
            tenants: false,
        }
    }

    /// Another size limit of queues than SQS's own, for queues that are set to less.
    #[must_use]
    pub fn with_queue_bytes(self, queue_bytes: usize) -> AwsChannelFactory {
        AwsChannelFactory {
            queue_bytes,
            ..self
        }
    }

    /// Whether standard queues are told whose message it is, and so are fair. Emulators' take no such.
    #[must_use]
    pub fn with_tenants(self, tenants: bool) -> AwsChannelFactory {
        AwsChannelFactory { tenants, ..self }
    }

    /// Tells the clients linked to sensors, through these queues.
    #[must_use]
    pub fn with_clients(
        self,
        links: Arc<dyn LinkedClients>,
        ordered: String,
        unordered: String,
    ) -> AwsChannelFactory {
        let clients = Some(DeliveryQueues {
            links,
            ordered,
            unordered,
        });
        AwsChannelFactory { clients, ..self }
    }

    fn topic(&self, topic: &str) -> Arc<dyn Channel> {
        let sns = self.sns.get_or_init(|| aws_sdk_sns::Client::new(&self.sdk));
        Arc::new(SnsChannel::new(sns, topic))
    }

    fn bus(&self, bus: &str) -> Arc<dyn Channel> {
        let make = || aws_sdk_eventbridge::Client::new(&self.sdk);
        Arc::new(EventBridgeChannel::new(
            self.eventbridge.get_or_init(make),
            bus,
        ))
    }

    fn mqtt(&self) -> Arc<dyn Channel> {
        let make = || -> Arc<dyn Channel> {
            let mut iot = aws_sdk_iotdataplane::config::Builder::from(&self.sdk);
            if let Some(endpoint) = &self.iot_endpoint {
                let scheme = if endpoint.contains("://") {
                    ""
                } else {
                    "https://"
                };
                iot = iot.endpoint_url(format!("{scheme}{endpoint}"));
            }
            let iot = aws_sdk_iotdataplane::Client::from_conf(iot.build());
            Arc::new(IotChannel::new(&iot))
        };
        Arc::clone(self.mqtt.get_or_init(make))
    }

    fn queue(&self, queue: &str) -> Arc<dyn Channel> {
        Arc::new(
            SqsChannel::new(&self.sqs, queue)
                .with_bytes(self.queue_bytes)
                .with_tenants(self.tenants),
        )
    }
}

impl ChannelFactory for AwsChannelFactory {
    fn channel(&self, target: &Target) -> Option<Arc<dyn Channel>> {
        match target {
            Target::Sqs(sqs) => Some(self.queue(sqs.queue.as_str())),
            Target::Sns(sns) => Some(self.topic(&sns.topic)),
            Target::EventBridge(eventbridge) => Some(self.bus(&eventbridge.bus)),
            Target::Mqtt(_) => Some(self.mqtt()),
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
