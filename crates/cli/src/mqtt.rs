//! Asking over MQTT: subscribe where the answer comes, publish the question, wait.
//!
//! MQTT 3.1.1 as the broker of the local stack and AWS IoT both speak it. Nothing runs beside the command:
//! packets are read when something is waited for.

mod sign;
mod transport;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rumqttc::mqttbytes::v4::{
    Connect, ConnectReturnCode, Packet, PubAck, Publish, Subscribe, SubscribeReasonCode,
};
use rumqttc::mqttbytes::{Error as PacketError, QoS};
use tokio::time::{Instant, timeout_at};

use crate::error::CliError;
pub(crate) use transport::Place;
use transport::Transport;

/// The largest packet read: a payload of 128 KB with its topic.
const PACKET_BYTES: usize = 256 * 1024;
/// How long before a question is asked once more. A subscription at AWS IoT may begin to work a moment
/// after it was acknowledged, and then the first answer is missed.
const ASK_AGAIN: Duration = Duration::from_secs(3);
/// Seconds without a packet after which a broker gives a connection up; a command is done long before.
const KEEP_ALIVE_SECONDS: u16 = 1200;

/// A connection to a broker.
pub(crate) struct Session {
    transport: Transport,
    read: BytesMut,
    heard: VecDeque<Publish>,
    packets: u16,
    until: Instant,
}

impl Session {
    /// Connects; all that follows has to be done within the given time.
    pub(crate) async fn open(place: &Place, patience: Duration) -> Result<Session, CliError> {
        let until = Instant::now() + patience;
        let connecting = timeout_at(until, Transport::open(place));
        let transport = connecting
            .await
            .map_err(|_| unreachable_at(place, "no answer"))?
            .map_err(|reason| unreachable_at(place, &reason))?;
        let mut session = Session {
            transport,
            read: BytesMut::new(),
            heard: VecDeque::new(),
            packets: 0,
            until,
        };
        let mut connect = Connect::new(format!("antumbra-{}", uuid::Uuid::new_v4()));
        connect.keep_alive = KEEP_ALIVE_SECONDS;
        session.send(Packet::Connect(connect)).await?;
        match session.packet(until).await? {
            Some(Packet::ConnAck(answer)) if answer.code == ConnectReturnCode::Success => {
                Ok(session)
            }
            Some(Packet::ConnAck(answer)) => Err(unreachable_at(
                place,
                &format!("refused: {:?}", answer.code),
            )),
            _ => Err(unreachable_at(place, "no MQTT broker answers there")),
        }
    }

    /// Hears what is published to a topic from now on.
    pub(crate) async fn subscribe(&mut self, topic: &str) -> Result<(), CliError> {
        let mut subscribe = Subscribe::new(topic, QoS::AtLeastOnce);
        subscribe.pkid = self.next_packet();
        self.send(Packet::Subscribe(subscribe)).await?;
        loop {
            match self.packet(self.until).await? {
                Some(Packet::SubAck(answer)) => {
                    let granted = |code: &SubscribeReasonCode| {
                        matches!(code, SubscribeReasonCode::Success(_))
                    };
                    if answer.return_codes.iter().all(granted) {
                        return Ok(());
                    }
                    let reason = format!("the broker does not let us subscribe to {topic}");
                    return Err(CliError::unavailable(reason));
                }
                Some(Packet::Publish(message)) => self.hear(message).await?,
                Some(_) => {}
                None => return Err(silence()),
            }
        }
    }

    /// Publishes with QoS 1, and does not wait for the acknowledgement: the answer is one.
    pub(crate) async fn publish(&mut self, topic: &str, payload: &str) -> Result<(), CliError> {
        let mut publish = Publish::new(topic, QoS::AtLeastOnce, payload);
        publish.pkid = self.next_packet();
        self.send(Packet::Publish(publish)).await
    }

    /// The next message, in the time there is; `None` if `until` comes before it.
    pub(crate) async fn next(&mut self, until: Instant) -> Result<Option<Publish>, CliError> {
        loop {
            if let Some(message) = self.heard.pop_front() {
                return Ok(Some(message));
            }
            match self.packet(until.min(self.until)).await? {
                Some(Packet::Publish(message)) => self.hear(message).await?,
                Some(_) => {}
                None if Instant::now() >= self.until => return Err(silence()),
                None => return Ok(None),
            }
        }
    }

    /// Publishes a question until the answer is there. Asking twice must do no harm.
    pub(crate) async fn ask(
        &mut self,
        topic: &str,
        payload: &str,
        answer: &str,
    ) -> Result<Bytes, CliError> {
        self.subscribe(answer).await?;
        loop {
            self.publish(topic, payload).await?;
            let again = Instant::now() + ASK_AGAIN;
            while let Some(message) = self.next(again).await? {
                if message.topic == answer {
                    return Ok(message.payload);
                }
            }
        }
    }

    /// Says goodbye. What was wanted is there, so how that ends is of no interest.
    pub(crate) async fn close(mut self) {
        let _ = self.send(Packet::Disconnect).await;
    }

    async fn hear(&mut self, message: Publish) -> Result<(), CliError> {
        if message.qos != QoS::AtMostOnce {
            self.send(Packet::PubAck(PubAck::new(message.pkid))).await?;
        }
        self.heard.push_back(message);
        Ok(())
    }

    fn next_packet(&mut self) -> u16 {
        self.packets = self.packets.checked_add(1).unwrap_or(1);
        self.packets
    }

    async fn send(&mut self, packet: Packet) -> Result<(), CliError> {
        let mut bytes = BytesMut::new();
        packet
            .write(&mut bytes, PACKET_BYTES)
            .map_err(|fault| CliError::invalid(format!("MQTT: {fault}")))?;
        let sent = timeout_at(self.until, self.transport.send(bytes.freeze())).await;
        sent.map_err(|_| silence())?.map_err(lost)
    }

    /// The next packet; `None` if none comes until then.
    async fn packet(&mut self, until: Instant) -> Result<Option<Packet>, CliError> {
        loop {
            match Packet::read(&mut self.read, PACKET_BYTES) {
                Ok(packet) => return Ok(Some(packet)),
                Err(PacketError::InsufficientBytes(_)) => {}
                Err(fault) => return Err(lost(fault.to_string())),
            }
            match timeout_at(until, self.transport.receive(&mut self.read)).await {
                Ok(received) => received.map_err(lost)?,
                Err(_) => return Ok(None),
            }
        }
    }
}

fn unreachable_at(place: &Place, reason: &str) -> CliError {
    let hint = match place {
        Place::Tcp(_) => "; is `antumbra local` running there?",
        _ => "",
    };
    CliError::unavailable(format!("cannot connect to {place}: {reason}{hint}"))
}

fn lost(reason: String) -> CliError {
    CliError::unavailable(format!("the MQTT connection ended: {reason}"))
}

fn silence() -> CliError {
    CliError::unavailable("no answer came in time")
}
