//! The listener: plan, send, send what is undeliverable to its queue, summarize.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use antumbra_registration::Registrations;
use antumbra_service::clock::{Clock, Reserve, time_left};
use antumbra_service::notifications::{Channel, ChannelMessage, dispatch, dispatch_with};
use antumbra_service::shadows::{CurrentDocuments, StoreError};
use antumbra_shadow::{Model, Timestamp};
use antumbra_wire::stream::EventError;

use crate::deliveries::add_deliveries;
use crate::plan::{Buffers, Plan};
use crate::routes::{ChannelFactory, RouteError, Routes};
use crate::shadow_messages::{Found, Other};
use crate::undeliverable::Undeliverable;

/// Time reserved for the undeliverable queue.
const UNDELIVERABLE_RESERVE: Reserve = Reserve {
    time: Duration::from_millis(4000),
    share: 4,
};
/// Time reserved for the response.
const RESPONSE_RESERVE: Reserve = Reserve {
    time: Duration::from_millis(1500),
    share: 8,
};

/// Sends the changes of a table to the targets of matching registrations.
pub struct Listener {
    registrations: Registrations,
    routes: Routes,
    undeliverable: Arc<dyn Channel>,
    model: Model,
    clock: Arc<dyn Clock>,
    buffers: Mutex<Buffers>,
    documents: Option<Arc<dyn CurrentDocuments>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchSummary {
    pub records: usize,
    /// Records that at least one registration matches.
    pub matched: usize,
    pub sent: usize,
    pub retried: usize,
    pub undeliverable: usize,
    /// The sequence number to continue from, unless all records are done.
    pub resume_at: Option<String>,
    pub oldest_milliseconds: Option<u64>,
}

impl Listener {
    /// Opens the channels of all enabled registrations.
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

    /// Gives access to the stored documents. Without it, messages of both documents of a shadow are only possible in
    /// the combined layout.
    #[must_use]
    pub fn with_documents(self, documents: Arc<dyn CurrentDocuments>) -> Listener {
        Listener {
            documents: Some(documents),
            ..self
        }
    }

    async fn read_documents(&self, missing: Vec<Other>, deadline: Timestamp) -> Found {
        let Some(documents) = self.documents.as_ref().filter(|_| !missing.is_empty()) else {
            return Found::new();
        };
        let time = time_left(self.clock.now(), deadline);
        let read = tokio::time::timeout(time, documents.current(&missing)).await;
        let read = read.unwrap_or_else(|_| {
            let late = StoreError::Unavailable("timed out".to_owned());
            missing.iter().map(|_| Err(late.clone())).collect()
        });
        for error in read.iter().filter_map(|read| read.as_ref().err()) {
            tracing::warn!(%error, "cannot read the other document of a shadow");
        }
        missing.into_iter().zip(read).collect()
    }

    /// Plans an event without sending, for measurements. Returns the number of messages, without deliveries to clients
    /// and messages of both documents of a shadow.
    pub fn rehearse(&self, event: &[u8]) -> Result<usize, EventError> {
        Ok(self.plan(event)?.list.len())
    }

    fn plan(&self, event: &[u8]) -> Result<Plan<'_>, EventError> {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        Plan::new(
            event,
            &self.registrations,
            &self.routes,
            &self.model,
            &mut buffers,
        )
    }

    /// Handles one event; returns before the deadline. Fails only if the event is not a stream event.
    pub async fn handle(
        &self,
        event: &[u8],
        deadline: Timestamp,
    ) -> Result<BatchSummary, EventError> {
        let start = self.clock.now();
        let mut plan = self.plan(event)?;
        let until = UNDELIVERABLE_RESERVE.deadline(deadline, start);
        let clock = self.clock.as_ref();
        let found = self.read_documents(plan.missing(), until).await;
        plan.complete(&found, &self.model);
        if let Some((route, channels)) = self.routes.clients() {
            add_deliveries(&mut plan, route, channels, until, clock).await;
        }
        let message = |index: usize| plan.list.message(index, &self.registrations);
        let (channels, envelopes) = (&self.routes.channels, plan.list.envelopes());
        let sent = dispatch_with(channels, &envelopes, &message, until, clock).await;
        for rejected in sent.rejected {
            plan.reject_message(rejected.index, rejected.reason);
        }
        let until = RESPONSE_RESERVE.deadline(deadline, start);
        let not_stored = self.send_undeliverable(&plan.undeliverable, until).await;
        let unsent = sent
            .unsent
            .iter()
            .map(|&index| plan.list.entry(index).record);
        let unfinished = unsent
            .chain(plan.unfinished.iter().copied())
            .chain(not_stored.iter().copied());
        Ok(BatchSummary {
            records: plan.records(),
            matched: plan.matched,
            sent: sent.sent,
            retried: sent.retried,
            undeliverable: plan.undeliverable.len() - not_stored.len(),
            resume_at: unfinished
                .min()
                .map(|record| plan.sequence_number(record).to_owned()),
            oldest_milliseconds: plan.oldest_seconds.map(|seconds| {
                let now = clock.now().nanoseconds() as f64 / 1e6;
                (now - seconds * 1e3).max(0.0) as u64
            }),
        })
    }

    /// Sends to the undeliverable queue. Returns the records of messages that it did not accept.
    async fn send_undeliverable(
        &self,
        messages: &[Undeliverable],
        deadline: Timestamp,
    ) -> Vec<usize> {
        let channels = [Arc::clone(&self.undeliverable)];
        let mut left: Vec<&Undeliverable> = messages.iter().collect();
        let mut failed = Vec::new();
        // The queue's own limit can be lower than the channel knows. A message that it rejects is sent once more
        // without the notification, so that a large one does not block the shard.
        for limit in [self.undeliverable.limits().message_bytes, 0] {
            let messages: Vec<ChannelMessage> =
                left.iter().map(|message| message.message(limit)).collect();
            let sent = dispatch(&channels, &messages, deadline, self.clock.as_ref()).await;
            failed.extend(sent.unsent.iter().map(|&index| left[index].record));
            for rejected in &sent.rejected {
                let reason = &rejected.reason;
                tracing::error!(reason, "the undeliverable queue rejected a message");
            }
            let rejected = sent.rejected.iter();
            left = rejected.map(|rejected| left[rejected.index]).collect();
        }
        failed.extend(left.iter().map(|message| message.record));
        failed
    }
}
