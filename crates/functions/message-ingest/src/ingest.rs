//! The function: store, put away, answer.

use std::sync::Arc;
use std::time::Duration;

use antumbra_service::backoff;
use antumbra_service::clock::{Clock, Reserve, time_left};
use antumbra_service::inbox::{
    HourlySourceTracker, InboxMessage, MessageParser, MessageWriter, Rejection, RejectionCode,
    SourceTracker, StoreMessageError, Stored,
};
use antumbra_service::quarantine::{Quarantine, QuarantinedMessage};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::events::sqs::{self, QueueMessage, SqsEventError};
use futures_util::{StreamExt, stream};

use crate::plan::{self, Lane, Task};
use crate::summary::BatchSummary;

/// Lanes that are handled side by side.
const AT_ONCE: usize = 16;
/// Time kept from the end of an invocation for the quarantine, and the part of all its time that this may
/// be at most: a function that is given little of it must still store.
const PUTTING_AWAY: Reserve = Reserve {
    time: Duration::from_millis(4000),
    share: 4,
};
/// The same for the answer.
const ANSWERING: Reserve = Reserve {
    time: Duration::from_millis(1000),
    share: 8,
};

/// Moves messages from a queue to the inbox.
pub struct Ingest<S, N> {
    store: S,
    contacts: HourlySourceTracker<N>,
    quarantine: Quarantine,
    intake: MessageParser,
    clock: Arc<dyn Clock>,
}

/// What became of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// It is in the inbox, or was.
    Done(Stored),
    /// It can never be stored.
    Rejected(Rejection),
    /// It has to be delivered again.
    Failed(String),
}

/// What became of a lane.
#[derive(Default)]
struct LaneDone {
    steps: Vec<(usize, Step)>,
    retried: usize,
}

impl<S: MessageWriter, N: SourceTracker> Ingest<S, N> {
    /// Stores here what the intake makes of messages.
    pub fn new(
        store: S,
        contacts: N,
        quarantine: Quarantine,
        intake: MessageParser,
        clock: Arc<dyn Clock>,
    ) -> Ingest<S, N> {
        Ingest {
            store,
            contacts: HourlySourceTracker::new(contacts),
            quarantine,
            intake,
            clock,
        }
    }

    /// Handles one event, and stops a while before the deadline.
    ///
    /// Only an event that is none of a queue is an error; it fails as a whole.
    pub async fn handle(
        &self,
        event: &[u8],
        deadline: Timestamp,
    ) -> Result<BatchSummary, SqsEventError> {
        let start = self.clock.now();
        let messages = sqs::read(event)?;
        let tasks = plan::tasks(&messages, &self.intake, start);
        let mut handled = BatchSummary {
            messages: messages.len(),
            oldest: messages
                .iter()
                .map(|message| time_left(message.sent, start))
                .max()
                .unwrap_or_default(),
            ..BatchSummary::default()
        };
        let until = PUTTING_AWAY.deadline(deadline, start);
        let mut steps = self.keep(&messages, &tasks, until, &mut handled).await;
        let until = ANSWERING.deadline(deadline, start);
        self.put_away(&messages, &mut steps, until).await;
        for (message, step) in messages.iter().zip(steps) {
            match step {
                Step::Done(Stored::New) => handled.stored += 1,
                Step::Done(Stored::Known) => handled.known += 1,
                Step::Rejected(_) => handled.quarantined += 1,
                Step::Failed(reason) => {
                    tracing::warn!(message = &*message.id, reason, "to be delivered again");
                    handled.failed.push(message.id.to_string());
                }
            }
        }
        Ok(handled)
    }

