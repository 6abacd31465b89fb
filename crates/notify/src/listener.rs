//! The listener: plan, send, park, answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use antumbra_registration::Registrations;
use antumbra_service::clock::{Clock, Reserve, time_left};
use antumbra_service::notifications::{Channel, ChannelMessage, Outbox, dispatch};
use antumbra_service::shadows::{CurrentDocuments, StoreError};
use antumbra_shadow::{Model, Timestamp};
use antumbra_wire::stream::EventError;

use crate::deliveries::DispatchList;
use crate::plan::{Buffers, Plan};
use crate::routes::{ChannelFactory, RouteError, Routes};
use crate::shadow_messages::{Found, Other};
use crate::undeliverable::Undeliverable;

/// Time kept from the end of an invocation for parking, and the part of all its time that this may be
/// at most: a function that is given little of it must still send.
const PARKING: Reserve = Reserve {
    time: Duration::from_millis(4000),
    share: 4,
};
/// The same for the answer.
const ANSWERING: Reserve = Reserve {
    time: Duration::from_millis(1500),
    share: 8,
};

/// Sends the changes of a table to those who registered for them.
pub struct Listener {
    registrations: Registrations,
    routes: Routes,
    undeliverable: Arc<dyn Channel>,
    model: Model,
    clock: Arc<dyn Clock>,
    buffers: Mutex<Buffers>,
    documents: Option<Arc<dyn CurrentDocuments>>,
}

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchSummary {
    /// Records in the event.
    pub records: usize,
    /// Records that at least one registration wanted.
    pub matched: usize,
    /// Notifications that arrived.
    pub sent: usize,
    /// Times a notification had to be sent again.
    pub retried: usize,
    /// What was put in the undeliverable queue.
    pub parked: usize,
    /// The sequence number to go on from, if not all was done.
    pub resume_at: Option<String>,
    /// How old the oldest record was, in milliseconds.
    pub oldest_milliseconds: Option<u64>,
}

impl Listener {
    /// Opens a way to every target that a registration in force names.
    pub fn new(
        registrations: Registrations,
        channels: &dyn ChannelFactory,
        model: Model,
        clock: Arc<dyn Clock>,
    ) -> Result<Listener, RouteError> {
        let routes = Routes::new(&registrations, channels)?;
        let undeliverable = channels.undeliverable();
        Ok(Listener {
            registrations,
            routes,
            undeliverable,
            model,
            clock,
            buffers: Mutex::default(),
            documents: None,
        })
    }

    /// With a way to the documents that lie apart from those that changed. Without it, what is made of both
    /// documents of a shadow can be sent only where they lie together.
    #[must_use]
    pub fn with_documents(self, documents: Arc<dyn CurrentDocuments>) -> Listener {
        Listener {
            documents: Some(documents),
            ..self
        }
    }

    /// Reads the documents without which changes of shadows cannot be told of. What is not read in time is
    /// not known now.
    async fn read(&self, missing: Vec<Other>, until: Timestamp) -> Found {
        let Some(documents) = self.documents.as_ref().filter(|_| !missing.is_empty()) else {
            return Found::new();
        };
        let time = time_left(self.clock.now(), until);
        let read = tokio::time::timeout(time, documents.current(&missing)).await;
        let read = read.unwrap_or_else(|_| {
            let late = StoreError::Unavailable("no answer in time".to_owned());
            missing.iter().map(|_| Err(late.clone())).collect()
        });
        for error in read.iter().filter_map(|read| read.as_ref().err()) {
            tracing::warn!(%error, "a shadow's other document could not be read");
        }
        missing.into_iter().zip(read).collect()
    }

    /// Decides as [`Listener::handle`] does, and sends nothing: how many messages there would be, those to
    /// the clients of sensors and those made of both documents of a shadow aside.
    pub fn rehearse(&self, event: &[u8]) -> Result<usize, EventError> {
        Ok(self.plan(event)?.len())
    }

    fn plan(&self, event: &[u8]) -> Result<Plan<'_>, EventError> {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        Plan::of(
            event,
            &self.registrations,
            &self.routes,
            &self.model,
            &mut buffers,
        )
    }

    /// Handles one event, and stops trying a while before the deadline.
    ///
    /// Only an event that is no stream event at all is an error; it fails as a whole.
    pub async fn handle(
        &self,
        event: &[u8],
        deadline: Timestamp,
    ) -> Result<BatchSummary, EventError> {
        let start = self.clock.now();
        let mut plan = self.plan(event)?;
        let until = PARKING.deadline(deadline, start);
        let found = self.read(plan.missing(), until).await;
        plan.complete(&found, &self.model);
        let all = DispatchList::of(&plan, self.routes.clients(), until, &self.clock).await;
        let sent = dispatch(&self.routes.channels, &all, until, &self.clock).await;
        let mut parked = plan.parked.clone();
        for (position, reason) in &all.refused {
            parked.push(plan.unaddressed(*position, reason));
        }
        for refused in &sent.refused {
            let record = all.record_of(refused.index);
            let message = all.message(refused.index);
            let registration = plan.name_of(all.registration_of(refused.index));
            tracing::warn!(
                registration,
                reason = refused.reason,
                "a notification was refused for good"
            );
            parked.push(Undeliverable::refused(
                record,
                plan.sequence_number(record),
                registration,
                &message,
                &refused.reason,
            ));
        }
        let unparked = self
            .park(&parked, ANSWERING.deadline(deadline, start))
            .await;
        let undone = sent
            .unsent
            .iter()
            .map(|&index| all.record_of(index))
            .chain(all.undone.iter().copied())
            .chain(plan.undone.iter().copied())
            .chain(unparked.iter().copied());
        Ok(BatchSummary {
            records: plan.records(),
            matched: plan.wanted,
            sent: sent.sent,
            retried: sent.retried,
            parked: parked.len() - unparked.len(),
            resume_at: undone
                .min()
                .map(|record| plan.sequence_number(record).to_owned()),
            oldest_milliseconds: plan.oldest_seconds.map(|seconds| {
                let now = self.clock.now().nanoseconds() as f64 / 1e6;
                (now - seconds * 1e3).max(0.0) as u64
            }),
        })
    }

    /// Puts away what can never be sent. What cannot even be put away counts as not done: positions of
    /// the records concerned.
    async fn park(&self, parked: &[Undeliverable], deadline: Timestamp) -> Vec<usize> {
        let channels = [Arc::clone(&self.undeliverable)];
        let mut left: Vec<&Undeliverable> = parked.iter().collect();
        let mut undone = Vec::new();
        // A queue can be set to take less than its channel knows of. What it refuses goes once more
        // without the notification, so that a large one does not hold up the shard.
        for limit in [self.undeliverable.limits().message_bytes, 0] {
            let outgoing: Vec<ChannelMessage> =
                left.iter().map(|parked| parked.outgoing(limit)).collect();
            let done = dispatch(&channels, &outgoing, deadline, &self.clock).await;
            undone.extend(done.unsent.iter().map(|&index| left[index].record));
            for refused in &done.refused {
                tracing::error!(
                    reason = refused.reason,
                    "the undeliverable queue refuses messages"
                );
            }
            let refused = done.refused.iter();
            left = refused.map(|refused| left[refused.index]).collect();
        }
        undone.extend(left.iter().map(|parked| parked.record));
        undone
    }
}
