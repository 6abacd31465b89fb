//! From a target to the channel that reaches it.

use std::sync::Arc;

use antumbra_publish::{EventBridgeChannel, IotChannel, SnsChannel, SqsChannel, sqs};
use antumbra_registration::Target;
use antumbra_service::notifications::Channel;
use aws_config::SdkConfig;

/// Makes channels.
pub trait Channels: Send + Sync {
    /// The channel to a target, or `None` if there is no way to it. Nothing is called yet.
    fn channel(&self, target: &Target) -> Option<Arc<dyn Channel>>;

    /// The queue for what can never be sent.
    fn undeliverable(&self) -> Arc<dyn Channel>;
}

/// Channels to AWS, through one client per service.
pub struct AwsChannels {
    sqs: aws_sdk_sqs::Client,
    sns: aws_sdk_sns::Client,
    eventbridge: aws_sdk_eventbridge::Client,
    mqtt: Arc<dyn Channel>,
    undeliverable: String,
    queue_bytes: usize,
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
            undeliverable,
            queue_bytes: sqs::BYTES,
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

    fn queue(&self, queue: &str) -> Arc<dyn Channel> {
        Arc::new(SqsChannel::new(&self.sqs, queue).with_bytes(self.queue_bytes))
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

    fn undeliverable(&self) -> Arc<dyn Channel> {
        self.queue(&self.undeliverable)
    }
}
