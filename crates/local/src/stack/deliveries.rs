//! Webhook deliver, fed from both deliveries queues.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbDeliveries, MAIN};
use antumbra_publish::webhook::{Allow, Guard};
use antumbra_publish::{SqsVisibility, WebhookSender};
use antumbra_service::clock::Clock;
use antumbra_service::deliveries::{Delays, Deliver, Policy};
use antumbra_webhook_deliver::{NAME, Worker};
use bytes::Bytes;

use super::LocalServices;
use super::feed::RunningEventSource;
use crate::function::{Function, HandlerError};
use crate::queue_pump;

/// How long it may run, as the template says: a sixth of what a message stays hidden.
const TIMEOUT: Duration = Duration::from_secs(30);
/// In order, for mode `every`.
pub(super) const ORDERED: &str = "antumbra-deliveries.fifo";
/// In any order, for mode `latest`.
pub(super) const UNORDERED: &str = "antumbra-deliveries";

/// How webhooks are sent.
#[derive(Debug, Clone)]
pub struct Webhooks {
    /// What may be called beside the public internet.
    pub allow: Allow,
    /// The rules of sending.
    pub policy: Policy,
    /// How long an endpoint may take.
    pub timeout: Duration,
    /// Deliveries that are sent at once, from each of the two queues. One message a call: whoever waits
    /// for an endpoint that hangs holds no other message.
    pub at_once: usize,
}

/// This machine's own endpoints are open, and retries come within seconds: it is for trying things out.
impl Default for Webhooks {
    fn default() -> Webhooks {
        // Names and addresses are understood, which a test shows.
        let allow = "http://localhost, http://127.0.0.0/8, http://[::1]";
        let delays = Delays {
            first: Duration::from_secs(2),
            longest: Duration::from_secs(60),
            ..Delays::default()
        };
        Webhooks {
            allow: allow.parse().unwrap_or_default(),
            policy: Policy {
                delays,
                open_first: Duration::from_secs(5),
                open_longest: Duration::from_secs(30),
                ..Policy::default()
            },
            timeout: antumbra_publish::webhook::TIMEOUT,
            at_once: 32,
        }
    }
}

/// The function, fed from its two queues.
pub(super) fn feeds(ground: &LocalServices, webhooks: &Webhooks) -> [RunningEventSource; 2] {
    let function = function(ground, webhooks);
    [ORDERED, UNORDERED].map(|queue| {
        let source = queue_pump::Source {
            batch_size: 1,
            concurrency: webhooks.at_once,
            ..ground.source(queue)
        };
        ground.feed_from_source(source, function.clone())
    })
}

fn function(ground: &LocalServices, webhooks: &Webhooks) -> Function {
    let guard = Guard::new(webhooks.allow.clone());
    let sender = WebhookSender::new(guard).with_timeout(webhooks.timeout);
    let sdk = ground.sdk_of(NAME);
    let ledger = DynamoDbDeliveries::connect(&sdk.database, MAIN.name);
    let clock = ground.clock.clone();
    let deliver = Deliver::new(ledger, sender, Arc::new(clock.clone()), webhooks.policy);
    let urls = [ORDERED, UNORDERED].map(|queue| ground.queues.queue_url(queue));
    let postpone = SqsVisibility::new(aws_sdk_sqs::Client::new(&sdk.aws), urls);
    let worker = Arc::new(Worker::new(deliver, postpone));
    Function::new(NAME, TIMEOUT, move |event: Bytes| {
        let worker = Arc::clone(&worker);
        let deadline = clock.now().after(TIMEOUT);
        async move {
            let handled = worker
                .handle(&event, deadline)
                .await
                .map_err(|error| HandlerError(error.to_string()))?;
            tracing::debug!(?handled, "turns were taken");
            let response = serde_json::to_vec(&handled.response())
                .map_err(|error| HandlerError(error.to_string()))?;
            Ok(response.into())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_open_by_default() {
        assert_ne!(Webhooks::default().allow, Allow::default());
    }
}
