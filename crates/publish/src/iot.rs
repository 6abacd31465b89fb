//! MQTT topics of AWS IoT Core, by its data plane's `Publish`.
//!
//! The role needs `iot:Publish` on the topics. There are no batches: messages
//! go one by one, in order. At the first that is worth another try the rest
//! waits with it, since one of its key may not overtake it; what can never be
//! sent holds nothing up.

use antumbra_service::notifications::{BoxFuture, Channel, ChannelLimits, Message};
use aws_sdk_iotdataplane::Client;
use aws_sdk_iotdataplane::primitives::Blob;
use aws_types::SdkConfig;

use crate::batch::{Sent, held_back, permanent};
use crate::classify::sdk_error;
use crate::topic;

/// Messages taken at once. Each is a call of its own.
pub const BATCH_COUNT: usize = 10;
/// Bytes of a message.
pub const BYTES: usize = topic::PAYLOAD_BYTES;

const CALLED: &str = "AWS IoT";

/// The account's message broker.
#[derive(Debug)]
pub struct IotChannel {
    client: Client,
}

impl IotChannel {
    /// Connects to the account's own endpoint of AWS IoT if given, otherwise to the SDK's default.
    pub fn connect(sdk: &SdkConfig, endpoint: Option<&str>) -> IotChannel {
        let mut config = aws_sdk_iotdataplane::config::Builder::from(sdk);
        if let Some(endpoint) = endpoint {
            let scheme = if endpoint.contains("://") {
                ""
            } else {
                "https://"
            };
            config = config.endpoint_url(format!("{scheme}{endpoint}"));
        }
        IotChannel::new(&Client::from_conf(config.build()))
    }

    /// The broker that the client's endpoint leads to.
    pub fn new(client: &Client) -> IotChannel {
        IotChannel {
            client: client.clone(),
        }
    }

    async fn publish(&self, message: &Message) -> Sent {
        let refuse = |reason: String| permanent(CALLED, &reason);
        let topic = topic::of(message).map_err(refuse)?;
        let call = self.client.publish().topic(topic);
        let call = call.qos(i32::from(message.qos));
        let call = call.set_correlation_data(message.correlation_data.clone());
        let call = call.payload(Blob::new(message.body.as_bytes()));
        match call.send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(sdk_error(&format!("{CALLED} {topic}"), &error)),
        }
    }

    async fn send_each(&self, messages: &[Message]) -> Vec<Sent> {
        let mut results = Vec::with_capacity(messages.len());
        for message in messages {
            let sent = match held_back(CALLED, &results) {
                Some(waits) => Err(waits),
                None => self.publish(message).await,
            };
            results.push(sent);
        }
        results
    }
}

impl Channel for IotChannel {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: BATCH_COUNT,
            batch_bytes: BATCH_COUNT * BYTES,
            message_bytes: BYTES,
        }
    }

    fn send<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Vec<Sent>> {
        Box::pin(self.send_each(messages))
    }
}
