//! An MQTT 3.1.1 session, with the local broker or AWS IoT.
//!
//! There is no background task: packets are read while the command waits for one.

mod sign;
mod transport;

use std::collections::VecDeque;
use std::time::Duration;

use antumbra_wire::topic_prefix::TopicPrefix;
use bytes::{Bytes, BytesMut};
use rumqttc::mqttbytes::v4::{
    Connect, ConnectReturnCode, Packet, PubAck, Publish, Subscribe, SubscribeReasonCode,
};
use rumqttc::mqttbytes::{Error as PacketError, QoS};
use tokio::time::{Instant, timeout_at};

use crate::error::CliError;
pub(crate) use transport::Broker;
use transport::Transport;

/// Maximum size of a packet: a payload of 128 KB with its topic.
const PACKET_BYTES: usize = 256 * 1024;
/// Time after which a request is published again. A subscription at AWS IoT can become active a moment after
/// it was acknowledged; then the first response is missed.
const REPEAT_REQUEST: Duration = Duration::from_secs(3);
/// Keep-alive interval, longer than any command runs.
const KEEP_ALIVE_SECONDS: u16 = 1200;

/// Makes the client id of a session.
pub(crate) fn new_client_id() -> String {
    format!("antumbra-{}", uuid::Uuid::new_v4())
}

pub(crate) struct Session {
    transport: Transport,
    /// Prefix of all topics: added to those that are sent, removed from those that are received.
    topic_prefix: TopicPrefix,
    read: BytesMut,
    received: VecDeque<Publish>,
    last_packet_id: u16,
    deadline: Instant,
}

impl Session {
    /// Connects. The timeout applies to the whole session.
    pub(crate) async fn open(
        broker: &Broker,
        client_id: &str,
        topic_prefix: &TopicPrefix,
        timeout: Duration,
    ) -> Result<Session, CliError> {
        let deadline = Instant::now() + timeout;
        let connecting = timeout_at(deadline, Transport::open(broker));
        let transport = connecting
            .await
            .map_err(|_| cannot_connect(broker, "timeout"))?
            .map_err(|reason| cannot_connect(broker, &reason))?;
        let mut session = Session {
            transport,
            topic_prefix: topic_prefix.clone(),
            read: BytesMut::new(),
            received: VecDeque::new(),
            last_packet_id: 0,
            deadline,
        };
        let mut connect = Connect::new(client_id);
        connect.keep_alive = KEEP_ALIVE_SECONDS;
        session.send(Packet::Connect(connect)).await?;
        match session.packet(deadline).await? {
            Some(Packet::ConnAck(ack)) if ack.code == ConnectReturnCode::Success => Ok(session),
            Some(Packet::ConnAck(ack)) => Err(cannot_connect(broker, rejection(ack.code))),
            _ => Err(cannot_connect(broker, "the server does not speak MQTT")),
        }
    }

    pub(crate) async fn subscribe(&mut self, topic: &str) -> Result<(), CliError> {
        let mut subscribe = Subscribe::new(self.topic_prefix.add(topic), QoS::AtLeastOnce);
        subscribe.pkid = self.next_packet_id();
        self.send(Packet::Subscribe(subscribe)).await?;
        loop {
            match self.packet(self.deadline).await? {
                Some(Packet::SubAck(ack)) => {
                    let granted = |code: &SubscribeReasonCode| {
                        matches!(code, SubscribeReasonCode::Success(_))
                    };
                    if ack.return_codes.iter().all(granted) {
                        return Ok(());
                    }
                    let reason = format!("the broker rejected the subscription to {topic}");
                    return Err(CliError::unavailable(reason));
                }
                Some(Packet::Publish(message)) => self.receive(message).await?,
                Some(_) => {}
                None => return Err(timed_out()),
            }
        }
    }

    /// Publishes with QoS 1 without waiting for the acknowledgement: a response confirms it.
    pub(crate) async fn publish(&mut self, topic: &str, payload: &str) -> Result<(), CliError> {
        let mut publish = Publish::new(self.topic_prefix.add(topic), QoS::AtLeastOnce, payload);
        publish.pkid = self.next_packet_id();
        self.send(Packet::Publish(publish)).await
    }