    /// Stores what can be stored: lanes side by side, each in order.
    async fn keep(
        &self,
        messages: &[QueueMessage<'_>],
        tasks: &[Task],
        until: Timestamp,
        handled: &mut BatchSummary,
    ) -> Vec<Step> {
        let mut steps: Vec<Step> = tasks
            .iter()
            .map(|task| match task {
                Task::Store(_) => Step::Failed("not tried".to_owned()),
                Task::Refuse(refusal) => Step::Rejected(refusal.clone()),
            })
            .collect();
        let mut done = stream::iter(plan::lanes(messages, tasks))
            .map(|lane| self.keep_lane(lane, messages, tasks, until))
            .buffer_unordered(AT_ONCE);
        while let Some(lane) = done.next().await {
            handled.retried += lane.retried;
            for (index, step) in lane.steps {
                steps[index] = step;
            }
        }
        steps
    }

    async fn keep_lane(
        &self,
        lane: Lane,
        messages: &[QueueMessage<'_>],
        tasks: &[Task],
        until: Timestamp,
    ) -> LaneDone {
        let mut done = LaneDone::default();
        let mut held = false;
        for index in lane.messages {
            let step = match &tasks[index] {
                _ if held => Step::Failed("waits for an earlier message of its group".to_owned()),
                Task::Refuse(refusal) => Step::Rejected(refusal.clone()),
                Task::Store(message) => {
                    let sent = messages[index].sent;
                    self.keep_one(message, sent, until, &mut done.retried).await
                }
            };
            held |= lane.strict && matches!(step, Step::Failed(_));
            done.steps.push((index, step));
        }
        done
    }

    /// Stores one message and tries again until then.
    async fn keep_one(
        &self,
        message: &InboxMessage,
        sent: Timestamp,
        until: Timestamp,
        retried: &mut usize,
    ) -> Step {
        let mut failures = 0;
        let mut reason = "no time left".to_owned();
        loop {
            let left = time_left(self.clock.now(), until);
            if left.is_zero() {
                return Step::Failed(reason);
            }
            // A call that is under way at the end is given up. Whether it took place shows when the message
            // is delivered again.
            let Ok(tried) = tokio::time::timeout(left, self.try_one(message, sent)).await else {
                return Step::Failed("no answer of the store in time".to_owned());
            };
            match tried {
                Ok(stored) => return Step::Done(stored),
                Err(StoreMessageError::Store(error)) if error.is_retryable() => {
                    reason = error.to_string();
                }
                Err(error) => return Step::Rejected(refusal(error)),
            }
            failures += 1;
            let pause = backoff::delay(failures, fastrand::f64());
            if pause >= time_left(self.clock.now(), until) {
                return Step::Failed(reason);
            }
            *retried += 1;
            self.clock.sleep(pause).await;
        }
    }

    /// The contact first: a source is known by the time its message can be read, and a message that is
    /// delivered again because the contact failed is stored once all the same.
    async fn try_one(
        &self,
        message: &InboxMessage,
        sent: Timestamp,
    ) -> Result<Stored, StoreMessageError> {
        match self.contacts.touch(&message.source, sent).await {
            Err(error) if error.is_retryable() => return Err(error.into()),
            // What can never be noted must not keep messages out.
            Err(error) => tracing::error!(%error, "a source cannot be noted"),
            Ok(()) => {}
        }
        self.store.store(message).await
    }

    /// Puts away what can never be stored. What could not be put away has to be delivered again.
    async fn put_away(&self, messages: &[QueueMessage<'_>], steps: &mut [Step], until: Timestamp) {
        let mut refused = Vec::new();
        let mut positions = Vec::new();
        for (index, (message, step)) in messages.iter().zip(steps.iter()).enumerate() {
            let Step::Rejected(refusal) = step else {
                continue;
            };
            let (reason, detail) = (refusal.reason.as_str(), refusal.detail.clone());
            tracing::warn!(
                message = &*message.id,
                reason,
                detail,
                "a message can never be stored"
            );
            positions.push(index);
            refused.push(QuarantinedMessage {
                id: message.id.to_string(),
                text: message.body.to_string(),
                source: message.queue_arn.to_string(),
                reason,
                detail,
            });
        }
        let left = self.quarantine.send(&refused, until, &self.clock).await;
        for not_put in left {
            let reason = format!("the quarantine does not take it: {}", not_put.reason);
            steps[positions[not_put.index]] = Step::Failed(reason);
        }
    }
}

/// What the store refused for good.
fn refusal(error: StoreMessageError) -> Rejection {
    let reason = match &error {
        StoreMessageError::SourceFull => RejectionCode::SourceFull,
        StoreMessageError::Store(StoreError::TooLarge { .. }) => RejectionCode::TooLarge,
        StoreMessageError::Store(_) => RejectionCode::Unstorable,
    };
    reason.because(error.to_string())
}
