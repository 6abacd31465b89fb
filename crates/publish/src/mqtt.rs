//! Topics of a plain MQTT 5 broker, for the local stack: no TLS, no AWS.
//!
//! One connection, made when the first message is there and again after it
//! broke. Nothing runs between two calls of `send`, so nothing is sent behind
//! the caller's back: a connection is used only by the call that holds it, and
//! one that failed, or whose call was dropped, is closed with all it had under
//! way. Order is kept as AWS IoT's channel keeps it: one by one, and the rest
//! waits behind a message that is worth another try.

mod meaning;

use std::time::Duration;

use antumbra_service::notifications::{BoxFuture, Channel, ChannelLimits, Message, SendError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt as _;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::PublishProperties;
use rumqttc::v5::{AsyncClient, ConnectionError, Event, EventLoop, Incoming, MqttOptions};
use rumqttc::{NetworkOptions, Outgoing};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::batch::{Sent, held_back, permanent};
use crate::topic;

/// Messages taken at once.
pub const BATCH_COUNT: usize = 10;
/// Bytes of a message.
pub const BYTES: usize = topic::PAYLOAD_BYTES;
/// How long connecting, and the acknowledgement of a message, may take.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// The longest MQTT knows: nothing runs between two calls that could ping.
const KEEP_ALIVE: Duration = Duration::from_secs(u16::MAX as u64);
/// Messages under way at once.
const IN_FLIGHT: u16 = 1;

/// Where a broker is, and who we are to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Ours alone: a broker closes the older of two connections with the same.
    pub client_id: String,
}

/// A broker.
pub struct MqttChannel {
    broker: Broker,
    called: String,
    patience: Duration,
    session: Mutex<Option<Session>>,
}

/// A connection that has nothing under way.
struct Session {
    client: AsyncClient,
    events: EventLoop,
}

impl MqttChannel {
    /// A channel to this broker. Nothing is connected before the first message.
    pub fn new(broker: Broker) -> MqttChannel {
        MqttChannel {
            called: format!("MQTT {}:{}", broker.host, broker.port),
            broker,
            patience: PATIENCE,
            session: Mutex::new(None),
        }
    }

    /// Another patience than [`PATIENCE`].
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> MqttChannel {
        MqttChannel { patience, ..self }
    }

    async fn send_each(&self, messages: &[Message]) -> Vec<Sent> {
        let mut place = self.session.lock().await;
        // Out of its place while it is used: if this call is dropped, the connection is too.
        let mut session = place.take();
        let mut results = Vec::with_capacity(messages.len());
        for message in messages {
            let sent = match held_back(&self.called, &results) {
                Some(waits) => Err(waits),
                None => self.publish(&mut session, message).await,
            };
            results.push(sent);
        }
        *place = session;
        results
    }

    /// Publishes one message; `session` is empty after a failure of the connection.
    async fn publish(&self, session: &mut Option<Session>, message: &Message) -> Sent {
        let topic = topic::of(message).map_err(|reason| permanent(&self.called, &reason))?;
        let properties = properties(message).map_err(|reason| permanent(&self.called, &reason))?;
        let mut open = self.open(session.take()).await?;
        let sent = timeout(self.patience, open.publish(topic, properties, message)).await;
        let answer = sent
            .map_err(|_| self.silence())?
            .map_err(|error| self.broken(&error))?;
        *session = Some(open);
        let refused = |reason| meaning::of_refusal(reason).because(self.say(&reason));
        answer.map_err(refused)
    }

    /// The session if it still lives, else a new one.
    async fn open(&self, session: Option<Session>) -> Result<Session, SendError> {
        if let Some(mut session) = session
            && session.lives().await
        {
            return Ok(session);
        }
        let new = timeout(self.patience, Session::open(&self.broker)).await;
        new.map_err(|_| self.silence())?
            .map_err(|error| self.broken(&error))
    }

    fn silence(&self) -> SendError {
        SendError::Retry(format!("{}: no answer in {:?}", self.called, self.patience))
    }

    fn broken(&self, error: &ConnectionError) -> SendError {
        meaning::of_error(error).because(format!("{}: {error}", self.called))
    }

    fn say(&self, reason: &meaning::Refusal) -> String {
        format!("{}: refused: {reason:?}", self.called)
    }
}

impl Session {
    async fn open(broker: &Broker) -> Result<Session, ConnectionError> {
        let mut options = MqttOptions::new(&broker.client_id, &broker.host, broker.port);
        let mut network = NetworkOptions::new();
        // An acknowledgement is waited for after every message.
        network.set_tcp_nodelay(true);
        options
            .set_keep_alive(KEEP_ALIVE)
            .set_outgoing_inflight_upper_limit(IN_FLIGHT)
            .set_network_options(network);
        let (client, mut events) = AsyncClient::new(options, IN_FLIGHT.into());
        while !matches!(events.poll().await?, Event::Incoming(Incoming::ConnAck(_))) {}
        Ok(Session { client, events })
    }

    /// Whether the broker has not closed it since.
    async fn lives(&mut self) -> bool {
        // The runtime looks at its sockets now, so that one closed while nobody polled is noticed.
        tokio::task::yield_now().await;
        while let Some(polled) = self.events.poll().now_or_never() {
            if polled.is_err() {
                return false;
            }
        }
        true
    }

    /// Publishes, and waits until it is written or, for QoS 1, acknowledged.
    async fn publish(
        &mut self,
        topic: &str,
        properties: PublishProperties,
        message: &Message,
    ) -> Result<Result<(), meaning::Refusal>, ConnectionError> {
        let qos = match message.qos {
            0 => QoS::AtMostOnce,
            _ => QoS::AtLeastOnce,
        };
        let body = message.body.clone();
        // There is room for one, and the topic was checked; else the event loop is gone.
        let client = &self.client;
        let sent = client.try_publish_with_properties(topic, qos, false, body, properties);
        if sent.is_err() {
            return Err(ConnectionError::RequestsDone);
        }
        loop {
            match self.events.poll().await? {
                Event::Outgoing(Outgoing::Publish(_)) if qos == QoS::AtMostOnce => {
                    return Ok(Ok(()));
                }
                Event::Incoming(Incoming::PubAck(answer)) => {
                    return Ok(meaning::of_answer(answer.reason));
                }
                _ => {}
            }
        }
    }
}

fn properties(message: &Message) -> Result<PublishProperties, String> {
    let data = message.correlation_data.as_deref();
    let data = data.map(|data| STANDARD.decode(data)).transpose();
    let data = data.map_err(|fault| format!("the correlation data is not base64: {fault}"))?;
    Ok(PublishProperties {
        correlation_data: data.map(Into::into),
        ..PublishProperties::default()
    })
}

impl Channel for MqttChannel {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: BATCH_COUNT,
            batch_bytes: BATCH_COUNT * BYTES,
            message_bytes: BYTES,
        }
    }

    fn send<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Vec<Sent>> {
        Box::pin(self.send_each(messages))
    }
}

impl std::fmt::Debug for MqttChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MqttChannel")
            .field("broker", &self.broker)
            .finish_non_exhaustive()
    }
}
