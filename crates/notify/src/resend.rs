//! Sends an undeliverable notification again, when it is redriven.
//!
//! It goes to the current target of its registration and keeps its id, so that receivers recognise duplicates. It may
//! arrive after newer notifications of its key; receivers compare versions.

use std::sync::Arc;

use antumbra_registration::{Registration, RegistrationId, Registrations, Target};
use antumbra_service::clock::Clock;
use antumbra_service::notifications::{Channel, Message, SendFailure, dispatch_one};
use antumbra_shadow::Timestamp;

use crate::routes::{ChannelFactory, apply_target_options};
use crate::undeliverable::StoredNotification;

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
    /// The result is unknown; the notification may have arrived.
    #[error("timed out")]
    TimedOut,
}

impl StoredNotification {
    /// Returns `true` if it contains everything that is needed to send the notification.
    pub fn is_complete(&self) -> bool {
        self.registration.is_some() && self.notification.is_some() && self.message.is_some()
    }

    /// Sends the notification to the target of its registration.
    pub async fn send(
        &self,
        registrations: &Registrations,
        channels: &dyn ChannelFactory,
        deadline: Timestamp,
        clock: &dyn Clock,
    ) -> Result<(), ResendError> {
        let (_, registration, message) = self.message(registrations)?;
        let channel = open_channel(registration, channels)
            .ok_or_else(|| ResendError::UnsupportedTarget(registration.to.kind()))?;
        let sent = dispatch_one(channel, message, deadline, clock).await;
        sent.map_err(|unsent| match unsent {
            SendFailure::Rejected(reason) => ResendError::Rejected(reason),
            SendFailure::Late => ResendError::TimedOut,
        })
    }

    /// Returns the registration and the message to send, with the options of the registration's current target.
    pub(crate) fn message<'r>(
        &self,
        registrations: &'r Registrations,
    ) -> Result<(RegistrationId, &'r Registration, Message), ResendError> {
        let (Some(name), Some(notification), Some(envelope)) =
            (&self.registration, &self.notification, &self.message)
        else {
            return Err(ResendError::Nothing);
        };
        let registration = registrations
            .iter()
            .find(|(_, registration)| registration.enabled && *registration.name == **name);
        let (id, registration) =
            registration.ok_or_else(|| ResendError::NoRegistration(name.clone()))?;
        let mut message = Message {
            id: envelope.id.clone(),
            key: self.key.clone(),
            body: notification.get().to_owned(),
            attributes: envelope.attributes.clone().into_iter().collect(),
            topic: envelope.topic.clone(),
            tenant: envelope.tenant.clone(),
            ..Message::default()
        };
        apply_target_options(&mut message, registration);
        Ok((id, registration, message))
    }
}

/// Opens the channel to the target of a registration. Deliveries to clients go to the ordered queue: the mode of the
/// client, which selects the queue of a new delivery, is read again at the attempt.
fn open_channel(
    registration: &Registration,
    channels: &dyn ChannelFactory,
) -> Option<Arc<dyn Channel>> {
    match &registration.to {
        Target::Clients(_) => Some(channels.clients()?.queues.ordered),
        target => channels.channel(target),
    }
}
