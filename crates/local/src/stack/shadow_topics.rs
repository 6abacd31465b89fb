//! Repeats shadow notifications on AWS's reserved topics, so that a device made for AWS IoT Device Shadow
//! works unchanged.

use tokio::task::JoinSet;

use crate::mqtt::{Broker, Publisher, Subscription, TopicFilter};
use crate::task::Running;

/// Topics of shadow notifications; the second pair is for named shadows.
const NOTIFICATIONS: [&str; 4] = [
    "shadow/+/update/delta",
    "shadow/+/update/documents",
    "shadow/+/name/+/update/delta",
    "shadow/+/name/+/update/documents",
];

/// Starts repeating, until the broker stops.
pub(super) fn repeat(broker: &Broker) -> Running {
    // All four are valid filters.
    let filters = NOTIFICATIONS
        .iter()
        .filter_map(|filter| TopicFilter::new(*filter).ok());
    let repeaters: JoinSet<()> = filters
        .map(|filter| repeat_each(broker.subscribe(filter), broker.publisher()))
        .collect();
    Running::start(|stop| async move {
        stop.run_until_cancelled(repeaters.join_all()).await;
    })
}

async fn repeat_each(mut messages: Subscription, publisher: Publisher) {
    while let Some(mut message) = messages.next().await {
        let Some(topic) = aws_topic(&message.topic) else {
            continue;
        };
        message.topic = topic;
        if let Err(error) = publisher.publish(message).await {
            tracing::warn!(%error, "shadow notification not repeated on AWS's topic");
        }
    }
}

/// `shadow/{thing}/...` becomes `$aws/things/{thing}/shadow/...`.
fn aws_topic(topic: &str) -> Option<String> {
    let (thing, rest) = topic.strip_prefix("shadow/")?.split_once('/')?;
    Some(format!("$aws/things/{thing}/shadow/{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_mapped_to_awss() {
        for (topic, aws) in [
            ("shadow/a/update/delta", "$aws/things/a/shadow/update/delta"),
            (
                "shadow/a/name/b/update/documents",
                "$aws/things/a/shadow/name/b/update/documents",
            ),
        ] {
            assert_eq!(aws_topic(topic).as_deref(), Some(aws));
        }
    }
}
