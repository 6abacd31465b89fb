//! Retained messages, in memory.

use std::time::Duration;

use async_trait::async_trait;
use rmqtt::{
    Result,
    retain::{DefaultRetainStorage, RetainStorage},
    types::{Retain, TopicFilter, TopicName},
};

/// The broker's own tree, which it uses only if a store is configured.
#[derive(Default)]
pub(super) struct Retained(DefaultRetainStorage);

#[async_trait]
impl RetainStorage for Retained {
    fn enable(&self) -> bool {
        true
    }

    fn need_sync(&self) -> bool {
        false
    }

    async fn set(&self, topic: &TopicName, retain: Retain, _: Option<Duration>) -> Result<()> {
        // Kept until replaced, unless the publisher set an expiry; without one, the given interval is that of
        // sessions.
        let properties = retain.publish.properties.as_ref();
        let expiry = properties
            .and_then(|of| of.message_expiry_interval)
            .map(|seconds| Duration::from_secs(seconds.get().into()));
        self.0.set_with_timeout(topic, retain, expiry).await
    }

    async fn get(&self, filter: &TopicFilter) -> Result<Vec<(TopicName, Retain)>> {
        // IoT Core sends retained messages only for filters without wildcards.
        if filter.contains(['+', '#']) {
            return Ok(Vec::new());
        }
        self.0.get_message(filter).await
    }

    async fn count(&self) -> isize {
        self.0.count().await
    }

    async fn max(&self) -> isize {
        self.0.max().await
    }
}
