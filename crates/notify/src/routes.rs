//! Where each registration's notifications go. Registrations that name the same queue share a channel, so
//! that their messages fill batches together.

use std::collections::HashMap;
use std::sync::Arc;

use antumbra_registration::{Change, Registration, RegistrationId, Registrations, Target};
use antumbra_service::notifications::{Channel, ChannelLimits, Message};

use crate::deliveries::{ClientsRoute, Places};

/// Makes channels.
pub trait ChannelFactory: Send + Sync {
    /// The channel to a target, or `None` if there is no way to it. Nothing is called yet.
    fn channel(&self, target: &Target) -> Option<Arc<dyn Channel>>;

    /// How to reach the clients linked to sensors, or `None` if there is no way to them.
    fn clients(&self) -> Option<ClientsRoute> {
        None
    }

    /// The queue for what can never be sent.
    fn undeliverable(&self) -> Arc<dyn Channel>;
}

/// A registration whose target cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("registration {registration}: this listener cannot send to {target}")]
pub struct RouteError {
    registration: String,
    target: &'static str,
}

/// All channels, and which registration uses which.
pub(crate) struct Routes {
    pub(crate) channels: Vec<Arc<dyn Channel>>,
    limits: Vec<ChannelLimits>,
    by_registration: HashMap<RegistrationId, usize>,
    clients: Option<(ClientsRoute, Places)>,
    /// Whether any registration in force asks for what is made of both documents of a shadow.
    pub(crate) of_shadows: bool,
}

impl Routes {
    pub(crate) fn new(
        registrations: &Registrations,
        connect: &dyn ChannelFactory,
    ) -> Result<Routes, RouteError> {
        let mut routes = Routes {
            channels: Vec::new(),
            limits: Vec::new(),
            by_registration: HashMap::new(),
            clients: None,
            of_shadows: false,
        };
        let mut known: HashMap<(&str, &str), usize> = HashMap::new();
        for (id, registration) in registrations
            .iter()
            .filter(|(_, registration)| registration.enabled)
        {
            routes.of_shadows |= registration.form.is_of_shadows();
            let unserved = || RouteError {
                registration: registration.name.to_string(),
                target: registration.to.kind(),
            };
            if matches!(registration.to, Target::Clients(_)) {
                if routes.clients.is_none() {
                    let route = connect.clients().ok_or_else(unserved)?;
                    routes.open_clients(route);
                }
                continue;
            }
            let place = (
                registration.to.kind(),
                registration.to.properties().address(),
            );
            let channel = match known.get(&place) {
                Some(&channel) => channel,
                None => {
                    let channel = connect.channel(&registration.to).ok_or_else(unserved)?;
                    routes.limits.push(channel.limits());
                    routes.channels.push(channel);
                    known.insert(place, routes.channels.len() - 1);
                    routes.channels.len() - 1
                }
            };
            routes.by_registration.insert(id, channel);
        }
        Ok(routes)
    }

    fn open_clients(&mut self, route: ClientsRoute) {
        let mut open = |channel: &Arc<dyn Channel>| {
            self.limits.push(channel.limits());
            self.channels.push(Arc::clone(channel));
            self.channels.len() - 1
        };
        let places = Places {
            ordered: open(&route.queues.ordered),
            unordered: open(&route.queues.unordered),
        };
        self.clients = Some((route, places));
    }

    /// How to reach linked clients, if a registration in force asks for it.
    pub(crate) fn clients(&self) -> Option<(&ClientsRoute, Places)> {
        let (route, places) = self.clients.as_ref()?;
        Some((route, *places))
    }

    /// The channel of a registration in force, unless it tells clients; `plan` names no others.
    pub(crate) fn channel(&self, id: RegistrationId) -> Option<usize> {
        self.by_registration.get(&id).copied()
    }

    /// How many bytes of body a registration's channel takes beside this much of attributes.
    pub(crate) fn body_limit(&self, channel: usize, attributes: usize) -> usize {
        self.limits[channel]
            .message_bytes
            .saturating_sub(attributes)
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
