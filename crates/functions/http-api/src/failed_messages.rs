//! Failed messages in the queues of the deployment.
//!
//! Messages of a queue have no order and no position: a list shows those that can be received at the moment, and a
//! redrive moves those. Both hide messages from each other while they run, so a message is moved by one of two redrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antumbra_notify::redrive::{self, RedriveOptions, RedriveSummary, Resender, peek};
use antumbra_publish::{LazyClient, SqsFailedQueue};
use antumbra_service::api;
use antumbra_service::clock::Clock;
use antumbra_service::redrive::QueueError;
use aws_sdk_sqs::Client;

use crate::problem::Problem;

/// Size of the bodies after which a list ends: a Lambda response holds 6 MB, and a message at most 1 MB.
const LIST_BYTES: usize = 3 * 1024 * 1024;
/// Time after which a redrive receives no further messages.
const REDRIVE_TIME: Duration = Duration::from_secs(12);
/// Steps after which a redrive receives no further messages: what it leaves must be made visible again in time.
const REDRIVE_STEPS: usize = 500;

/// The queues of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueName {
    Undeliverable,
    Quarantine,
    DeadLetters,
}

impl QueueName {
    pub const ALL: [QueueName; 3] = [
        QueueName::Undeliverable,
        QueueName::Quarantine,
        QueueName::DeadLetters,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            QueueName::Undeliverable => "undeliverable",
            QueueName::Quarantine => "quarantine",
            QueueName::DeadLetters => "dead-letters",
        }
    }
}

/// URLs of queues: those with failed messages, and their sources.
#[derive(Debug, Clone, Default)]
pub struct QueueUrls {
    pub undeliverable: String,
    pub quarantine: String,
    /// Dead letters of the two queues of deliveries.
    pub dead: String,
    pub dead_fifo: String,
    pub deliveries: String,
    pub deliveries_fifo: String,
    pub inbound: String,
    pub signals: String,
    /// Queue of the stream listener.
    pub spill: String,
}

pub struct FailedMessageQueues {
    pub sqs: LazyClient<Client>,
    pub urls: QueueUrls,
    pub resender: Resender,
    pub clock: Arc<dyn Clock>,
}

#[derive(Debug, Clone)]
pub struct RedriveRequest {
    /// Id of the only message to redrive.
    pub only: Option<String>,
    /// Reason of the messages to redrive.
    pub reason: Option<String>,
    pub limit: usize,
    /// Queue for messages of unknown source.
    pub to: Option<String>,
    pub drop_requests: bool,
}

impl Default for RedriveRequest {
    /// All messages of a queue, as many as one request moves.
    fn default() -> RedriveRequest {
        RedriveRequest {
            only: None,
            reason: None,
            limit: 1000,
            to: None,
            drop_requests: false,
        }
    }
}

impl FailedMessageQueues {
    /// Returns the URLs of the SQS queues of a name.
    pub fn urls_of(&self, name: QueueName) -> Vec<&str> {
        let urls = &self.urls;
        match name {
            QueueName::Undeliverable => vec![&urls.undeliverable],
            QueueName::Quarantine => vec![&urls.quarantine],
            QueueName::DeadLetters => vec![&urls.dead, &urls.dead_fifo],
        }
    }

    /// Returns the SQS queues of a name.
    async fn open(&self, name: QueueName) -> Result<Vec<SqsFailedQueue>, QueueError> {
        let mut opened = Vec::new();
        for url in self.urls_of(name) {
            opened.push(SqsFailedQueue::open(&self.sqs, url).await?);
        }
        Ok(opened)
    }

    fn options(&self, name: QueueName, request: &RedriveRequest) -> RedriveOptions {
        RedriveOptions {
            limit: request.limit,
            only: request.only.clone(),
            reason: request.reason.clone(),
            to: request.to.clone(),
            drop_requests: request.drop_requests,
            sources: vec![self.urls.inbound.clone(), self.urls.signals.clone()],
            holds_deliveries: name == QueueName::DeadLetters,
            listener_queue: Some(self.urls.spill.clone()),
        }
    }

    pub async fn queues(&self) -> Result<api::FailedQueues, QueueError> {
        let mut queues = Vec::new();
        for name in QueueName::ALL {
            let (mut messages, mut hidden) = (0, 0);
            for queue in self.open(name).await? {
                let depth = queue.depth().await?;
                messages += depth.visible;
                hidden += depth.hidden;
            }
            queues.push(api::FailedQueue {
                name: name.as_str(),
                messages,
                hidden,
            });
        }
        Ok(api::FailedQueues { queues })
    }

    /// Returns messages of a queue, which stay there.
    pub async fn messages(
        &self,
        name: QueueName,
        limit: usize,
    ) -> Result<api::FailedMessages, QueueError> {
        let all = RedriveRequest::default();
        Ok(self.messages_and_plan(name, limit, &all).await?.0)
    }

    /// Returns messages of a queue, which stay there, and the result that a redrive of them would have.
    pub async fn messages_and_plan(
        &self,
        name: QueueName,
        limit: usize,
        request: &RedriveRequest,
    ) -> Result<(api::FailedMessages, api::RedriveResults), QueueError> {
        let (mut messages, mut bytes, mut has_more) = (Vec::new(), LIST_BYTES, false);
        let mut planned = RedriveSummary::default();
        let options = self.options(name, request);
        for queue in self.open(name).await? {
            let left = limit.saturating_sub(messages.len());
            let peeked = peek(&queue, left, bytes).await?;
            has_more |= peeked.has_more;
            let size: usize = peeked.messages.iter().map(|one| one.body.len()).sum();
            bytes = bytes.saturating_sub(size);
            planned.add(redrive::plan(&peeked.messages, &options));
            let messages_of = peeked.messages.into_iter();
            messages.extend(messages_of.map(|one| redrive::describe(one, queue.name(), &options)));
        }
        planned.has_more = has_more;
        Ok((api::FailedMessages { messages, has_more }, planned.into()))
    }

    /// Moves messages back to their source. Of a single message that cannot be received there is no result.
    pub async fn redrive(
        &self,
        name: QueueName,
        request: RedriveRequest,
    ) -> Result<api::RedriveResults, QueueError> {
        let start = self.clock.now();
        let (end, steps) = (start.after(REDRIVE_TIME), AtomicUsize::new(0));
        let go_on = |_| {
            let steps = steps.fetch_add(1, Ordering::Relaxed);
            steps < REDRIVE_STEPS && self.clock.now() < end
        };
        let mut done = RedriveSummary::default();
        for queue in self.open(name).await? {
            let moved: usize = done.rows.values().sum();
            if (request.only.is_some() && moved > 0) || moved >= request.limit {
                break;
            }
            let options = RedriveOptions {
                limit: request.limit - moved,
                ..self.options(name, &request)
            };
            let resender = Some(&self.resender);
            done.add(redrive::redrive(&queue, &options, resender, start, go_on).await?);
        }
        Ok(done.into())
    }
}

impl From<QueueError> for Problem {
    fn from(error: QueueError) -> Problem {
        match error {
            QueueError::NotFound(_) => Problem::internal(error),
            QueueError::NoConnection | QueueError::Failed(_) => Problem::unavailable(error),
        }
    }
}