    /// Publishes with QoS 1 and waits for the acknowledgement.
    pub(crate) async fn publish_and_wait(
        &mut self,
        topic: &str,
        payload: &str,
    ) -> Result<(), CliError> {
        self.publish(topic, payload).await?;
        let id = self.last_packet_id;
        loop {
            match self.packet(self.deadline).await? {
                Some(Packet::PubAck(ack)) if ack.pkid == id => return Ok(()),
                Some(Packet::Publish(message)) => self.receive(message).await?,
                Some(_) => {}
                None => return Err(timed_out()),
            }
        }
    }

    /// Returns the next message, or `None` if none arrives until then.
    pub(crate) async fn next(&mut self, until: Instant) -> Result<Option<Publish>, CliError> {
        loop {
            if let Some(message) = self.received.pop_front() {
                return Ok(Some(message));
            }
            match self.packet(until.min(self.deadline)).await? {
                Some(Packet::Publish(message)) => self.receive(message).await?,
                Some(_) => {}
                None if Instant::now() >= self.deadline => return Err(timed_out()),
                None => return Ok(None),
            }
        }
    }

    /// Publishes a request until its response arrives. The request must be idempotent.
    pub(crate) async fn request(
        &mut self,
        topic: &str,
        payload: &str,
        response_topic: &str,
    ) -> Result<Bytes, CliError> {
        self.subscribe(response_topic).await?;
        loop {
            self.publish(topic, payload).await?;
            let repeat = Instant::now() + REPEAT_REQUEST;
            while let Some(message) = self.next(repeat).await? {
                if message.topic == response_topic {
                    return Ok(message.payload);
                }
            }
        }
    }

    /// Disconnects. The work is done, so a failure does not matter.
    pub(crate) async fn close(mut self) {
        let _ = self.send(Packet::Disconnect).await;
    }

    async fn receive(&mut self, mut message: Publish) -> Result<(), CliError> {
        if let Some(topic) = self.topic_prefix.strip(&message.topic) {
            message.topic = topic.to_owned();
        }
        if message.qos != QoS::AtMostOnce {
            self.send(Packet::PubAck(PubAck::new(message.pkid))).await?;
        }
        self.received.push_back(message);
        Ok(())
    }

    fn next_packet_id(&mut self) -> u16 {
        self.last_packet_id = self.last_packet_id.checked_add(1).unwrap_or(1);
        self.last_packet_id
    }

    async fn send(&mut self, packet: Packet) -> Result<(), CliError> {
        let mut bytes = BytesMut::new();
        packet
            .write(&mut bytes, PACKET_BYTES)
            .map_err(|fault| CliError::invalid(format!("MQTT: {fault}")))?;
        let sent = timeout_at(self.deadline, self.transport.send(bytes.freeze())).await;
        sent.map_err(|_| timed_out())?.map_err(connection_lost)
    }

    /// Returns the next packet, or `None` if none arrives until then.
    async fn packet(&mut self, until: Instant) -> Result<Option<Packet>, CliError> {
        loop {
            match Packet::read(&mut self.read, PACKET_BYTES) {
                Ok(packet) => return Ok(Some(packet)),
                Err(PacketError::InsufficientBytes(_)) => {}
                Err(fault) => return Err(connection_lost(fault.to_string())),
            }
            match timeout_at(until, self.transport.receive(&mut self.read)).await {
                Ok(received) => received.map_err(connection_lost)?,
                Err(_) => return Ok(None),
            }
        }
    }
}

fn cannot_connect(broker: &Broker, reason: &str) -> CliError {
    let hint = match broker {
        Broker::Tcp(_) => "; for the local stack, start `antumbra local`",
        _ => "",
    };
    CliError::unavailable(format!("cannot connect to {broker}: {reason}{hint}"))
}

fn rejection(code: ConnectReturnCode) -> &'static str {
    match code {
        ConnectReturnCode::Success => "accepted",
        ConnectReturnCode::RefusedProtocolVersion => "the broker does not support MQTT 3.1.1",
        ConnectReturnCode::BadClientId => "the broker rejects the client id",
        ConnectReturnCode::ServiceUnavailable => "the broker is unavailable",
        ConnectReturnCode::BadUserNamePassword => "the broker rejects the credentials",
        ConnectReturnCode::NotAuthorized => "the broker does not permit the connection",
    }
}

fn connection_lost(reason: String) -> CliError {
    CliError::unavailable(format!("the MQTT connection was lost: {reason}"))
}

fn timed_out() -> CliError {
    CliError::unavailable("no response within --timeout")
}
