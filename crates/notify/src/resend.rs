//! Sends an undeliverable notification again, once the reason is resolved.
//!
//! It goes to the current target of its registration, with its old id, so that receivers recognise duplicates. It may
//! arrive after newer notifications of its key; receivers compare versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use antumbra_registration::{Registration, Registrations, Target};
use antumbra_service::clock::Clock;
use antumbra_service::notifications::{Channel, Message, SendFailure, dispatch_one};
use antumbra_shadow::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::routes::{ChannelFactory, apply_target_options};

/// A message of the undeliverable queue: a notification, or a record that never became one.
#[derive(Debug, Deserialize)]
pub struct UndeliverableNotification {
    pub reason: String,
    pub registration: Option<String>,
    #[serde(default)]
    pub key: String,
    notification: Option<Box<RawValue>>,
    message: Option<Envelope>,
}

#[derive(Debug, Deserialize)]
struct Envelope {
    id: String,
    topic: Option<String>,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResendError {
    #[error("the message contains no notification; the table has the changed item")]
    Nothing,
    #[error("there is no enabled registration {0}")]
    NoRegistration(String),
    #[error("the target {0} is not supported")]
    UnsupportedTarget(&'static str),
    #[error("rejected again: {0}")]
    Rejected(String),
    /// The result is not known; it may have arrived.
    #[error("timed out")]
    TimedOut,
}

impl UndeliverableNotification {
    /// Parses a message of the undeliverable queue; `None` if another function sent it.
    pub fn parse(text: &str) -> Option<UndeliverableNotification> {
        #[derive(Deserialize)]
        struct Origin<'a> {
            #[serde(borrow)]
            record: Option<&'a RawValue>,
        }
        serde_json::from_str::<Origin<'_>>(text).ok()?.record?;
        serde_json::from_str(text).ok()
    }

    /// Returns `true` if it contains the notification and all that is needed to send it.
    pub fn is_complete(&self) -> bool {
        self.registration.is_some() && self.notification.is_some() && self.message.is_some()
    }

    pub async fn send(
        &self,
        registrations: &Registrations,
        channels: &dyn ChannelFactory,
        deadline: Timestamp,
        clock: &dyn Clock,
    ) -> Result<(), ResendError> {
        let (Some(name), Some(notification), Some(envelope)) =
            (&self.registration, &self.notification, &self.message)
        else {
            return Err(ResendError::Nothing);
        };
        let registration = registrations
            .iter()
            .map(|(_, registration)| registration)
            .find(|registration| registration.enabled && *registration.name == **name)
            .ok_or_else(|| ResendError::NoRegistration(name.clone()))?;
        let channel = channel(registration, channels)
            .ok_or_else(|| ResendError::UnsupportedTarget(registration.to.kind()))?;
        let mut message = Message {
            id: envelope.id.clone(),
            key: self.key.clone(),
            body: notification.get().to_owned(),
            attributes: envelope.attributes.clone().into_iter().collect(),
            topic: envelope.topic.clone(),
            ..Message::default()
        };
        apply_target_options(&mut message, registration);
        let sent = dispatch_one(channel, message, deadline, clock).await;
        sent.map_err(|unsent| match unsent {
            SendFailure::Rejected(reason) => ResendError::Rejected(reason),
            SendFailure::Late => ResendError::TimedOut,
        })
    }
}

/// All deliveries to clients go to the ordered queue. The mode of the client is read again at the attempt.
fn channel(registration: &Registration, channels: &dyn ChannelFactory) -> Option<Arc<dyn Channel>> {
    match &registration.to {
        Target::Clients(_) => Some(channels.clients()?.queues.ordered),
        target => channels.channel(target),
    }
}
