//! The ports of deliveries, and their laws.

use std::time::Duration;

use antumbra_shadow::Timestamp;
use async_trait::async_trait;

use super::delivery::{Attempt, Delivery, DeliveryRecord, Status};
use super::id::DeliveryId;
use super::message::DeliveryMessage;
use crate::clients::{Client, ClientId, Mode, Secret, Secrets};
use crate::paging::{Cursor, Page};
use crate::sensors::{Generation, SensorId, TimeRange};
use crate::store::{SendFuture, StoreError};

/// Everything known about a delivery before an attempt.
#[derive(Debug, Clone, Default)]
pub struct DeliveryContext {
    /// The delivery; `None` if the history does not know it.
    pub record: Option<DeliveryRecord>,
    /// The client and its secrets; `None` if it was deleted.
    pub client: Option<(Client, Secrets)>,
    /// True if the client is linked to the sensor.
    pub linked: bool,
    /// Number of the newest event that supersedes this one.
    pub newest: Option<u64>,
    /// Current registration of the sensor.
    pub generation: Option<Generation>,
    /// Number of deliveries of this client and sensor that wait outside of the queue, and of which later ones
    /// keep the order.
    pub deferred: u32,
    /// [`DeliveryId::order`] of the oldest of them.
    pub oldest_deferred: Option<String>,
    /// Number of changes of these deliveries: one joined, left, or began to wait behind another one.
    pub chain_version: u64,
}

/// The start of an attempt.
#[derive(Debug, Clone)]
pub struct Claim<'a> {
    pub record: &'a DeliveryRecord,
    pub message: &'a DeliveryMessage,
    /// Number of the attempt in its round, from 1.
    pub attempt: u32,
    /// Unique name of this claim.
    pub token: &'a str,
    /// End of the lease.
    pub until: Timestamp,
    /// Record of the attempt before, if it was interrupted.
    pub interrupted: Option<Attempt>,
    pub now: Timestamp,
}

/// Time and place of the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The delivery is queued again from the due index at this time.
    Due(Timestamp),
    /// The delivery waits until its client is enabled.
    Held,
    /// The delivery waits until the earlier ones of its client and sensor are settled.
    Behind,
}

#[derive(Debug, Clone)]
pub struct Transition<'a> {
    pub context: &'a DeliveryContext,
    pub record: &'a DeliveryRecord,
    pub message: &'a DeliveryMessage,
    /// Token of the claim, if an attempt was made.
    pub claim: Option<&'a str>,
    pub status: Status,
    /// Attempts to add to the history.
    pub attempts: Vec<Attempt>,
    /// The next attempt; `None` if the status is final.
    pub wait: Option<Wait>,
    /// Later deliveries of the client and sensor have to wait if this one waits.
    pub in_order: bool,
    pub now: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// Recorded. The message is to be queued: that of the delivery itself if it is due at a time, or that of the next
    /// delivery of the client and sensor, which waited behind this one.
    Applied(Option<DeliveryMessage>),
    /// The delivery changed since it was read; decide anew.
    Changed,
}

/// Store of delivery records and circuits, as the sender of deliveries needs it.
///
/// Laws: `context` sees every earlier completed write. Of concurrent claims of one attempt one succeeds, and it
/// counts the attempt. Only the holder of the claim changes the status after an attempt, except that a success is
/// always recorded; an attempt is recorded also if a later round has begun. A delivery that leaves the queue to wait
/// is in the due index, in the list of held deliveries or behind another delivery, recorded together with its status;
/// a final status removes it from there and moves the delivery behind it to the due index, all or nothing. Writing the
/// circuit of a client does not change the version of the client; nothing is written for a deleted client.
pub trait DeliveryStore: Send + Sync {
    fn context(
        &self,
        message: &DeliveryMessage,
    ) -> impl SendFuture<Result<DeliveryContext, StoreError>>;

