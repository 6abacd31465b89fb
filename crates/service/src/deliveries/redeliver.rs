//! Queuing deliveries again: one, all since a time, all that were parked; and a first one, as a test.

use std::sync::Arc;

use antumbra_shadow::Timestamp;
use serde_json::value::RawValue;

use super::delivery::{Delivery, DeliveryRecord, Kind, Status};
use super::id::DeliveryId;
use super::message::queue_message;
use super::ports::{History, HistoryQuery, Subject};
use crate::clients::{ClientError, ClientId, ClientState, ClientStore, Mode};
use crate::clock::Clock;
use crate::notifications::{Channel, SendError};
use crate::paging::{Cursor, Page, page_limit};
use crate::store::{ErrorClass, StoreError};

/// How many deliveries are looked at in one go.
const PAGE: usize = 100;
/// How often parked deliveries are looked for while a client is being enabled.
const LOOKS: usize = 3;

/// The two queues of deliveries.
#[derive(Clone)]
pub struct Queues {
    /// In order, one message group per client and sensor: for mode `every`.
    pub ordered: Arc<dyn Channel>,
    /// In any order: for mode `latest`.
    pub unordered: Arc<dyn Channel>,
}

impl Queues {
    /// The queue for a mode.
    pub fn of(&self, mode: Mode) -> &Arc<dyn Channel> {
        match mode {
            Mode::Every => &self.ordered,
            Mode::Latest => &self.unordered,
        }
    }
}

/// Why a delivery could not be queued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedeliverError {
    /// There is no such delivery, or it has expired.
    #[error("no such delivery")]
    NotFound,
    /// It cannot be done with the client.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The history could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The queue did not take it; worth trying again.
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

/// What a part of a longer work did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requeued {
    /// How many deliveries were queued.
    pub queued: usize,
    /// Where to go on; `None` when all is done.
    pub next: Option<Cursor>,
}

/// Queues deliveries again, and reads their history.
#[derive(Clone)]
pub struct Deliveries<S, H> {
    clients: S,
    history: H,
    queues: Queues,
    clock: Arc<dyn Clock>,
}

impl<S: ClientStore, H: History> Deliveries<S, H> {
    /// On these ports.
    pub fn new(clients: S, history: H, queues: Queues, clock: Arc<dyn Clock>) -> Deliveries<S, H> {
        Deliveries {
            clients,
            history,
            queues,
            clock,
        }
    }

    /// One delivery with its attempts.
    pub async fn get(&self, id: &DeliveryId) -> Result<DeliveryRecord, RedeliverError> {
        let found = self.history.get(id).await?;
        found.ok_or(RedeliverError::NotFound)
    }

    /// The history of a client or a sensor, in pages.
    pub async fn list(
        &self,
        query: &HistoryQuery,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DeliveryRecord>, RedeliverError> {
        page_limit(query.limit)?;
        Ok(self.history.list(query, cursor).await?)
    }

    /// Queues one delivery again, whatever became of it.
    pub async fn redeliver(&self, id: &DeliveryId) -> Result<(), RedeliverError> {
        let record = self.get(id).await?;
        let client = self.clients.get(id.client()).await?;
        self.requeue(record.delivery, client.mode, false).await
    }

    /// Queues all of a client's deliveries since a time again that did not arrive (or all, if
    /// `delivered` are wanted too), oldest first, a page at a time. The caller goes on with the cursor
    /// until there is none.
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
            // What is under way arrives by itself.
            let wanted = match record.status {
                Status::Delivered => delivered,
                Status::Failed | Status::Pending => false,
                Status::Dead | Status::Skipped | Status::Superseded | Status::Parked => true,
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

    /// Enables a client and sends what was parked, oldest first. Answers how many those were. If it is
    /// interrupted, the same call again goes on.
    ///
    /// What was parked goes before the client counts as enabled, so that what occurs meanwhile is parked
    /// behind it. Nothing is left parked: a turn that parks at this very moment looks again whether the
    /// client is still disabled. What waited in the queue unparked may arrive before what was parked; its
    /// `sequence` tells.
    pub async fn enable(&self, client: &ClientId) -> Result<usize, RedeliverError> {
        let mode = self.clients.get(client).await?.mode;
        let mut queued = 0;
        // A client whose endpoint is still gone parks what it is sent, and would be sent it for ever.
        for _ in 0..LOOKS {
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
        // What was parked between the last look and the line above.
        Ok(queued + self.release(client, mode).await?)
    }

    async fn release(&self, client: &ClientId, mode: Mode) -> Result<usize, RedeliverError> {
        let query = HistoryQuery {
            status: Some(Status::Parked),
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

    /// Queues a delivery that tells nothing but that it arrives, and answers with its id.
    pub async fn test(&self, client: &ClientId) -> Result<DeliveryId, RedeliverError> {
        let mode = self.clients.get(client).await?.mode;
        let now = self.clock.now();
        let data = r#"{"message":"This is a test: the signature is real, nothing occurred."}"#;
        let data: &RawValue =
            serde_json::from_str(data).map_err(|fault| RedeliverError::Queue(fault.to_string()))?;
        // Two tests within a millisecond are two.
        let sequence = u64::from(fastrand::u32(1..));
        let id = DeliveryId::new(client, now, sequence, Kind::ClientTest.as_str());
        let delivery = Delivery {
            id: id.clone(),
            kind: Kind::ClientTest,
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

    /// Into the queue first, then into the history: a crash between the two queues it once too often,
    /// never not at all.
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
            None => Err(RedeliverError::Queue("no answer".to_owned())),
        }
    }
}
