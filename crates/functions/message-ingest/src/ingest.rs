//! Parses, stores and quarantines the messages of one event.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antumbra_lambda_kit::batch::{
    BatchSummary, Group, Rejection, Step, process_groups, quarantine_rejected,
};
use antumbra_lambda_kit::{Handler, HandlerError, Invocation, Response};
use antumbra_service::backoff;
use antumbra_service::clock::{Clock, Reserve, time_left};
use antumbra_service::inbox::{
    HourlySourceTracker, InboxMessage, IncomingMessage, MessageParser, MessageWriter,
    RejectionCode, SourceTracker, StoreMessageError, Stored,
};
use antumbra_service::quarantine::{Quarantine, QuarantinedMessage};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::events::sqs::{self, QueueMessage, SqsEventError};
use async_trait::async_trait;

/// Groups that are stored side by side.
const CONCURRENCY: usize = 16;
/// Time kept back for the quarantine.
const QUARANTINE: Reserve = Reserve {
    time: Duration::from_millis(4000),
    share: 4,
};
/// Time kept back for the response.
const RESPONSE: Reserve = Reserve {
    time: Duration::from_millis(1000),
    share: 8,
};

/// Most time for recording a source.
const SOURCE_TIME: Duration = Duration::from_secs(1);

pub const COUNTERS: &[&str] = &["messages", "stored", "known", "quarantined", "retried"];

pub struct Ingest<S, T> {
    store: S,
    sources: HourlySourceTracker<T>,
    quarantine: Quarantine,
    parser: MessageParser,
    clock: Arc<dyn Clock>,
}

impl<S: MessageWriter, T: SourceTracker> Ingest<S, T> {
    pub fn new(
        store: S,
        sources: T,
        quarantine: Quarantine,
        parser: MessageParser,
        clock: Arc<dyn Clock>,
    ) -> Ingest<S, T> {
        Ingest {
            store,
            sources: HourlySourceTracker::new(sources),
            quarantine,
            parser,
            clock,
        }
    }

    /// Processes one SQS event. Fails as a whole only if it is not an SQS event.
    pub async fn process_batch(
        &self,
        event: &[u8],
        deadline: Timestamp,
    ) -> Result<BatchSummary, SqsEventError> {
        let start = self.clock.now();
        let messages = sqs::read(event)?;
        let mut summary = BatchSummary::new(COUNTERS);
        summary.add("messages", messages.len());
        let ages = messages
            .iter()
            .map(|message| time_left(message.sent, start));
        summary.oldest = ages.max();

        let parsed: Vec<_> = messages
            .iter()
            .map(|message| self.parse(message, start))
            .collect();
        let mut steps: Vec<Step<Stored>> = parsed
            .iter()
            .map(|parsed| match parsed {
                Ok(_) => Step::Pending,
                Err(rejection) => Step::Rejected(rejection.clone()),
            })
            .collect();
        let groups: Vec<_> = messages
            .iter()
            .zip(&parsed)
            .map(|(message, parsed)| group(message, parsed.as_deref().ok()))
            .collect();
        let until = QUARANTINE.deadline(deadline, start);
        let retried = AtomicUsize::new(0);
        process_groups(&mut steps, groups, CONCURRENCY, |index| {
            let (parsed, sent, retried) = (&parsed[index], messages[index].sent, &retried);
            async move {
                match parsed {
                    Ok(message) => self.store(message, sent, until, retried).await,
                    Err(rejection) => Step::Rejected(rejection.clone()),
                }
            }
        })
        .await;
        summary.add("retried", retried.into_inner());

        let until = RESPONSE.deadline(deadline, start);
        let quarantined = |index: usize, rejection: &Rejection| QuarantinedMessage {
            id: messages[index].id.clone(),
            text: messages[index].body.clone(),
            source: messages[index].queue_arn.clone(),
            origin: Some(messages[index].origin.clone()),
            reason: rejection.reason,
            detail: rejection.detail.clone(),
        };
        let clock = &*self.clock;
        let quarantined =
            quarantine_rejected(&self.quarantine, &mut steps, until, clock, quarantined).await;
        summary.add("quarantined", quarantined);

        for (message, step) in messages.iter().zip(steps) {
            match step {
                Step::Processed(Stored::New) => summary.add("stored", 1),
                Step::Processed(Stored::Known) => summary.add("known", 1),
                Step::Failed(reason) => summary.fail(&message.id, &reason),
                Step::Done | Step::Pending | Step::Rejected(_) => {}
            }
        }
        Ok(summary)
    }

