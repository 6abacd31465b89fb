//! Failed messages and their redrive.

use serde::Serialize;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

use super::Time;

/// A queue of failed messages.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct FailedQueue {
    /// Name, as in the path of its messages.
    pub name: &'static str,
    /// Number of messages that can be received, approximately.
    pub messages: u64,
    /// Number of messages that were received a moment ago and are hidden, approximately.
    pub hidden: u64,
}

/// All queues of failed messages.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct FailedQueues {
    /// The queues.
    pub queues: Vec<FailedQueue>,
}

/// A failed message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct FailedMessage {
    /// Message id of SQS.
    pub id: String,
    /// Name of the SQS queue.
    pub queue: String,
    /// Reason why it failed.
    pub reason: String,
    /// More about the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The destination of a redrive, or the reason why it stays.
    pub route: String,
    /// Time at which it was sent to the queue; for a dead letter, to its source.
    pub sent_at: Time,
    /// Text of the message.
    pub body: String,
}

/// Some messages of a queue, in no particular order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct FailedMessages {
    /// The messages. They stay in the queue.
    pub messages: Vec<FailedMessage>,
    /// The queue may hold others.
    pub has_more: bool,
}

/// The result of a redrive for messages of one kind, or the result that it would have.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct RedriveResult {
    /// Number of messages.
    pub count: usize,
    /// Reason why they failed.
    pub reason: String,
    /// Their destination, or the reason why they stay.
    pub route: String,
    /// `moved`, `deleted`, `left`, `failed`, or of a plan `planned`.
    pub outcome: &'static str,
    /// Reason why they could not be moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The result of a redrive.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct RedriveResults {
    /// Results by reason, route and outcome.
    pub results: Vec<RedriveResult>,
    /// The queue may hold messages that this redrive did not receive; repeat it.
    pub has_more: bool,
}
