//! An MQTT broker in the process: versions 3.1.1 and 5 on one port, with the limits of AWS IoT Core.
//!
//! Devices connect over TCP, with or without a user name. The stack publishes with [`Broker::publish`] and
//! subscribes with [`Broker::subscribe`] in place of IoT Core's rules: a subscription receives every accepted
//! message, and no retained ones.
//!
//! The broker is `rmqtt`. `rumqttd` needs one port per protocol version, does not report the port it binds, and runs
//! on threads that cannot be stopped. Sessions and retained messages are kept in memory. Not emulated: TLS, client
//! certificates and policies, rate limits, and `$aws` topics (the stack adds those of shadows).

mod hooks;
mod limits;
mod message;
mod retained;
mod subscriptions;
mod topic_filter;

use std::{net::SocketAddr, num::NonZeroU16, thread, time::Duration};

use rmqtt::{
    codec::types::QoS,
    context::ServerContext,
    net::{Builder, Listener},
    server::MqttServer,
    session::SessionState,
    types::{From as Sender, Id},
};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::listen::{StartError, loopback};
use subscriptions::Subscriptions;

pub use limits::{LimitExceeded, MAX_PAYLOAD_BYTES, MAX_TOPIC_BYTES, MAX_TOPIC_SLASHES};
pub use message::{Message, Properties};
pub use subscriptions::Subscription;
pub use topic_filter::{InvalidFilter, TopicFilter};

const SERVICE: &str = "MQTT";

/// Expiry of a session whose device is disconnected, as in IoT Core.
const SESSION: Duration = Duration::from_secs(60 * 60);

/// Maximum unacknowledged messages of a connection.
const IN_FLIGHT: NonZeroU16 = NonZeroU16::new(100).unwrap();

/// Maximum queued messages for a slow or disconnected device.
const MAX_WAITING: usize = 100_000;

/// A running broker. Dropping it stops it; [`Broker::stop`] also waits.
pub struct Broker {
    publisher: Publisher,
    stop: DropGuard,
    ended: oneshot::Receiver<()>,
}

/// The publishing side of a broker. Clones share the broker and do not keep it running.
#[derive(Clone)]
pub struct Publisher {
    address: SocketAddr,
    context: ServerContext,
    subscriptions: Subscriptions,
}

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    #[error("the broker did not take the message: {0}")]
    Broker(String),
}

/// Listens on a loopback port; 0 is any free one.
pub async fn start(port: u16) -> Result<Broker, StartError> {
    let subscriptions = Subscriptions::default();
    let stop = CancellationToken::new();
    let (started, answer) = oneshot::channel();
    let (ending, ended) = oneshot::channel();
    // The broker spawns tasks that cannot be awaited. They run on their own runtime and end with it.
    let (hooked, stopped) = (subscriptions.clone(), stop.clone());
    let spawned = thread::Builder::new()
        .name("mqtt".to_owned())
        .spawn(move || {
            match tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
            {
                Ok(runtime) => runtime.block_on(run(port, hooked, stopped, started)),
                Err(error) => drop(started.send(Err(start_error(error)))),
            }
            let _ = ending.send(());
        });
    spawned.map_err(start_error)?;
    let (address, context) = answer
        .await
        .map_err(|_| start_error("it ended while starting"))??;
    Ok(Broker {
        publisher: Publisher {
            address,
            context,
            subscriptions,
        },
        stop: stop.drop_guard(),
        ended,
    })
}

type Started = Result<(SocketAddr, ServerContext), StartError>;

async fn run(
    port: u16,
    subscriptions: Subscriptions,
    stop: CancellationToken,
    started: oneshot::Sender<Started>,
) {
    let listener = match listen(port) {
        Ok(listener) => listener,
        Err(error) => return drop(started.send(Err(error))),
    };
    let address = match listener.local_addr() {
        Ok(address) => address,
        Err(error) => return drop(started.send(Err(start_error(error)))),
    };
    let context = ServerContext::new().busy_check_enable(false).build().await;
    hooks::register(&context, subscriptions.clone()).await;
    *context.extends.retain_mut().await = Box::new(retained::Retained::default());
    let server = MqttServer::new(context.clone())
        .listener_by_id(listener, address.port())
        .build();
    if started.send(Ok((address, context))).is_err() {
        return;
    }
    tokio::select! {
        () = stop.cancelled() => {}
        ended = server.run() => {
            if let Err(error) = ended {
                tracing::error!(%error, "MQTT broker failed");
            }
        }
    }
    subscriptions.close();
}

fn listen(port: u16) -> Result<Listener, StartError> {
    let bound = Builder::new()
        .name("mqtt")
        .laddr(loopback(port))
        .reuseaddr(Some(true))
        .nodelay(true)
        .allow_anonymous(true)
        .max_packet_size(limits::MAX_PACKET_BYTES)
        .max_clientid_len(limits::MAX_CLIENT_ID_BYTES)
        .max_qos_allowed(QoS::AtLeastOnce)
        .max_inflight(IN_FLIGHT)
        .max_mqueue_len(MAX_WAITING)
        .session_expiry_interval(SESSION)
        .max_session_expiry_interval(SESSION)
        .message_expiry_interval(SESSION)
        .bind()
        .and_then(Listener::tcp);
    bound.map_err(|error| match error.downcast::<std::io::Error>() {
        Ok(error) => StartError::from_bind(SERVICE, port, error),
        Err(error) => start_error(error),
    })
}

fn start_error(reason: impl ToString) -> StartError {
    StartError::Service {
        service: SERVICE,
        reason: reason.to_string(),
    }
}

impl Broker {
    pub fn address(&self) -> SocketAddr {
        self.publisher.address
    }

    /// Sends a message to every subscriber, over MQTT and in the process.
    pub async fn publish(&self, message: Message) -> Result<(), PublishError> {
        self.publisher.publish(message).await
    }

    pub fn publisher(&self) -> Publisher {
        self.publisher.clone()
    }

    /// Receives every later message on topics that match the filter, until the subscription is dropped.
    pub fn subscribe(&self, filter: TopicFilter) -> Subscription {
        self.publisher.subscriptions.add(filter)
    }

    /// Calls a function for every later message on topics that match the filter, before the broker acknowledges the
    /// message, until it returns `false`.
    pub(crate) fn subscribe_with(
        &self,
        filter: TopicFilter,
        accept: impl Fn(&Message) -> bool + Send + 'static,
    ) {
        self.publisher.subscriptions.call(filter, Box::new(accept));
    }

    /// Closes every connection and stops listening.
    pub async fn stop(self) {
        drop(self.stop);
        // The sender is dropped if the thread has ended already.
        let _ = self.ended.await;
    }
}

impl Publisher {
    pub async fn publish(&self, message: Message) -> Result<(), PublishError> {
        limits::check(&message.topic, &message.payload)?;
        let publisher = Sender::from_system(Id::new(
            self.context.node.id(),
            self.address.port(),
            Some(self.address),
            None,
            message.client_id.clone().unwrap_or_default().into(),
            None,
        ));
        self.subscriptions.offer(&message);
        let expiry = message.properties.expiry();
        SessionState::forwards(&self.context, publisher, message.into(), false, expiry)
            .await
            .map_err(|error| PublishError::Broker(error.to_string()))
    }
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker")
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
