//! The listener: plans, sends, sends undeliverable messages to their queue, and summarizes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use antumbra_registration::Registrations;
use antumbra_service::clock::{Clock, Reserve, time_left};
use antumbra_service::notifications::{Channel, Message, dispatch, dispatch_with};
use antumbra_service::redrive::{RecordRange, RecordSource};
use antumbra_service::shadows::{Read, ReadConsistency, ShadowStore, StoreError};
use antumbra_shadow::{Model, Timestamp};
use antumbra_wire::stream::EventError;
use futures_util::future::BoxFuture;

use crate::deliveries::add_deliveries;
use crate::plan::{Buffers, Plan};
use crate::routes::{ChannelFactory, RouteError, Routes};
use crate::shadow_messages::{CurrentDocument, Found, Other};
use crate::spill::{Records, Spill, SpillRoute};
use crate::undeliverable::Undeliverable;

/// Time reserved for the undeliverable queue.
pub(crate) const UNDELIVERABLE_RESERVE: Reserve = Reserve {
    time: Duration::from_millis(4000),
    share: 4,
};
/// Time reserved for the response.
pub(crate) const RESPONSE_RESERVE: Reserve = Reserve {
    time: Duration::from_millis(1500),
    share: 8,
};

/// Sends the changes of a table to the targets of matching registrations.
pub struct Listener {
    pub(crate) registrations: Registrations,
    pub(crate) routes: Routes,
    undeliverable: Arc<dyn Channel>,
    model: Model,
    pub(crate) clock: Arc<dyn Clock>,
    buffers: Mutex<Buffers>,
    documents: Option<ReadDocuments>,
    pub(crate) spill: Option<SpillRoute>,
    /// The stream's records, to handle some of them again.
    pub(crate) records: Option<Box<dyn RecordSource>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchSummary {
    pub records: usize,
    /// Records that at least one registration matches.
    pub matched: usize,
    pub sent: usize,
    pub retried: usize,
    pub undeliverable: usize,
    /// Messages that were sent to the spill queue; they count as sent, too.
    pub spilled: usize,
    /// Registrations that are suspended or draining.
    pub suspended: usize,
    /// The sequence number to continue from, unless all records are done.
    pub resume_at: Option<String>,
    pub oldest_milliseconds: Option<u64>,
}

/// Reads documents as they are now, one result each in the given order.
pub type ReadDocuments =
    Box<dyn Fn(Vec<Other>) -> BoxFuture<'static, Vec<CurrentDocument>> + Send + Sync>;

async fn current_documents(store: &impl ShadowStore, wanted: &[Other]) -> Vec<CurrentDocument> {
    let reads = wanted.iter().map(|(shadow, state)| Read {
        shadow: shadow.clone(),
        parts: (*state).into(),
    });
    let reads: Vec<Read> = reads.collect();
    let found = store.read_many(&reads, ReadConsistency::Strong).await;
    let found = found.into_iter().map(|found| match found {
        Ok(snapshot) => Ok(snapshot.reported.or(snapshot.desired)),
        Err(StoreError::NotFound) => Ok(None),
        Err(error) => Err(error),
    });
    found.collect()
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
            spill: None,
            records: None,
        })
    }

    pub(crate) fn registrations(&self) -> &Registrations {
        &self.registrations
    }

    /// Gives access to the stored documents. Without it, messages of both documents of a shadow are only possible in
    /// the combined layout.
    #[must_use]
    pub fn with_documents<S: ShadowStore + 'static>(self, store: S) -> Listener {
        let store = Arc::new(store);
        self.with_reader(Box::new(move |wanted| {
            let store = Arc::clone(&store);
            Box::pin(async move { current_documents(&*store, &wanted).await })
        }))
    }

    /// The same with any way to read.
    #[must_use]
    pub fn with_reader(self, documents: ReadDocuments) -> Listener {
        Listener {
            documents: Some(documents),
            ..self
        }
    }

    /// Sends the messages of targets that keep failing to the spill queue. Without it they hold up the stream.
    #[must_use]
    pub fn with_spill(mut self, spill: Spill) -> Listener {
        self.spill = Some(SpillRoute {
            channel: self.routes.open_spill(spill.queue),
            suspensions: spill.suspensions,
        });
        self
    }

    /// Handles records again whose positions are in the spill queue.
    #[must_use]
    pub fn with_records(mut self, records: Box<dyn RecordSource>) -> Listener {
        self.records = Some(records);
        self
    }

    async fn read_documents(&self, missing: Vec<Other>, deadline: Timestamp) -> Found {
        let Some(documents) = self.documents.as_ref().filter(|_| !missing.is_empty()) else {
            return Found::new();
        };
        let time = time_left(self.clock.now(), deadline);
        let read = tokio::time::timeout(time, documents(missing.clone())).await;
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
        let suspended = self.read_suspensions(&plan, until);
        let missing = self.read_documents(plan.missing(), until);
        let (suspended, found) = tokio::join!(suspended, missing);
        plan.complete(&found, &self.model);
        if let Some((route, channels)) = self.routes.clients() {
            // Half of the time is left to send what was recorded.
            let now = clock.now();
            let recorded_until = now.after(time_left(now, until) / 2);
            add_deliveries(&mut plan, route, channels, recorded_until, clock).await;
        }
        let (records, spilled) = self.redirect(&mut plan, suspended).await;
        let message = |index: usize| plan.list.message(index, &self.registrations);
        let (channels, envelopes) = (&self.routes.channels, plan.list.envelopes());
        let sent = dispatch_with(channels, &envelopes, &message, until, clock).await;
        let until = RESPONSE_RESERVE.deadline(deadline, start);
        if let Some(spill) = &self.spill {
            let time = time_left(clock.now(), until) / 2;
            let counting = spill.count_failures(&plan, &sent, &records, clock.now());
            if tokio::time::timeout(time, counting).await.is_err() {
                tracing::warn!("failures of targets were not counted in time");
            }
        }
        for rejected in sent.rejected {
            plan.reject_message(rejected.index, rejected.reason);
        }
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
            spilled,
            suspended: records.values().filter(|record| record.suspends()).count(),
            resume_at: unfinished
                .min()
                .map(|record| plan.sequence_number(record).to_owned()),
            oldest_milliseconds: plan.oldest_seconds.map(|seconds| {
                let now = clock.now().nanoseconds() as f64 / 1e6;
                (now - seconds * 1e3).max(0.0) as u64
            }),
        })
    }

    /// Handles records again that an event source gave up. New undeliverable notifications go to the undeliverable
    /// queue again.
    pub(crate) async fn handle_again(
        &self,
        records: &dyn RecordSource,
        range: &RecordRange,
        deadline: Timestamp,
    ) -> Result<(), String> {
        for event in records.events(range).await? {
            let handled = self.handle(&event, deadline).await;
            let handled = handled.map_err(|error| error.to_string())?;
            if let Some(record) = handled.resume_at {
                return Err(format!(
                    "not all notifications from record {record} on could be sent"
                ));
            }
        }
        Ok(())
    }

    async fn read_suspensions(
        &self,
        plan: &Plan<'_>,
        deadline: Timestamp,
    ) -> Result<Records, StoreError> {
        match &self.spill {
            Some(spill) if plan.has_messages() => spill.read(deadline, self.clock.as_ref()).await,
            _ => Ok(Records::new()),
        }
    }

    /// Redirects messages of suspended registrations. If it is unknown which are, nothing is sent.
    async fn redirect(
        &self,
        plan: &mut Plan<'_>,
        suspended: Result<Records, StoreError>,
    ) -> (Records, usize) {
        let redirected = match (suspended, &self.spill) {
            (Ok(records), Some(spill)) => {
                let clients = self.routes.clients();
                let unordered = clients.map(|(_, channels)| channels.unordered);
                let now = self.clock.now();
                let spilled = spill
                    .redirect(plan, &self.registrations, unordered, &records, now)
                    .await;
                spilled.map(|spilled| (records, spilled))
            }
            (suspended, _) => suspended.map(|records| (records, 0)),
        };
        redirected.unwrap_or_else(|error| {
            tracing::warn!(%error, "the records of suspended targets cannot be read or written");
            let records = plan.list.entries().iter().map(|entry| entry.record);
            plan.unfinished.extend(records);
            plan.list.clear();
            (Records::new(), 0)
        })
    }

    /// Sends to the undeliverable queue. Returns the records of messages that it did not accept.
    pub(crate) async fn send_undeliverable(
        &self,
        messages: &[Undeliverable],
        deadline: Timestamp,
    ) -> Vec<usize> {
        let mut left: Vec<&Undeliverable> = messages.iter().collect();
        let mut failed = Vec::new();
        // The queue's own limit can be lower than the channel knows. A message that it rejects is sent once more
        // without the notification, so that a large one does not block the shard.
        for limit in [self.undeliverable.limits().message_bytes, 0] {
            let messages: Vec<Message> =
                left.iter().map(|message| message.message(limit)).collect();
            let channel = Arc::clone(&self.undeliverable);
            let sent = dispatch(channel, &messages, deadline, self.clock.as_ref()).await;
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