    /// Begins an attempt, and counts it. Returns false if the delivery changed since it was read.
    fn claim(&self, claim: &Claim<'_>) -> impl SendFuture<Result<bool, StoreError>>;

    fn save(&self, transition: &Transition<'_>) -> impl SendFuture<Result<Saved, StoreError>>;

    /// Counts a failure with its weight, and opens the circuit if a time is given.
    fn record_failure(
        &self,
        client: &ClientId,
        weight: u32,
        open_until: Option<Timestamp>,
        now: Timestamp,
    ) -> impl SendFuture<Result<(), StoreError>>;

    /// Closes the circuit.
    fn record_success(&self, client: &ClientId) -> impl SendFuture<Result<(), StoreError>>;

    /// Claims the single probe of a circuit by replacing its expiry `seen` with `until`. Of concurrent callers one gets
    /// `true`.
    fn claim_probe(
        &self,
        client: &ClientId,
        seen: Option<Timestamp>,
        now: Timestamp,
        until: Timestamp,
    ) -> impl SendFuture<Result<bool, StoreError>>;

    /// Disables the client if it still has this URL. Returns whether it is disabled.
    fn disable(
        &self,
        client: &Client,
        reason: &str,
        now: Timestamp,
    ) -> impl SendFuture<Result<bool, StoreError>>;
}

/// Records new deliveries.
#[async_trait]
pub trait NewDeliveries: Send + Sync {
    /// Records a delivery as pending. One that is recorded already is not changed. The caller queues it, and repeats
    /// both if it is interrupted in between.
    async fn add(&self, delivery: &Delivery, now: Timestamp) -> Result<(), StoreError>;

    /// Records a delivery as pending and due now, in one write. Returns the message that queues it without waiting for
    /// the schedule, which queues it otherwise.
    async fn add_due(
        &self,
        delivery: &Delivery,
        now: Timestamp,
    ) -> Result<DeliveryMessage, StoreError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Client(ClientId),
    Sensor(SensorId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryQuery {
    pub subject: Subject,
    /// Events at or after this time.
    pub from: Option<Timestamp>,
    /// Events before this time.
    pub to: Option<Timestamp>,
    /// Deliveries with this status. Pages may then hold fewer entries than requested, or none.
    pub status: Option<Status>,
    /// Oldest first instead of newest first.
    pub oldest_first: bool,
    pub limit: usize,
}

impl HistoryQuery {
    /// Queries everything, newest first, in pages of 100.
    pub fn of(subject: Subject) -> HistoryQuery {
        HistoryQuery {
            subject,
            from: None,
            to: None,
            status: None,
            oldest_first: false,
            limit: 100,
        }
    }

    /// Refuses a range of times that ends before it begins.
    pub fn check(&self) -> Result<(), StoreError> {
        let (Some(from), Some(to)) = (self.from, self.to) else {
            return Ok(());
        };
        let newest_first = !self.oldest_first;
        TimeRange {
            from,
            to,
            newest_first,
        }
        .check()
    }
}

/// Laws: the history of a client sees every earlier completed write; that of a sensor may lag behind.
pub trait History: Send + Sync {
    fn get(&self, id: &DeliveryId) -> impl SendFuture<Result<Option<DeliveryRecord>, StoreError>>;

    /// Lists deliveries, one page per call.
    fn list(
        &self,
        query: &HistoryQuery,
        cursor: Option<&Cursor>,
    ) -> impl SendFuture<Result<Page<DeliveryRecord>, StoreError>>;

    /// Records that a delivery was queued in a new round, unless that round has begun already.
    fn requeued(
        &self,
        message: &DeliveryMessage,
        now: Timestamp,
    ) -> impl SendFuture<Result<(), StoreError>>;

    /// Returns the oldest held deliveries of a client, read from a list of their own. An entry without a
    /// record is of a delivery that is not held any more.
    fn held(
        &self,
        client: &ClientId,
        limit: usize,
    ) -> impl SendFuture<Result<Vec<HeldDelivery>, StoreError>>;

    /// Removes an entry of the list of held deliveries, unless the delivery was held again.
    fn remove_held(
        &self,
        client: &ClientId,
        held: &HeldDelivery,
    ) -> impl SendFuture<Result<(), StoreError>>;
}

#[derive(Debug, Clone)]
pub struct HeldDelivery {
    /// [`DeliveryId::order`] of the delivery.
    pub order: String,
    /// Round in which the delivery was held, attempts begun in it by then, and time.
    pub round: u32,
    pub begun: u32,
    pub held_at: Timestamp,
    /// The delivery, if it is held.
    pub record: Option<DeliveryRecord>,
}

#[derive(Debug, Clone)]
pub struct DueEntry {
    pub shard: u32,
    /// Sort key of the entry in its shard.
    pub key: String,
    pub task: DueTask,
}

/// Task of an entry of the due index.
#[derive(Debug, Clone)]
pub enum DueTask {
    /// Queue a delivery to a client of this mode.
    Queue(Box<DeliveryRecord>, Mode),
    /// Release the held deliveries of a client that was enabled or deleted.
    Release(ClientId),
    /// Nothing: the delivery does not wait any more.
    Nothing,
}

/// Deliveries that wait for a time, sharded, and clients whose held deliveries are to be released.
///
/// Law: an entry stays until it is removed.
pub trait DueIndex: Send + Sync {
    fn shards(&self) -> u32;

    /// Returns the first entries of a shard that are due.
    fn due(
        &self,
        shard: u32,
        now: Timestamp,
        limit: usize,
    ) -> impl SendFuture<Result<Vec<DueEntry>, StoreError>>;

    fn remove_due(&self, entry: &DueEntry) -> impl SendFuture<Result<(), StoreError>>;
}

#[derive(Debug, Clone, Copy)]
pub struct Post<'a> {
    pub url: &'a str,
    /// `webhook-id`.
    pub id: &'a DeliveryId,
    /// `webhook-timestamp`.
    pub now: Timestamp,
    /// Secrets; the request has one signature for each.
    pub secrets: &'a [&'a Secret],
    pub body: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpResponse {
    pub status: u16,
    pub retry_after: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// No response in time; the next request may hang as well.
    #[error("no response within {0:?}")]
    Timeout(Duration),
    /// The endpoint is unreachable, broke the connection, or must not be called.
    #[error("{0}")]
    Failed(String),
}

/// Sends requests to clients' endpoints.
///
/// Laws: one request per call, signed with every secret; it ends within the timeout of the sender, follows no
/// redirect, reads only as much of the response as needed, and connects to allowed addresses only, whatever the
/// host name resolves to at that moment.
pub trait Sender: Send + Sync {
    fn post(&self, post: Post<'_>) -> impl SendFuture<Result<HttpResponse, PostError>>;
}

/// Changes the visibility timeout of queue messages.
///
/// Law: the message stays hidden for the given time from now, or for the longest time the queue supports; after
/// a failure it stays hidden for the default time of the queue.
pub trait MessageVisibility: Send + Sync {
    /// Hides a message, identified by the ARN of its queue and its receipt handle.
    fn postpone(
        &self,
        queue_arn: &str,
        receipt: &str,
        by: Duration,
    ) -> impl SendFuture<Result<(), String>>;
}
