//! The ports of deliveries, and their laws.

use std::future::Future;
use std::time::Duration;

use antumbra_shadow::Timestamp;

use super::delivery::{Attempt, Delivery, DeliveryRecord, Status};
use super::id::DeliveryId;
use crate::clients::{Client, ClientId, Secret, Secrets};
use crate::paging::{Cursor, Page};
use crate::sensors::SensorId;
use crate::store::StoreError;

/// Everything known about a delivery before an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryContext {
    /// The client and its secrets; `None` if it was deleted.
    pub client: Option<(Client, Secrets)>,
    /// True if the client is linked to the sensor.
    pub linked: bool,
    /// Number of the newest event that supersedes this one.
    pub newest: Option<u64>,
    /// Latest round in which it was delivered.
    pub delivered_round: Option<u32>,
    /// Latest recorded attempt of this round; 0 if there is none.
    pub last_attempt: u32,
}

/// Store of delivery records and circuits, as the sender of deliveries needs it.
///
/// Laws: `context` sees every earlier completed write. A record keeps every recorded attempt, up to a limit, also
/// with concurrent writers; recording never changes the status of a delivered delivery of the same or an earlier
/// round. Writing the circuit of a client does not change the version of the client; nothing is written for a
/// deleted client.
pub trait DeliveryStore: Send + Sync {
    /// Reads the context of an attempt with one call.
    fn context(
        &self,
        delivery: &Delivery,
    ) -> impl Future<Output = Result<DeliveryContext, StoreError>> + Send;

    /// Records the status after an attempt. `attempts` holds earlier unrecorded attempts, then this one if it was
    /// made.
    fn record(
        &self,
        delivery: &Delivery,
        status: Status,
        attempts: &[Attempt],
        now: Timestamp,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Counts a failure with its weight, and opens the circuit if a time is given.
    fn record_failure(
        &self,
        client: &ClientId,
        weight: u32,
        open_until: Option<Timestamp>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Closes the circuit.
    fn record_success(
        &self,
        client: &ClientId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Claims the single probe of an expired circuit by replacing the expiry `seen` with `until`. Of concurrent
    /// callers one gets `true`.
    fn claim_probe(
        &self,
        client: &ClientId,
        seen: Option<Timestamp>,
        until: Timestamp,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Disables the client if it is enabled.
    fn disable(
        &self,
        client: &ClientId,
        reason: &str,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Subject of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Subject {
    Client(ClientId),
    Sensor(SensorId),
}

/// Query of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Client or sensor.
    pub subject: Subject,
    /// Events at or after this time.
    pub from: Option<Timestamp>,
    /// Events before this time.
    pub to: Option<Timestamp>,
    /// Deliveries with this status. Pages may then hold fewer entries than requested, or none.
    pub status: Option<Status>,
    /// Oldest first instead of newest first.
    pub oldest_first: bool,
    /// Entries per page.
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
}

/// History of deliveries.
///
/// Laws: the history of a client sees every earlier completed write; that of a sensor may lag behind.
pub trait History: Send + Sync {
    /// Returns a delivery.
    fn get(
        &self,
        id: &DeliveryId,
    ) -> impl Future<Output = Result<Option<DeliveryRecord>, StoreError>> + Send;

    /// Lists deliveries, one page per call.
    fn list(
        &self,
        query: &HistoryQuery,
        cursor: Option<&Cursor>,
    ) -> impl Future<Output = Result<Page<DeliveryRecord>, StoreError>> + Send;

    /// Records that a delivery was queued in a new round, unless that round already has a result.
    fn requeued(
        &self,
        delivery: &Delivery,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// A request to an endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Post<'a> {
    /// URL of the endpoint.
    pub url: &'a str,
    /// `webhook-id`.
    pub id: &'a DeliveryId,
    /// `webhook-timestamp`.
    pub now: Timestamp,
    /// Secrets; the request has one signature for each.
    pub secrets: &'a [&'a Secret],
    /// JSON.
    pub body: &'a str,
}

/// Response of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct HttpResponse {
    /// The HTTP status.
    pub status: u16,
    pub retry_after: Option<Duration>,
}

/// Error of a request without a response.
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
    /// Sends one request.
    fn post(&self, post: Post<'_>) -> impl Future<Output = Result<HttpResponse, PostError>> + Send;
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
    ) -> impl Future<Output = Result<(), String>> + Send;
}
