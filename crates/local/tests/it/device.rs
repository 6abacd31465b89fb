//! MQTT clients for the tests, one per protocol version with the same methods.

macro_rules! device {
    ($version:ident, $($client:ident)::+, $($packets:ident)::+) => {
        pub(crate) mod $version {
            use std::{collections::VecDeque, net::SocketAddr};

            use rumqttc::Outgoing;
            use tokio::{sync::mpsc, task::JoinHandle};

            pub(crate) use $($client)::+::{AsyncClient, Event, MqttOptions};
            pub(crate) use $($packets)::+::{LastWill, Packet, Publish, QoS};

            use crate::support::soon;

            pub(crate) struct Device {
                pub(crate) client: AsyncClient,
                packets: mpsc::UnboundedReceiver<Packet>,
                /// Messages received while waiting for something else.
                messages: VecDeque<Publish>,
                connection: JoinHandle<()>,
            }

            impl Device {
                /// Connects as this client with changed options.
                pub(crate) async fn with(
                    broker: SocketAddr,
                    id: &str,
                    set: impl FnOnce(&mut MqttOptions),
                ) -> Self {
                    let mut options = MqttOptions::new(id, broker.ip().to_string(), broker.port());
                    set(&mut options);
                    let (client, mut events) = AsyncClient::new(options, 10);
                    let (sender, packets) = mpsc::unbounded_channel();
                    let connection = tokio::spawn(async move {
                        while let Ok(event) = events.poll().await {
                            match event {
                                Event::Incoming(packet) => drop(sender.send(packet)),
                                Event::Outgoing(Outgoing::Disconnect) => break,
                                Event::Outgoing(_) => {}
                            }
                        }
                    });
                    let messages = VecDeque::new();
                    let mut device = Self { client, packets, messages, connection };
                    device.until("CONNACK", |p| matches!(p, Packet::ConnAck(..))).await;
                    device
                }

                pub(crate) async fn new(broker: SocketAddr, id: &str) -> Self {
                    Self::with(broker, id, |_| {}).await
                }

                async fn until(&mut self, what: &str, wanted: impl Fn(&Packet) -> bool) -> Packet {
                    loop {
                        let packet = soon(what, self.packets.recv()).await;
                        let packet = packet.unwrap_or_else(|| panic!("closed before {what}"));
                        if wanted(&packet) {
                            return packet;
                        }
                        if let Packet::Publish(message) = packet {
                            self.messages.push_back(message);
                        }
                    }
                }

                pub(crate) async fn subscribe(&mut self, filter: &str) {
                    self.client.subscribe(filter, QoS::AtLeastOnce).await.unwrap();
                    self.until("SUBACK", |p| matches!(p, Packet::SubAck(..))).await;
                }

                /// Publishes with QoS 1 and waits for the acknowledgement.
                pub(crate) async fn publish(&mut self, topic: &str, retain: bool, payload: &str) {
                    let payload = payload.to_owned();
                    self.client.publish(topic, QoS::AtLeastOnce, retain, payload).await.unwrap();
                    self.until("PUBACK", |p| matches!(p, Packet::PubAck(..))).await;
                }

                pub(crate) async fn next(&mut self) -> Publish {
                    if let Some(message) = self.messages.pop_front() {
                        return message;
                    }
                    let message = |p: &Packet| matches!(p, Packet::Publish(..));
                    match self.until("a message", message).await {
                        Packet::Publish(message) => message,
                        _ => unreachable!(),
                    }
                }

                /// Returns the payload of the next message as text.
                pub(crate) async fn text(&mut self) -> String {
                    String::from_utf8(self.next().await.payload.to_vec()).unwrap()
                }

                /// Waits until the connection is closed.
                pub(crate) async fn closed(mut self) {
                    let drained = async { while self.packets.recv().await.is_some() {} };
                    soon("the end of the connection", drained).await;
                }

                /// Disconnects regularly.
                pub(crate) async fn leave(self) {
                    self.client.disconnect().await.unwrap();
                    self.closed().await;
                }

                /// Drops the connection without a DISCONNECT.
                pub(crate) fn vanish(self) {
                    self.connection.abort();
                }
            }
        }
    };
}

/// Types of MQTT 5 where `rumqttc` has those of MQTT 3.
mod v5_packets {
    pub(crate) use rumqttc::v5::mqttbytes::QoS;
    pub(crate) use rumqttc::v5::mqttbytes::v5::{LastWill, Packet, Publish};
}

device!(v4, rumqttc, rumqttc);
device!(v5, rumqttc::v5, super::v5_packets);