    fn parse(
        &self,
        message: &QueueMessage,
        now: Timestamp,
    ) -> Result<Box<InboxMessage>, Rejection> {
        let incoming = IncomingMessage {
            text: &message.body,
            queue_id: &message.origin.id,
            sent_milliseconds: message.origin.sent_milliseconds,
        };
        let parsed = self.parser.read(&incoming, now).map(Box::new);
        parsed.map_err(|rejection| Rejection::new(rejection.reason.as_str(), rejection.detail))
    }

    /// Stores one message and retries until the deadline.
    async fn store(
        &self,
        message: &InboxMessage,
        sent: Timestamp,
        until: Timestamp,
        retried: &AtomicUsize,
    ) -> Step<Stored> {
        let mut failures = 0;
        let mut reason = "no time left".to_owned();
        loop {
            let left = time_left(self.clock.now(), until);
            if left.is_zero() {
                return Step::Failed(reason);
            }
            // A call that is interrupted here may have succeeded. Storing is idempotent, so the next
            // delivery of the message shows it.
            let Ok(result) = tokio::time::timeout(left, self.store_once(message, sent)).await
            else {
                return Step::Failed("the store did not respond in time".to_owned());
            };
            match result {
                Ok(stored) => return Step::Processed(stored),
                Err(StoreMessageError::Store(error)) if error.is_retryable() => {
                    reason = error.to_string();
                }
                Err(error) => return Step::Rejected(rejection(&error)),
            }
            failures += 1;
            let pause = backoff::delay(failures, fastrand::f64());
            if pause >= time_left(self.clock.now(), until) {
                return Step::Failed(reason);
            }
            retried.fetch_add(1, Ordering::Relaxed);
            self.clock.sleep(pause).await;
        }
    }

    /// Stores the message and records its source. That a source is listed is a convenience: if it cannot be recorded
    /// soon, its next message tries again, and this one is stored all the same.
    async fn store_once(
        &self,
        message: &InboxMessage,
        sent: Timestamp,
    ) -> Result<Stored, StoreMessageError> {
        let touched = self.sources.touch(&message.source, sent);
        let touched = tokio::time::timeout(SOURCE_TIME, touched);
        let (touched, stored) = tokio::join!(touched, self.store.store(message));
        match touched {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "source not recorded"),
            Err(_) => tracing::warn!("source not recorded in time"),
        }
        stored
    }
}

#[async_trait]
impl<S: MessageWriter, T: SourceTracker> Handler for Ingest<S, T> {
    async fn handle(&self, invocation: Invocation) -> Result<Response, HandlerError> {
        let summary = self.process_batch(&invocation.event, invocation.deadline);
        summary.await.map_err(HandlerError::event)?.response()
    }
}

/// In a FIFO queue, the messages of one group are stored in order and stop at the first failure. In a
/// standard queue, the messages of one source are stored in order, and a failure stops none of them.
fn group<'a>(message: &'a QueueMessage, parsed: Option<&'a InboxMessage>) -> Option<Group<'a>> {
    let key = match (&message.group, parsed) {
        (Some(group), _) => group.as_str(),
        (None, Some(parsed)) => parsed.source.as_str(),
        (None, None) => return None,
    };
    Some(Group {
        key,
        stop_at_failure: message.group.is_some(),
    })
}

fn rejection(error: &StoreMessageError) -> Rejection {
    let code = match error {
        StoreMessageError::SourceFull => RejectionCode::SourceFull,
        StoreMessageError::Store(StoreError::TooLarge { .. }) => RejectionCode::TooLarge,
        StoreMessageError::Store(_) => RejectionCode::Unstorable,
    };
    Rejection::new(code.as_str(), error)
}
