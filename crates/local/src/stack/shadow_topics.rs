//! Repeats shadow notifications on AWS's reserved topics, so that a device made for AWS IoT Device Shadow
//! works unchanged.

use antumbra_wire::topic_prefix::TopicPrefix;
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
pub(super) fn repeat(broker: &Broker, topic_prefix: &TopicPrefix) -> Running {
    // All four are valid filters.
    let filters = NOTIFICATIONS
        .iter()
        .filter_map(|filter| TopicFilter::new(topic_prefix.add(filter)).ok());
    let mut repeaters: JoinSet<()> = filters
        .map(|filter| {
            repeat_each(
                broker.subscribe(filter),
                broker.publisher(),
                topic_prefix.clone(),
            )
        })
        .collect();
    Running::start(|stop| async move {
        // Unlike `join_all`, this does not panic when the runtime cancels the tasks first.
        let ended = async { while repeaters.join_next().await.is_some() {} };
        stop.run_until_cancelled(ended).await;
    })
}

async fn repeat_each(mut messages: Subscription, publisher: Publisher, topic_prefix: TopicPrefix) {
    while let Some(mut message) = messages.next().await {
        let topic = topic_prefix.strip(&message.topic);
        let Some(topic) = topic.and_then(aws_topic) else {
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
