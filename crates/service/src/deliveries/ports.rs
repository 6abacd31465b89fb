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

/// What holds when a delivery has its turn, all of it read anew.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryContext {
    /// The client, if there still is one, and what to sign with.
    pub client: Option<(Client, Secrets)>,
    /// Whether the client is linked to the sensor.
    pub linked: bool,
    /// The number of the newest that occurred at the sensor of those which overtake this one.
    pub newest: Option<u64>,
    /// The latest round in which the client got it.
    pub delivered_round: Option<u32>,
    /// The latest turn of this round that something is written down of; 0 if of none.
    pub last_turn: u32,
}

/// What whoever sends deliveries reads and writes.
///
/// Laws: `standing` sees every write that was answered before it. A record holds every attempt that was
/// recorded, up to a bound, whoever records at the same time; recording never brings a delivered
/// delivery of the same or an earlier round back to another status. The circuit is the client's, but
/// writing it leaves the client's version alone; nothing is written of a client that is gone.
pub trait DeliveryStore: Send + Sync {
    /// Everything a turn is decided by, in one read.
    fn standing(
        &self,
        delivery: &Delivery,
    ) -> impl Future<Output = Result<DeliveryContext, StoreError>> + Send;

    /// Writes down what a turn came to, with its attempt if one was made, behind those of earlier turns
    /// that nothing was written down of.
    fn record(
        &self,
        delivery: &Delivery,
        status: Status,
        attempts: &[Attempt],
        now: Timestamp,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Counts a failure, or several for one that weighs as much, and opens the circuit if a time is given.
    fn note_failure(
        &self,
        client: &ClientId,
        weight: u32,
        open_until: Option<Timestamp>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Closes the circuit.
    fn note_success(
        &self,
        client: &ClientId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Takes the one try that a circuit allows whose time is over, by setting a new time in place of
    /// the one that was seen. Of several at once one gets `true`.
    fn claim_probe(
        &self,
        client: &ClientId,
        seen: Option<Timestamp>,
        until: Timestamp,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Disables the client, if it is enabled.
    fn disable(
        &self,
        client: &ClientId,
        reason: &str,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Whose history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Subject {
    Client(ClientId),
    Sensor(SensorId),
}

/// Which part of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Whose.
    pub subject: Subject,
    /// Only what occurred at or after this time.
    pub from: Option<Timestamp>,
    /// Only what occurred before this time.
    pub to: Option<Timestamp>,
    /// Only those with this status. Pages may then have fewer items than asked for, or none.
    pub status: Option<Status>,
    /// Whether the oldest come first.
    pub oldest_first: bool,
    /// How many on a page.
    pub limit: usize,
}

impl HistoryQuery {
    /// All of it, newest first, in pages of 100.
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

/// What became of deliveries.
///
/// Laws: a client's history sees every write that was answered before; a sensor's may lag a moment.
pub trait History: Send + Sync {
    /// One delivery.
    fn get(
        &self,
        id: &DeliveryId,
    ) -> impl Future<Output = Result<Option<DeliveryRecord>, StoreError>> + Send;

    /// Several, in pages.
    fn list(
        &self,
        query: &HistoryQuery,
        cursor: Option<&Cursor>,
    ) -> impl Future<Output = Result<Page<DeliveryRecord>, StoreError>> + Send;

    /// Notes that a delivery was queued in a new round, unless something became of it in that round
    /// already.
    fn requeued(
        &self,
        delivery: &Delivery,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// A request to an endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Post<'a> {
    /// Where to.
    pub url: &'a str,
    /// `webhook-id`.
    pub id: &'a DeliveryId,
    /// `webhook-timestamp`.
    pub now: Timestamp,
    /// What to sign with: one signature each.
    pub secrets: &'a [&'a Secret],
    /// JSON.
    pub body: &'a str,
}

/// What an endpoint answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The HTTP status.
    pub status: u16,
    /// How long it asks to be left alone.
    pub retry_after: Option<Duration>,
}

/// Why there was no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// None came in time: the endpoint may hang, and so may the next one who tries.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// It could not be reached, broke off, or must not be called.
    #[error("{0}")]
    Failed(String),
}

/// Sends requests to clients' endpoints.
///
/// Laws: one request per call, signed with every secret given; it ends within the sender's own time-out,
/// follows no redirect, reads no more of an answer than it needs, and connects to no address that is
/// not allowed, whatever the name leads to at that moment.
pub trait Sender: Send + Sync {
    /// Sends one request.
    fn post(&self, post: Post<'_>) -> impl Future<Output = Result<HttpAnswer, PostError>> + Send;
}

/// Says when a message of a queue is to come back.
///
/// Law: the message stays hidden for that long from now on, or as long as the queue can hide one; a
/// failure leaves it hidden for as long as the queue hides any.
pub trait MessageVisibility: Send + Sync {
    /// Hides a message, by the queue's ARN and the receipt of this delivery.
    fn postpone(
        &self,
        queue_arn: &str,
        receipt: &str,
        by: Duration,
    ) -> impl Future<Output = Result<(), String>> + Send;
}
