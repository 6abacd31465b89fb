//! Sending again what was parked, once the reason is gone.
//!
//! A notification goes where its registration says today, under the id it had: who got it before knows it.
//! It comes after newer ones of its key, which its version tells.

use std::collections::BTreeMap;
use std::sync::Arc;

use antumbra_registration::{Registration, Registrations, Target};
use antumbra_service::clock::Clock;
use antumbra_service::notifications::{Channel, Message, SendFailure, dispatch_one};
use antumbra_shadow::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::routes::{ChannelFactory, apply_target_options};

/// What lies in the undeliverable queue of a notification, or of a record that never became one.
#[derive(Debug, Deserialize)]
pub struct UndeliverableNotification {
    /// Why it was parked.
    pub reason: String,
    /// Whose it is.
    pub registration: Option<String>,
    /// The key of the item that changed.
    #[serde(default)]
    pub key: String,
    notification: Option<Box<RawValue>>,
    message: Option<Wrapping>,
}

#[derive(Debug, Deserialize)]
struct Wrapping {
    id: String,
    topic: Option<String>,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
}

/// Why a notification was not sent again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResendError {
    /// There is nothing to send.
    #[error("it holds no notification: what changed is in the table")]
    Nothing,
    /// Nobody wants it any more.
    #[error("no registration in force is called {0}")]
    NoRegistration(String),
    /// Its target cannot be reached from here.
    #[error("there is no way from here to {0}")]
    NoWay(&'static str),
    /// It is refused again.
    #[error("refused again: {0}")]
    Refused(String),
    /// It may or may not have arrived.
    #[error("no answer in time")]
    NoAnswer,
}

impl UndeliverableNotification {
    /// Reads a message of the undeliverable queue; `None` if it is not the listener's.
    pub fn read(text: &str) -> Option<UndeliverableNotification> {
        #[derive(Deserialize)]
        struct Of<'a> {
            #[serde(borrow)]
            record: Option<&'a RawValue>,
        }
        serde_json::from_str::<Of<'_>>(text).ok()?.record?;
        serde_json::from_str(text).ok()
    }

    /// Whether there is something to send.
    pub fn is_whole(&self) -> bool {
        self.registration.is_some() && self.notification.is_some() && self.message.is_some()
    }

    /// Sends it to wherever its registration says.
    pub async fn send(
        &self,
        registrations: &Registrations,
        channels: &dyn ChannelFactory,
        deadline: Timestamp,
        clock: &dyn Clock,
    ) -> Result<(), ResendError> {
        let (Some(name), Some(notification), Some(wrapping)) =
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
            .ok_or_else(|| ResendError::NoWay(registration.to.kind()))?;
        let mut message = Message {
            id: wrapping.id.clone(),
            key: self.key.clone(),
            body: notification.get().to_owned(),
            attributes: wrapping.attributes.clone().into_iter().collect(),
            topic: wrapping.topic.clone(),
            ..Message::default()
        };
        apply_target_options(&mut message, registration);
        let sent = dispatch_one(channel, message, deadline, clock).await;
        sent.map_err(|unsent| match unsent {
            SendFailure::Rejected(reason) => ResendError::Refused(reason),
            SendFailure::Late => ResendError::NoAnswer,
        })
    }
}

/// Deliveries to clients all go in order: whether a client wants only the latest is asked again when its
/// turn comes.
fn channel(registration: &Registration, channels: &dyn ChannelFactory) -> Option<Arc<dyn Channel>> {
    match &registration.to {
        Target::Clients(_) => Some(channels.clients()?.queues.ordered),
        target => channels.channel(target),
    }
}
