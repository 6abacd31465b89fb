//! The function that answers requests to shadows, called by its rules; and the topics that AWS keeps for its
//! own shadows, so that a device made for those works here as it is.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbShadows, MAIN, ShadowTableConfig};
use antumbra_service::clock::Clock;
use antumbra_shadow::Model;
use antumbra_shadow_requests::{NAME, ShadowRequests, connect};
use antumbra_wire::rules::{AWS_SHADOW_RULES, SHADOW_RULES};
use bytes::Bytes;
use tokio::task::JoinSet;

use super::LocalServices;
use super::feed::RunningEventSource;
use crate::function::{Function, HandlerError};
use crate::mqtt::{Publisher, Subscription, TopicFilter};
use crate::rules::RuleError;

/// How long it may run, as the template says: whoever asks waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What devices hear of changes, on our topics: those with a name have it in their middle.
const TOLD: [&str; 4] = [
    "shadow/+/update/delta",
    "shadow/+/update/documents",
    "shadow/+/name/+/update/delta",
    "shadow/+/name/+/update/documents",
];

/// The function, fed by its rules.
pub(super) fn feed(ground: &LocalServices) -> Result<RunningEventSource, RuleError> {
    let config = ShadowTableConfig::new(MAIN.name).layout(ground.layout);
    let sdk = ground.sdk_of(NAME);
    let shadows = DynamoDbShadows::connect(&sdk.database, config);
    let answers = connect::answers(&sdk.aws, None);
    let clock = ground.clock.clone();
    let requests = ShadowRequests::new(shadows, Model::default(), answers, Arc::new(clock.clone()));
    let requests = Arc::new(requests);
    let function = Function::new(NAME, TIMEOUT, move |event: Bytes| {
        let requests = Arc::clone(&requests);
        let deadline = clock.now().after(TIMEOUT);
        async move {
            let handled = requests
                .handle(&event, deadline)
                .await
                .map_err(|error| HandlerError(error.to_string()))?;
            tracing::debug!(?handled, "a request to a shadow was answered");
            Ok(Bytes::from_static(b"null"))
        }
    });
    let rules = SHADOW_RULES.iter().chain(&AWS_SHADOW_RULES);
    ground.feed_from_rules(rules.map(|rule| (*rule, function.clone())).collect())
}

/// Repeats what devices are told of their shadows on AWS's topics, for as long as the broker runs.
pub(super) fn repeat(ground: &LocalServices) -> RunningEventSource {
    let mut repeating = JoinSet::new();
    for filter in TOLD {
        // They are filters.
        if let Ok(filter) = TopicFilter::new(filter) {
            let messages = ground.broker.subscribe(filter);
            repeating.spawn(repeat_each(messages, ground.broker.publisher()));
        }
    }
    RunningEventSource::repeater(repeating)
}

async fn repeat_each(mut messages: Subscription, publisher: Publisher) {
    while let Some(mut message) = messages.next().await {
        let Some(topic) = aws_topic(&message.topic) else {
            continue;
        };
        message.topic = topic;
        if let Err(error) = publisher.publish(message).await {
            tracing::warn!(%error, "what a device is told could not be repeated on AWS's topic");
        }
    }
}

/// `shadow/{thing}/...` as AWS has it: `$aws/things/{thing}/shadow/...`.
fn aws_topic(topic: &str) -> Option<String> {
    let (thing, rest) = topic.strip_prefix("shadow/")?.split_once('/')?;
    Some(format!("$aws/things/{thing}/shadow/{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_of_ours_is_one_of_awss() {
        for (ours, aws) in [
            ("shadow/a/update/delta", "$aws/things/a/shadow/update/delta"),
            (
                "shadow/a/name/b/update/documents",
                "$aws/things/a/shadow/name/b/update/documents",
            ),
        ] {
            assert_eq!(aws_topic(ours).as_deref(), Some(aws));
        }
    }
}
