//! AWS IoT rules: messages of the broker that invoke functions.
//!
//! As on AWS a rule invokes its function asynchronously: the publisher does not wait, a few invocations run
//! at once, and the others wait in no guaranteed order. An invocation that fails is not repeated, and one
//! that waited too long is not made, because a caller waits for the response. Both are sent to a queue in
//! the form of Lambda's failure destination.

mod failure;
mod select;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use antumbra_lambda_kit::functions::ASYNCHRONOUS;
use antumbra_wire::rules::Rule;
use bytes::Bytes;
use tokio::{sync::Semaphore, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    function::Function,
    mqtt::{Broker, InvalidFilter, Subscription, TopicFilter},
    task::Running,
};
use failure::Condition;
use select::select;

/// Concurrent invocations of one rule.
const CONCURRENCY: usize = 10;

/// The queue that receives failed invocations.
#[derive(Clone, Debug)]
pub struct OnFailure {
    pub sqs: aws_sdk_sqs::Client,
    pub queue_url: String,
}

/// Starts rules, each with the function that it invokes. The stop waits for all invocations.
pub fn start(
    broker: &Broker,
    rules: Vec<(Rule, Function)>,
    on_failure: OnFailure,
) -> Result<Running, InvalidFilter> {
    let invocations = TaskTracker::new();
    // Subscribed before this function returns.
    let mut listeners = Vec::new();
    for (rule, function) in rules {
        let messages = broker.subscribe(TopicFilter::new(rule.filter)?);
        let rule = Arc::new(RunningRule {
            function,
            on_failure: on_failure.clone(),
            permits: Semaphore::new(CONCURRENCY),
        });
        listeners.push((rule, messages));
    }
    Ok(Running::start(|stop| {
        for (rule, messages) in listeners {
            invocations.spawn(rule.listen(messages, stop.clone(), invocations.clone()));
        }
        invocations.close();
        async move { invocations.wait().await }
    }))
}

struct RunningRule {
    function: Function,
    on_failure: OnFailure,
    permits: Semaphore,
}

impl RunningRule {
    async fn listen(
        self: Arc<Self>,
        mut messages: Subscription,
        stop: CancellationToken,
        invocations: TaskTracker,
    ) {
        loop {
            let message = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                message = messages.next() => message,
            };
            let Some(message) = message else { return };
            let event = select(&message, milliseconds());
            invocations.spawn(Arc::clone(&self).invoke(event.into(), Instant::now()));
        }
    }

    async fn invoke(self: Arc<Self>, event: Bytes, since: Instant) {
        // The semaphore is never closed.
        let Ok(_permit) = self.permits.acquire().await else {
            return;
        };
        let function = &self.function;
        let (condition, reason) = if since.elapsed() > ASYNCHRONOUS.max_event_age {
            (Condition::TooOld, "the event waited too long".into())
        } else {
            match function.invoke(event.clone()).await {
                Ok(_) => return,
                Err(error) => (Condition::Failed, error.to_string()),
            }
        };
        tracing::warn!(function = function.name(), reason, "invocation failed");
        let record = failure::record(&function.arn(), condition, &event, &reason);
        let send = self.on_failure.sqs.send_message();
        let send = send.queue_url(&self.on_failure.queue_url);
        if let Err(error) = send.message_body(record).send().await {
            let error = aws_sdk_sqs::error::DisplayErrorContext(error);
            tracing::error!(%error, "failed invocation not sent to the queue");
        }
    }
}

fn milliseconds() -> u64 {
    // A clock before 1970 is wrong anyway.
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
