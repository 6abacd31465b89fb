//! Routes: the channel of each registration. Registrations with the same target address share a channel, so that
//! their messages fill batches together.

use std::collections::HashMap;
use std::sync::Arc;

use antumbra_registration::{Change, Registration, RegistrationId, Registrations, Target};
use antumbra_service::notifications::{Channel, Message};

use crate::deliveries::{ClientsRoute, QueueChannels};
use crate::spill::ENVELOPE_BYTES;

pub trait ChannelFactory: Send + Sync {
    /// The channel of a target; `None` if this factory does not support it. Calls nothing yet.
    fn channel(&self, target: &Target) -> Option<Arc<dyn Channel>>;

    /// Access to linked clients; `None` if this factory does not support the target `clients`.
    fn clients(&self) -> Option<ClientsRoute> {
        None
    }

    fn undeliverable(&self) -> Arc<dyn Channel>;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("registration {registration}: the target {target} is not supported by this listener")]
pub struct RouteError {
    registration: String,
    target: &'static str,
}

#[derive(Default)]
pub(crate) struct Routes {
    pub(crate) channels: Vec<Arc<dyn Channel>>,
    by_registration: HashMap<RegistrationId, Route>,
    clients: Option<(ClientsRoute, QueueChannels)>,
    /// `true` if an enabled registration needs messages of both documents of a shadow.
    pub(crate) of_shadows: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Route {
    Channel(RoutedChannel),
    /// One message per linked client, to the delivery queues.
    Clients,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RoutedChannel {
    pub(crate) index: usize,
    pub(crate) message_bytes: usize,
}

impl Routes {
    pub(crate) fn new(
        registrations: &Registrations,
        factory: &dyn ChannelFactory,
    ) -> Result<Routes, RouteError> {
        let mut routes = Routes::default();
        let mut opened: HashMap<(&str, &str), RoutedChannel> = HashMap::new();
        let enabled = registrations
            .iter()
            .filter(|(_, registration)| registration.enabled);
        for (id, registration) in enabled {
            routes.of_shadows |= registration.form.is_of_shadows();
            let target = &registration.to;
            let unsupported = || RouteError {
                registration: registration.name.to_string(),
                target: target.kind(),
            };
            let route = if let Target::Clients(_) = target {
                if routes.clients.is_none() {
                    let clients = factory.clients().ok_or_else(unsupported)?;
                    routes.open_clients(clients);
                }
                Route::Clients
            } else {
                let place = (target.kind(), target.properties().address());
                let channel = match opened.get(&place) {
                    Some(channel) => *channel,
                    None => routes.open(factory.channel(target).ok_or_else(unsupported)?),
                };
                opened.insert(place, channel);
                Route::Channel(channel)
            };
            routes.by_registration.insert(id, route);
        }
        Ok(routes)
    }

    fn open(&mut self, channel: Arc<dyn Channel>) -> RoutedChannel {
        let message_bytes = channel.limits().message_bytes;
        self.channels.push(channel);
        RoutedChannel {
            index: self.channels.len() - 1,
            message_bytes,
        }
    }

    /// Opens the spill queue, and limits all messages to those that it accepts; returns the index of its channel.
    pub(crate) fn open_spill(&mut self, queue: Arc<dyn Channel>) -> usize {
        let spill = self.open(queue);
        let limit = spill.message_bytes.saturating_sub(ENVELOPE_BYTES);
        for route in self.by_registration.values_mut() {
            if let Route::Channel(channel) = route {
                channel.message_bytes = channel.message_bytes.min(limit);
            }
        }
        spill.index
    }

    fn open_clients(&mut self, clients: ClientsRoute) {
        let channels = QueueChannels {
            ordered: self.open(Arc::clone(&clients.queues.ordered)).index,
            unordered: self.open(Arc::clone(&clients.queues.unordered)).index,
        };
        self.clients = Some((clients, channels));
    }

    /// Access to linked clients, if an enabled registration has the target `clients`.
    pub(crate) fn clients(&self) -> Option<(&ClientsRoute, QueueChannels)> {
        let (clients, channels) = self.clients.as_ref()?;
        Some((clients, *channels))
    }

    pub(crate) fn route(&self, id: RegistrationId) -> Option<Route> {
        self.by_registration.get(&id).copied()
    }
}

/// Visits the attributes of a message: those of every notification, then those that the registration adds.
pub(crate) fn each_attribute(
    registration: &Registration,
    change: &Change<'_>,
    mut visit: impl FnMut(&str, &str),
) {
    let Some(added) = registration.to.properties().attributes() else {
        return;
    };
    visit("registration", &registration.name);
    visit("operation", change.operation.as_str());
    if let Some(shadow) = change.shadow {
        visit("state", shadow.state.as_str());
        visit("shadow", shadow.id);
    }
    added.iter().for_each(|(name, value)| visit(name, value));
}

/// Sets the options that the registration's target has for its messages.
pub(crate) fn apply_target_options(message: &mut Message, registration: &Registration) {
    let options = registration.to.properties().options();
    message.delay_seconds = options.delay_seconds;
    message.subject = options.subject.map(str::to_owned);
    message.qos = options.qos;
    message.detail_type = options.detail_type.map(str::to_owned);
}
