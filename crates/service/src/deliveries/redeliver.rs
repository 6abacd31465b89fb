//! Queues deliveries again: one, all since a time, or all held ones; and test deliveries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use antumbra_shadow::Timestamp;
use async_trait::async_trait;
use futures_util::stream::{self, StreamExt as _};
use serde_json::value::RawValue;

use super::delivery::{Delivery, DeliveryRecord, Status};
use super::id::DeliveryId;
use super::message::DeliveryMessage;
use super::ports::{HeldDelivery, History, HistoryQuery, NewDeliveries, Subject};
use super::queues::{QueueError, Queues};
use crate::clients::{ClientError, ClientId, ClientState, ClientStore, Mode};
use crate::clock::Clock;
use crate::paging::{Cursor, Page, page_limit};
use crate::redrive::DeadLetterHandler;
use crate::sensors::EventType;
use crate::store::{ErrorClass, StoreError};

const PAGE: usize = 100;
/// Time that enabling a client takes at most; the rest of its held deliveries is released in the background.
const RELEASE_TIME_LIMIT: Duration = Duration::from_millis(500);
/// Held deliveries that are released at once.
const RELEASED_AT_ONCE: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedeliverError {
    /// The delivery does not exist or has expired.
    #[error("no such delivery")]
    NotFound,
    /// The client does not allow it.
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The queue failed; can be retried.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl RedeliverError {
    pub fn class(&self) -> ErrorClass {
        match self {
            RedeliverError::NotFound => ErrorClass::NotFound,
            RedeliverError::Client(error) => error.class(),
            RedeliverError::Store(error) => error.class(),
            RedeliverError::Queue(_) => ErrorClass::Unavailable,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requeued {
    pub queued: usize,
    /// Cursor of the next page; `None` after the last.
    pub next: Option<Cursor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    pub queued: usize,
    /// No delivery is held any more.
    pub finished: bool,
}

/// Use cases of deliveries: history, redelivery, enabling clients, tests.
#[derive(Clone)]
pub struct Deliveries<S, H> {
    clients: S,
    history: H,
    queues: Queues,
    clock: Arc<dyn Clock>,
}

impl<S: ClientStore, H: History + NewDeliveries> Deliveries<S, H> {
    pub fn new(clients: S, history: H, queues: Queues, clock: Arc<dyn Clock>) -> Deliveries<S, H> {
        Deliveries {
            clients,
            history,
            queues,
            clock,
        }
    }

    pub async fn get(&self, id: &DeliveryId) -> Result<DeliveryRecord, RedeliverError> {
        let found = self.history.get(id).await?;
        found.ok_or(RedeliverError::NotFound)
    }

    pub async fn list(
        &self,
        query: &HistoryQuery,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DeliveryRecord>, RedeliverError> {
        page_limit(query.limit)?;
        Ok(self.history.list(query, cursor).await?)
    }

    /// Queues one delivery again, whatever its status. It probes an open circuit at once.
    pub async fn redeliver(&self, id: &DeliveryId) -> Result<(), RedeliverError> {
        let record = self.get(id).await?;
        let client = self.clients.get(id.client()).await?;
        self.requeue(&record, client.mode).await
    }

    /// Queues the delivery of a dead letter again, unless a later round of it was begun since.
    pub async fn redeliver_dead(&self, letter: &DeliveryMessage) -> Result<(), RedeliverError> {
        let record = self.get(&letter.id).await?;
        if record.progress.round > letter.round {
            return Ok(());
        }
        let client = self.clients.get(letter.id.client()).await?;
        self.requeue(&record, client.mode).await
    }

    /// Queues the undelivered deliveries of a client since a time again (with `delivered`, all of them), oldest
    /// first, one page per call. Call again with the cursor until there is none.
    pub async fn redeliver_since(
        &self,
        client: &ClientId,
        since: Timestamp,
        delivered: bool,
        cursor: Option<&Cursor>,
    ) -> Result<Requeued, RedeliverError> {
        let mode = self.clients.get(client).await?.mode;
        let query = HistoryQuery {
            from: Some(since),
            oldest_first: true,
            limit: PAGE,
            ..HistoryQuery::of(Subject::Client(client.clone()))
        };
        let page = self.history.list(&query, cursor).await?;
        let mut queued = 0;
        for record in &page.rows {
            if delivered || record.status != Status::Delivered {
                self.requeue(record, mode).await?;
                queued += 1;
            }
        }
        Ok(Requeued {
            queued,
            next: page.next,
        })
    }

    /// Enables a client and releases its held deliveries, oldest first. This call releases as many as it can in
    /// half a second; the schedule releases the rest, also after an interruption.
    ///
    /// Nothing stays held: an attempt that holds a delivery at the same time checks the client again.
    pub async fn enable(&self, client: &ClientId) -> Result<Release, RedeliverError> {
        let start = self.clock.now();
        self.clients
            .set_state(client, &ClientState::Enabled, start)
            .await?;
        self.release(client).await
    }

    /// Releases more deliveries of a client, for half a second. Those of a client that is disabled stay held.
    pub async fn release(&self, client: &ClientId) -> Result<Release, RedeliverError> {
        let until = self.clock.now().after(RELEASE_TIME_LIMIT);
        let more = || self.clock.now() < until;
        let (history, clock) = (&self.history, &*self.clock);
        release(&self.clients, history, &self.queues, clock, client, more).await
    }

    /// Queues a test delivery and returns its id. If it is interrupted, the schedule queues it.
    pub async fn test(&self, client: &ClientId) -> Result<DeliveryId, RedeliverError> {
        let mode = self.clients.get(client).await?.mode;
        let now = self.clock.now();
        let data = r#"{"message":"This is a test: the signature is real, there is no event."}"#;
        let data: &RawValue =
            serde_json::from_str(data).map_err(|fault| StoreError::Invalid(fault.to_string()))?;
        // Distinguishes two tests within a millisecond.
        let sequence = u64::from(fastrand::u32(1..));
        let id = DeliveryId::new(client, now, sequence, EventType::ClientTest.as_str());
        let delivery = Delivery {
            id: id.clone(),
            event_type: EventType::ClientTest,
            sequence: 0,
            number: 0,
            occurred_at: now,
            sensor: None,
            data: data.to_owned(),
        };
        let message = self.history.add_due(&delivery, now).await?;
        if let Err(error) = self.queues.send(mode, &message).await {
            tracing::warn!(%id, %error, "a test was not queued; the schedule queues it");
        }
        Ok(id)
    }

    /// Sends to the queue first and then records: a crash in between queues a delivery twice rather than never.
    async fn requeue(&self, record: &DeliveryRecord, mode: Mode) -> Result<(), RedeliverError> {
        let message = record.next_round(true);
        self.queues.send(mode, &message).await?;
        Ok(self.history.requeued(&message, self.clock.now()).await?)
    }
}

/// Releases the held deliveries of a client that is enabled or deleted, oldest first, while `more` is true. Those of
/// different sensors are released at once, in mode `latest` also those of one sensor.
pub(super) async fn release<S: ClientStore, H: History>(
    clients: &S,
    history: &H,
    queues: &Queues,
    clock: &dyn Clock,
    client: &ClientId,
    more: impl Fn() -> bool + Sync,
) -> Result<Release, RedeliverError> {
    let mut queued = 0;
    loop {
        let mode = match clients.get(client).await {
            Ok(found) if found.state == ClientState::Enabled => found.mode,
            // Disabled again: its deliveries stay held.
            Ok(_) => {
                let finished = true;
                return Ok(Release { queued, finished });
            }
            // Deleted: each delivery is recorded as skipped.
            Err(ClientError::NotFound) => Mode::Latest,
            Err(error) => return Err(error.into()),
        };
        let page = history.held(client, PAGE).await?;
        let is_last = page.len() < PAGE;
        let more = &more;
        let release_in_order = async |group: Vec<&HeldDelivery>| {
            let mut queued = 0;
            for held in group {
                if !more() {
                    return Ok((queued, false));
                }
                if let Some(record) = &held.record {
                    let message = record.next_round(false);
                    queues.send(mode, &message).await?;
                    history.requeued(&message, clock.now()).await?;
                    queued += 1;
                }
                history.remove_held(client, held).await?;
            }
            Ok::<(usize, bool), RedeliverError>((queued, true))
        };
        let groups = stream::iter(groups(&page, mode)).map(release_in_order);
        let mut groups = groups.buffer_unordered(RELEASED_AT_ONCE);
        let mut finished = is_last;
        while let Some(released) = groups.next().await {
            let (released, all) = released?;
            queued += released;
            finished &= all;
        }
        if is_last || !more() {
            return Ok(Release { queued, finished });
        }
    }
}

/// Groups held deliveries that must be released in order: in mode `every` those of one sensor.
fn groups(page: &[HeldDelivery], mode: Mode) -> Vec<Vec<&HeldDelivery>> {
    if mode == Mode::Latest {
        return page.iter().map(|held| vec![held]).collect();
    }
    let mut groups: BTreeMap<Option<&str>, Vec<&HeldDelivery>> = BTreeMap::new();
    for held in page {
        let delivery = held.record.as_ref().map(|record| &record.delivery);
        let sensor = delivery.and_then(|delivery| delivery.sensor.as_ref());
        let sensor = sensor.map(|sensor| sensor.id.as_str());
        groups.entry(sensor).or_default().push(held);
    }
    groups.into_values().collect()
}

#[async_trait]
impl<S: ClientStore, H: History + NewDeliveries> DeadLetterHandler for Deliveries<S, H> {
    async fn redeliver(&self, letter: &DeliveryMessage) -> Result<(), String> {
        let queued = self.redeliver_dead(letter).await;
        queued.map_err(|error| error.to_string())
    }
}
