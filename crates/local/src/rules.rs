//! AWS IoT rules: messages of the broker that invoke functions.
//!
//! As on AWS a rule invokes its function asynchronously: the event is put into a queue of the function, before the
//! broker acknowledges the message. From there several invocations run at once, in no guaranteed order. One that fails
//! is repeated after one and after two minutes, as often as the function's settings say. An event that failed too often
//! or waited too long is sent to a queue in the form of Lambda's failure destination.
//!
//! Rules give messages strictly increasing times, in microseconds, so that messages published in order have their order.
//! Among the seeded faults are the times of AWS: milliseconds, which can be the same.

mod failure;
mod select;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use antumbra_lambda_kit::functions::AsynchronousSettings;
use antumbra_queues::queue::{Attributes, Message, NewMessage};
use antumbra_queues::{ApiError, INTERNAL, Queues};
use antumbra_wire::rules::Rule;
use antumbra_wire::topic_prefix::TopicPrefix;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    function::Function,
    mqtt::{Broker, InvalidFilter, Message as MqttMessage, TopicFilter},
    task::Running,
    unkind::Unkind,
};
use failure::Condition;
use select::select;

/// Concurrent invocations of one function.
const CONCURRENCY: usize = 10;
/// Pause before the first retry; the second takes twice as long.
const RETRY_SECONDS: u64 = 60;
/// Time after the function's timeout in which its result is applied.
const MARGIN_SECONDS: u64 = 10;
const POLL: Duration = Duration::from_secs(20);
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// Topics of Basic Ingest begin with this and the name of a rule. They invoke the rule whatever its filter is, and
/// `topic()` is the rest.
const BASIC_INGEST: &str = "$aws/rules/";

#[derive(Debug)]
pub struct RuleTarget {
    pub rule: Rule,
    pub function: Function,
    pub settings: AsynchronousSettings,
}

