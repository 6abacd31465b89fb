//! The event source of a queue: polls it and invokes a function, like Lambda's event source mapping.
//!
//! Messages that succeed are deleted. The others return after their visibility timeout; the queue counts the
//! receives and moves them to its dead-letter queue. A function that wants a message back at another time changes
//! its visibility itself, as on AWS. A FIFO queue keeps the order: it does not deliver a group's next message before
//! the one in flight is deleted or visible again.

mod event;
mod plan;

use std::{sync::Arc, time::Duration};

use antumbra_service::clock::ShiftedClock;
use aws_sdk_sqs::{
    Client,
    error::DisplayErrorContext,
    types::{DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName},
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    batch_response::{self, BatchResult},
    function::Function,
    task::Running,
    unkind::Unkind,
};

/// Longest wait of a poll that SQS allows.
const LONG_POLL_SECONDS: i32 = 20;

const MAX_RECEIVE: i32 = 10;

/// Pause after a failed request.
const AFTER_ERROR: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct Source {
    pub queue_url: String,
    pub queue_arn: String,
    /// Maximum messages of one invocation, up to 10.
    pub batch_size: i32,
    /// Reads batch item failures from the response; otherwise only function errors count.
    pub report_failures: bool,
    pub concurrency: usize,
    /// The function's clock; times in events are shifted by its offset.
    pub clock: ShiftedClock,
    pub unkind: Unkind,
}

impl Source {
    /// Batches of 10 and five concurrent invocations, with which Lambda begins.
    pub fn new(queue_url: impl Into<String>, queue_arn: impl Into<String>) -> Self {
        Self {
            queue_url: queue_url.into(),
            queue_arn: queue_arn.into(),
            batch_size: MAX_RECEIVE,
            report_failures: true,
            concurrency: 5,
            clock: ShiftedClock::default(),
            unkind: Unkind::default(),
        }
    }
}

/// Starts polling. The stop waits for running invocations and applies their results.
pub fn start(queues: Client, source: Source, function: Function) -> Running {
    Running::start(|stop| {
        let pump = Arc::new(Pump {
            queues,
            source,
            function,
            stop,
        });
        pump.poll()
    })
}

struct Pump {
    queues: Client,
    source: Source,
    function: Function,
    stop: CancellationToken,
}

impl Pump {
    /// Polls one request at a time, so that an idle queue costs little. It waits for room for an invocation first: a
    /// message is better off in the queue than received and waiting here.
    async fn poll(self: Arc<Self>) {
        let room = Arc::new(Semaphore::new(self.source.concurrency.max(1)));
        let mut calls = JoinSet::new();
        loop {
            let place = tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                place = Arc::clone(&room).acquire_owned() => place,
            };
            let received = tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                received = self.receive() => received,
            };
            match received {
                Ok(messages) if messages.is_empty() => {}
                Ok(messages) => {
                    let pump = Arc::clone(&self);
                    calls.spawn(async move {
                        pump.handle(&messages).await;
                        drop(place);
                    });
                }
                Err(reason) => {
                    let queue = &self.source.queue_url;
                    tracing::warn!(queue, reason, "queue not readable");
                    tokio::select! {
                        () = self.stop.cancelled() => break,
                        () = tokio::time::sleep(AFTER_ERROR) => {}
                    }
                }
            }
            while calls.try_join_next().is_some() {}
        }
        while calls.join_next().await.is_some() {}
    }

    async fn receive(&self) -> Result<Vec<Message>, String> {
        self.queues
            .receive_message()
            .queue_url(&self.source.queue_url)
            .max_number_of_messages(self.source.batch_size.clamp(1, MAX_RECEIVE))
            .wait_time_seconds(LONG_POLL_SECONDS)
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .message_attribute_names("All")
            .send()
            .await
            .map(|received| received.messages.unwrap_or_default())
            .map_err(|error| DisplayErrorContext(error).to_string())
    }

    async fn handle(&self, messages: &[Message]) {
        let result = self.invoke(messages).await;
        let ids: Vec<_> = messages
            .iter()
            .map(|m| m.message_id().unwrap_or_default())
            .collect();
        let done = plan::done(&ids, &result);
        if done.is_empty() {
            return;
        }
        if let Err(reason) = self
            .delete(done.into_iter().map(|index| &messages[index]))
            .await
        {
            // They return after their visibility timeout: delivery is at least once, as on AWS.
            let queue = &self.source.queue_url;
            tracing::warn!(queue, reason, "processed messages not deleted");
        }
    }

    async fn invoke(&self, messages: &[Message]) -> BatchResult {
        let function = &self.function;
        let ahead = self.source.clock.ahead();
        let event = event::invocation(&self.source.queue_arn, messages, ahead);
        // A throttled invocation costs a receive, as on AWS.
        if self.source.unkind.throttles() {
            return BatchResult::Invalid;
        }
        match function.invoke(event.into()).await {
            Ok(_) if !self.source.report_failures => BatchResult::Success,
            Ok(response) => batch_response::read(&response),
            Err(error) => {
                tracing::warn!(function = function.name(), %error, "invocation failed");
                BatchResult::Invalid
            }
        }
    }

    async fn delete(&self, messages: impl Iterator<Item = &Message>) -> Result<(), String> {
        let entries = messages
            .enumerate()
            .map(|(index, message)| {
                DeleteMessageBatchRequestEntry::builder()
                    .id(index.to_string())
                    .set_receipt_handle(message.receipt_handle.clone())
                    .build()
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        let response = self
            .queues
            .delete_message_batch()
            .queue_url(&self.source.queue_url)
            .set_entries(Some(entries))
            .send()
            .await
            .map_err(|error| DisplayErrorContext(error).to_string())?;
        match response.failed().first() {
            None => Ok(()),
            Some(failure) => Err(format!("{failure:?}")),
        }
    }
}
