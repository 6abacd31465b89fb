//! A channel that records messages and fails as a script says.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use antumbra_service::notifications::{Channel, ChannelLimits, Message, SendError};
use async_trait::async_trait;
use serde_json::Value;

/// Result of sending one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendReply {
    Accept,
    /// The message is accepted, but the response is lost, so that the sender sees a retryable failure.
    LoseResponse,
    /// A retryable failure.
    Throttle,
    /// A permanent failure with this reason.
    Deny(String),
    /// The response contains no result for the message.
    Omit,
    /// The whole call never returns.
    Hang,
}

impl SendReply {
    pub fn deny(reason: &str) -> SendReply {
        SendReply::Deny(reason.to_owned())
    }
}

type Script = Box<dyn FnMut(&Message) -> SendReply + Send>;

/// Limits of SQS.
pub const SQS_LIMITS: ChannelLimits = ChannelLimits {
    batch_count: 10,
    batch_bytes: 1024 * 1024,
    message_bytes: 1024 * 1024,
};

/// Accepts and records all messages until a script decides otherwise. Panics if a call exceeds the limits.
pub struct RecordingChannel(Mutex<State>);

struct State {
    limits: ChannelLimits,
    delay: Duration,
    script: Script,
    calls: Vec<Vec<Message>>,
    accepted: Vec<Message>,
}

impl Default for RecordingChannel {
    /// With the limits of SQS.
    fn default() -> RecordingChannel {
        RecordingChannel::with_limits(SQS_LIMITS.batch_count, SQS_LIMITS.batch_bytes)
    }
}

impl RecordingChannel {
    /// Takes batches of at most `count` messages and `bytes` bytes.
    pub fn with_limits(count: usize, bytes: usize) -> RecordingChannel {
        RecordingChannel(Mutex::new(State {
            limits: ChannelLimits {
                batch_count: count,
                batch_bytes: bytes,
                message_bytes: bytes,
            },
            delay: Duration::ZERO,
            script: Box::new(|_| SendReply::Accept),
            calls: Vec::new(),
            accepted: Vec::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub fn set_limits(&self, limits: ChannelLimits) {
        self.state().limits = limits;
    }

    /// Delays every response by a time of the runtime.
    pub fn set_delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    /// Replies to each message as the script says, from now on.
    pub fn reply(&self, script: impl FnMut(&Message) -> SendReply + Send + 'static) {
        self.state().script = Box::new(script);
    }

    /// Gives the next messages one of these replies each, and accepts all messages after them.
    pub fn reply_next(&self, replies: impl Into<Vec<SendReply>>) {
        let mut replies = replies.into().into_iter();
        self.reply(move |_| replies.next().unwrap_or(SendReply::Accept));
    }

    /// Returns the accepted messages in the order of their arrival.
    pub fn accepted(&self) -> Vec<Message> {
        self.state().accepted.clone()
    }

    /// Returns the messages accepted since the last call.
    pub fn take_accepted(&self) -> Vec<Message> {
        std::mem::take(&mut self.state().accepted)
    }

    /// Rejects all messages with this reason.
    pub fn deny(&self, reason: &'static str) {
        self.reply(move |_| SendReply::deny(reason));
    }

    /// Gives messages whose key contains this text this reply, and accepts the others.
    pub fn reply_to_key(&self, text: &'static str, reply: SendReply) {
        self.reply(move |message| match message.key.contains(text) {
            true => reply.clone(),
            false => SendReply::Accept,
        });
    }

    /// Returns the ids of the accepted messages.
    pub fn ids(&self) -> Vec<String> {
        let state = self.state();
        state.accepted.iter().map(|m| m.id.clone()).collect()
    }

    /// Returns the bodies of the accepted messages.
    pub fn bodies(&self) -> Vec<String> {
        let state = self.state();
        state.accepted.iter().map(|m| m.body.clone()).collect()
    }

    /// Returns the bodies of the accepted messages as JSON.
    pub fn json(&self) -> Vec<Value> {
        let bodies = self.bodies().into_iter();
        bodies
            .map(|body| serde_json::from_str(&body).unwrap())
            .collect()
    }

    /// Returns the value at a JSON pointer in each body, or null.
    pub fn json_at(&self, pointer: &str) -> Vec<Value> {
        let at = |body: Value| body.pointer(pointer).cloned().unwrap_or_default();
        self.json().into_iter().map(at).collect()
    }

    /// Returns text, reason and detail of each quarantined message.
    pub fn quarantined(&self) -> Vec<(String, String, String)> {
        let quarantined = |message: &Message| {
            let attribute = |name| attribute(message, name).unwrap_or_default().to_owned();
            // Needed to redrive the message.
            assert!(!attribute("source").is_empty(), "{message:?}");
            let (reason, detail) = (attribute("reason"), attribute("detail"));
            (message.body.clone(), reason, detail)
        };
        self.state().accepted.iter().map(quarantined).collect()
    }

    /// Returns the messages of each call, accepted or not.
    pub fn calls(&self) -> Vec<Vec<Message>> {
        self.state().calls.clone()
    }
}

#[async_trait]
impl Channel for RecordingChannel {
    fn limits(&self) -> ChannelLimits {
        self.state().limits
    }

    async fn send(&self, messages: &[Message]) -> Vec<Result<(), SendError>> {
        let (delay, replies) = {
            let mut state = self.state();
            assert_within(messages, state.limits);
            state.calls.push(messages.to_vec());
            let replies: Vec<SendReply> = messages.iter().map(&mut state.script).collect();
            for (message, reply) in messages.iter().zip(&replies) {
                if matches!(reply, SendReply::Accept | SendReply::LoseResponse) {
                    state.accepted.push(message.clone());
                }
            }
            (state.delay, replies)
        };
        if replies.contains(&SendReply::Hang) {
            std::future::pending::<()>().await;
        }
        if delay > Duration::ZERO {
            tokio::time::sleep(delay).await;
        }
        replies.into_iter().filter_map(result).collect()
    }
}

fn result(reply: SendReply) -> Option<Result<(), SendError>> {
    match reply {
        SendReply::Accept => Some(Ok(())),
        SendReply::LoseResponse => Some(Err(SendError::Retry("response lost".to_owned()))),
        SendReply::Throttle => Some(Err(SendError::Retry("throttled".to_owned()))),
        SendReply::Deny(reason) => Some(Err(SendError::Permanent(reason))),
        SendReply::Omit | SendReply::Hang => None,
    }
}

/// Services reject a call that exceeds their limits as a whole.
fn assert_within(messages: &[Message], limits: ChannelLimits) {
    let bytes: usize = messages.iter().map(Message::bytes).sum();
    assert!((1..=limits.batch_count).contains(&messages.len()));
    assert!(bytes <= limits.batch_bytes, "{bytes} bytes in one call");
    let largest = messages.iter().map(Message::bytes).max();
    assert!(largest <= Some(limits.message_bytes), "{largest:?} bytes");
}

pub fn attribute<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    let mut attributes = message.attributes.iter();
    let found = attributes.find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}
