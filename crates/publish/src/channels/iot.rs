//! MQTT topics of AWS IoT Core, by its data plane's `Publish`.
//!
//! The role needs `iot:Publish` on the topics. There are no batches: each message is a call, and several calls are in
//! flight at once.

use std::sync::Arc;

use antumbra_registration::target::Mqtt;
use antumbra_service::notifications::{Channel, ChannelLimits, Message};
use antumbra_wire::topic_prefix::TopicPrefix;
use async_trait::async_trait;
use aws_sdk_iotdataplane::Client;
use aws_sdk_iotdataplane::primitives::Blob;
use aws_types::SdkConfig;

use super::batch::{Sent, permanent};
use super::{AwsChannelFactory, topic};
use crate::LazyClient;
use crate::classify::sdk_error;

pub const CONCURRENT_CALLS: usize = 32;
pub const BYTES: usize = topic::PAYLOAD_BYTES;

const LABEL: &str = "AWS IoT";

/// Opens the channel of a target. All targets share the account's broker.
pub(super) fn open(_: &Mqtt, factory: &AwsChannelFactory) -> Arc<dyn Channel> {
    Arc::new(IotChannel {
        client: factory.iot.clone(),
        topic_prefix: factory.options.topic_prefix.clone(),
    })
}

/// A client of the account's endpoint, with or without `https://`, or of the SDK's default endpoint.
pub(super) fn client(sdk: &SdkConfig, endpoint: Option<&str>) -> LazyClient<Client> {
    let endpoint = endpoint.map(|endpoint| match endpoint.contains("://") {
        true => endpoint.to_owned(),
        false => format!("https://{endpoint}"),
    });
    let sdk = sdk.clone();
    LazyClient::new(move || {
        let mut config = aws_sdk_iotdataplane::config::Builder::from(&sdk);
        if let Some(endpoint) = endpoint {
            config = config.endpoint_url(endpoint);
        }
        Client::from_conf(config.build())
    })
}

#[derive(Debug)]
pub struct IotChannel {
    client: LazyClient<Client>,
    topic_prefix: TopicPrefix,
}

impl IotChannel {
    /// Connects to the account's endpoint, with or without `https://`, or to the SDK's default endpoint. Adds the
    /// prefix to the topics of all messages.
    pub fn connect(
        sdk: &SdkConfig,
        endpoint: Option<&str>,
        topic_prefix: TopicPrefix,
    ) -> IotChannel {
        IotChannel {
            client: client(sdk, endpoint),
            topic_prefix,
        }
    }

    pub fn new(client: &Client) -> IotChannel {
        IotChannel {
            client: client.into(),
            topic_prefix: TopicPrefix::default(),
        }
    }

    async fn publish(&self, message: &Message) -> Sent {
        let reject = |reason: String| permanent(LABEL, &reason);
        let topic = message
            .topic
            .as_deref()
            .map(|topic| self.topic_prefix.add(topic));
        let topic = topic::checked_topic(message, topic.as_deref()).map_err(reject)?;
        let call = self.client.publish().topic(topic);
        let call = call.qos(i32::from(message.qos));
        let call = call.set_correlation_data(message.correlation_data.clone());
        let call = call.payload(Blob::new(message.body.as_bytes()));
        match call.send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(sdk_error(&format!("{LABEL} {topic}"), &error)),
        }
    }
}

#[async_trait]
impl Channel for IotChannel {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: 1,
            batch_bytes: BYTES,
            message_bytes: BYTES,
        }
    }

    fn concurrent_calls(&self) -> usize {
        CONCURRENT_CALLS
    }

    async fn send(&self, messages: &[Message]) -> Vec<Sent> {
        let mut results = Vec::with_capacity(messages.len());
        for message in messages {
            results.push(self.publish(message).await);
        }
        results
    }
}
