//! Queues deliveries again: one, all since a time, or all held ones; and test deliveries.

use std::sync::Arc;

use antumbra_shadow::Timestamp;
use serde_json::value::RawValue;

use super::delivery::{Delivery, DeliveryRecord, Status};
use super::id::DeliveryId;
use super::message::queue_message;
use super::ports::{History, HistoryQuery, Subject};
use crate::clients::{ClientError, ClientId, ClientState, ClientStore, Mode};
use crate::clock::Clock;
use crate::notifications::{Channel, SendError};
use crate::paging::{Cursor, Page, page_limit};
use crate::sensors::EventType;
use crate::store::{ErrorClass, StoreError};

/// Deliveries per page.
const PAGE: usize = 100;
/// Number of passes over held deliveries while a client is being enabled.
const RELEASE_PASSES: usize = 3;

/// The two queues of deliveries.
#[derive(Clone)]
pub struct Queues {
    /// FIFO, one message group per client and sensor, for mode `every`.
    pub ordered: Arc<dyn Channel>,
    /// Standard queue, for mode `latest`.
    pub unordered: Arc<dyn Channel>,
}

impl Queues {
    /// Returns the queue of a mode.
    pub fn of(&self, mode: Mode) -> &Arc<dyn Channel> {
        match mode {
            Mode::Every => &self.ordered,
            Mode::Latest => &self.unordered,
        }
    }
}

/// Error of a request about deliveries.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedeliverError {
    /// The delivery does not exist or has expired.
    #[error("no such delivery")]
    NotFound,
    /// The client does not allow it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The history failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The queue failed; can be retried.
    #[error("the queue failed: {0}")]
    Queue(String),
}

impl RedeliverError {
    /// Returns the class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            RedeliverError::NotFound => ErrorClass::NotFound,
            RedeliverError::Client(error) => error.class(),
            RedeliverError::Store(error) => error.class(),
            RedeliverError::Queue(_) => ErrorClass::Unavailable,
        }
    }
}

/// Result of one page of a redelivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requeued {
    /// Number of queued deliveries.
    pub queued: usize,
    /// Cursor of the next page; `None` after the last.
    pub next: Option<Cursor>,
}

/// Use cases of deliveries: history, redelivery, enabling clients, tests.
#[derive(Clone)]
pub struct Deliveries<S, H> {
    clients: S,
    history: H,
    queues: Queues,
    clock: Arc<dyn Clock>,
}

impl<S: ClientStore, H: History> Deliveries<S, H> {
    /// Creates the use cases on these ports.
    pub fn new(clients: S, history: H, queues: Queues, clock: Arc<dyn Clock>) -> Deliveries<S, H> {
        Deliveries {
            clients,
            history,
            queues,
            clock,
        }
    }

    /// Returns a delivery with its attempts.
    pub async fn get(&self, id: &DeliveryId) -> Result<DeliveryRecord, RedeliverError> {
        let found = self.history.get(id).await?;
        found.ok_or(RedeliverError::NotFound)
    }

    /// Lists the history of a client or a sensor.
    pub async fn list(
        &self,
        query: &HistoryQuery,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DeliveryRecord>, RedeliverError> {
        page_limit(query.limit)?;
        Ok(self.history.list(query, cursor).await?)
    }

    /// Queues one delivery again, whatever its status.
    pub async fn redeliver(&self, id: &DeliveryId) -> Result<(), RedeliverError> {
        let record = self.get(id).await?;
        let client = self.clients.get(id.client()).await?;
        self.requeue(record.delivery, client.mode, false).await
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
        for record in page.rows {
            // Deliveries with attempts left arrive anyway.
            let wanted = match record.status {
                Status::Delivered => delivered,
                Status::Failed | Status::Pending => false,
                Status::Dead | Status::Skipped | Status::Superseded | Status::Held => true,
            };
            if wanted {
                self.requeue(record.delivery, mode, false).await?;
                queued += 1;
            }
        }
        Ok(Requeued {
            queued,
            next: page.next,
        })
    }

    /// Enables a client and releases its held deliveries, oldest first. Returns the number of released deliveries.
    /// After an interruption the same call continues.
    ///
    /// Held deliveries are released before the client counts as enabled, so that new events are held behind them.
    /// Nothing stays held: an attempt that holds a delivery at the same time checks the client again. Deliveries
    /// that waited in the queue may arrive before released ones; their `sequence` shows the order.
    pub async fn enable(&self, client: &ClientId) -> Result<usize, RedeliverError> {
        let mode = self.clients.get(client).await?.mode;
        let mut queued = 0;
        // The endpoint may still be gone; then released deliveries are held again, so the passes are limited.
        for _ in 0..RELEASE_PASSES {
            let released = self.release(client, mode).await?;
            queued += released;
            if released == 0 {
                break;
            }
        }
        let now = self.clock.now();
        self.clients
            .set_state(client, &ClientState::Enabled, now)
            .await?;
        // Deliveries that were held between the last pass and the line above.
        Ok(queued + self.release(client, mode).await?)
    }

    async fn release(&self, client: &ClientId, mode: Mode) -> Result<usize, RedeliverError> {
        let query = HistoryQuery {
            status: Some(Status::Held),
            oldest_first: true,
            limit: PAGE,
            ..HistoryQuery::of(Subject::Client(client.clone()))
        };
        let mut queued = 0;
        let mut cursor = None;
        loop {
            let page = self.history.list(&query, cursor.as_ref()).await?;
            for record in page.rows {
                self.requeue(record.delivery, mode, true).await?;
                queued += 1;
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(queued);
            }
        }
    }

    /// Queues a test delivery and returns its id.
    pub async fn test(&self, client: &ClientId) -> Result<DeliveryId, RedeliverError> {
        let mode = self.clients.get(client).await?.mode;
        let now = self.clock.now();
        let data = r#"{"message":"This is a test: the signature is real, there is no event."}"#;
        let data: &RawValue =
            serde_json::from_str(data).map_err(|fault| RedeliverError::Queue(fault.to_string()))?;
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
            round: 0,
            released: false,
        };
        self.queue(&delivery, mode).await?;
        self.history.requeued(&delivery, now).await?;
        Ok(id)
    }

    /// Sends to the queue first and then records: a crash in between queues a delivery twice rather than never.
    async fn requeue(
        &self,
        delivery: Delivery,
        mode: Mode,
        released: bool,
    ) -> Result<(), RedeliverError> {
        let delivery = Delivery {
            round: delivery.round.saturating_add(1),
            released,
            ..delivery
        };
        self.queue(&delivery, mode).await?;
        Ok(self.history.requeued(&delivery, self.clock.now()).await?)
    }

    async fn queue(&self, delivery: &Delivery, mode: Mode) -> Result<(), RedeliverError> {
        let message = queue_message(delivery);
        let sent = self
            .queues
            .of(mode)
            .send(std::slice::from_ref(&message))
            .await;
        match sent.into_iter().next() {
            Some(Ok(())) => Ok(()),
            Some(Err(SendError::Retry(reason) | SendError::Permanent(reason))) => {
                Err(RedeliverError::Queue(reason))
            }
            None => Err(RedeliverError::Queue("no response".to_owned())),
        }
    }
}