/// Error of rules that did not start.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    #[error(transparent)]
    Filter(#[from] InvalidFilter),
    #[error(transparent)]
    Queue(#[from] ApiError),
}

/// Starts rules. The stop waits for running invocations; waiting events stay in the queue.
pub fn start(
    broker: &Broker,
    targets: Vec<RuleTarget>,
    topic_prefix: &TopicPrefix,
    queues: &Queues,
    unkind: &Unkind,
) -> Result<Running, RuleError> {
    let stop = CancellationToken::new();
    let mut functions: BTreeMap<String, Arc<Invocations>> = BTreeMap::new();
    for target in targets {
        let name = target.function.name().to_owned();
        let rule = target.rule;
        let filter = TopicFilter::new(topic_prefix.add(target.rule.filter))?;
        if !functions.contains_key(&name) {
            let invocations = Invocations::new(target, queues, unkind)?;
            functions.insert(name.clone(), Arc::new(invocations));
        }
        let (invocations, stopped) = (Arc::clone(&functions[&name]), stop.clone());
        broker.subscribe_with(filter, move |message| {
            let is_running = !stopped.is_cancelled();
            if is_running {
                invocations.enqueue(select(message, invocations.received_at()));
            }
            is_running
        });
        let (invocations, stopped) = (Arc::clone(&functions[&name]), stop.clone());
        let ingest = format!("{BASIC_INGEST}{}/", rule.name);
        broker.subscribe_with(TopicFilter::new(format!("{ingest}#"))?, move |message| {
            let is_running = !stopped.is_cancelled();
            if let (true, Some(topic)) = (is_running, message.topic.strip_prefix(&ingest)) {
                let message = MqttMessage {
                    topic: topic.to_owned(),
                    ..message.clone()
                };
                invocations.enqueue(select(&message, invocations.received_at()));
            }
            is_running
        });
    }
    Ok(Running::start(|stopping| async move {
        let _unsubscribe = stop.drop_guard();
        let running = TaskTracker::new();
        for invocations in functions.into_values() {
            running.spawn(invocations.poll(stopping.clone(), running.clone()));
        }
        running.close();
        running.wait().await;
    }))
}

/// The events of one function.
struct Invocations {
    function: Function,
    settings: AsynchronousSettings,
    queues: Queues,
    queue: String,
    unkind: Unkind,
}

impl Invocations {
    fn new(target: RuleTarget, queues: &Queues, unkind: &Unkind) -> Result<Self, ApiError> {
        let name = target.function.name().to_owned();
        let attributes = Attributes {
            visibility_seconds: target.function.timeout().as_secs() + MARGIN_SECONDS,
            ..Attributes::default()
        };
        queues.ensure_internal(&name, attributes)?;
        // Invocations of a killed process have ended.
        queues.release(&format!("{INTERNAL}{name}"))?;
        Ok(Invocations {
            function: target.function,
            settings: target.settings,
            queues: queues.clone(),
            queue: format!("{INTERNAL}{name}"),
            unkind: unkind.of(&name),
        })
    }

    /// The time at which a rule receives a message.
    fn received_at(&self) -> u64 {
        match self.unkind.is_on() {
            true => milliseconds(),
            false => increasing_microseconds(),
        }
    }

    fn enqueue(&self, event: String) {
        let message = NewMessage {
            body: event,
            ..NewMessage::default()
        };
        if let Err(error) = self.queues.send(&self.queue, message) {
            tracing::error!(function = self.function.name(), %error, "event not kept");
        }
    }

    async fn poll(self: Arc<Self>, stop: CancellationToken, running: TaskTracker) {
        let room = Arc::new(Semaphore::new(CONCURRENCY));
        while let Some(permit) = stop
            .run_until_cancelled(Arc::clone(&room).acquire_owned())
            .await
        {
            let received = self.queues.receive(&self.queue, 1, None, Some(POLL));
            match stop.run_until_cancelled(received).await {
                None => return,
                Some(Ok(messages)) => {
                    let invocations = Arc::clone(&self);
                    running.spawn(async move {
                        for message in messages {
                            invocations.invoke(message).await;
                        }
                        drop(permit);
                    });
                }
                Some(Err(error)) => {
                    tracing::error!(function = self.function.name(), %error, "events not readable");
                    tokio::time::sleep(AFTER_ERROR).await;
                }
            }
        }
    }

    async fn invoke(&self, message: Message) {
        let age = Duration::from_millis(milliseconds().saturating_sub(message.sent_ms));
        let receipt = message.receipt();
        let applied = if age > self.settings.max_event_age {
            self.give_up(&message, message.receives - 1, "the event waited too long")
        } else {
            tokio::time::sleep(self.unkind.start_delay()).await;
            match self.function.invoke(message.body.clone().into()).await {
                Ok(_) => self.queues.delete(&self.queue, receipt),
                Err(error) if message.receives > self.settings.max_retries => {
                    self.give_up(&message, message.receives, &error.to_string())
                }
                Err(error) => {
                    tracing::warn!(function = self.function.name(), %error, "invocation failed");
                    let delay = RETRY_SECONDS * u64::from(message.receives);
                    self.queues.change_visibility(&self.queue, receipt, delay)
                }
            }
        };
        // The event becomes visible again, or it did so already and another invocation has it.
        if let Err(error) = applied {
            tracing::debug!(function = self.function.name(), %error, "result not applied");
        }
    }

    fn give_up(&self, message: &Message, calls: u32, reason: &str) -> Result<(), ApiError> {
        tracing::warn!(function = self.function.name(), reason, "event given up");
        let condition = match calls > self.settings.max_retries {
            true => Condition::Failed,
            false => Condition::TooOld,
        };
        let event = message.body.as_bytes();
        let record = NewMessage {
            body: failure::record(&self.function.arn(), condition, calls, event, reason),
            ..NewMessage::default()
        };
        self.queues.send(self.settings.on_failure, record)?;
        self.queues.delete(&self.queue, message.receipt())
    }
}

fn milliseconds() -> u64 {
    microseconds() / 1000
}

fn microseconds() -> u64 {
    // A clock before 1970 is wrong anyway.
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The time, but always later than the last one given.
fn increasing_microseconds() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = microseconds();
    let last = LAST.fetch_max(now, Ordering::Relaxed);
    match now > last {
        true => now,
        false => LAST.fetch_add(1, Ordering::Relaxed) + 1,
    }
}
