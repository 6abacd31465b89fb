//! An MQTT 5 broker that says what a test wants, and remembers what it was sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) connection: usize,
    pub(crate) topic: String,
    pub(crate) payload: String,
    pub(crate) qos: u8,
}

/// What to do with a message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// Acknowledges it with this reason code; 0 is success.
    Acknowledge(u8),
    /// Ends the connection with this reason code.
    Disconnect(u8),
    /// Closes the connection without a word.
    HangUp,
    /// Says nothing.
    Silence,
}

/// A running broker.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    published: Arc<Mutex<Vec<Published>>>,
}

impl Scripted {
    /// Lets everybody in.
    pub(crate) async fn start(
        script: impl Fn(&Published) -> Answer + Send + Sync + 'static,
    ) -> Scripted {
        Scripted::admitting(0, script).await
    }

    /// Answers a connection with this reason code; 0 is success.
    pub(crate) async fn admitting(
        reason: u8,
        script: impl Fn(&Published) -> Answer + Send + Sync + 'static,
    ) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let published = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&published);
        tokio::spawn(async move {
            let mut connection = 0;
            while let Ok((stream, _)) = listener.accept().await {
                // One at a time is enough, and keeps what is heard in order.
                serve(stream, connection, reason, &script, &heard).await;
                connection += 1;
            }
        });
        Scripted { address, published }
    }

    pub(crate) fn published(&self) -> Vec<Published> {
        self.published.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    reason: u8,
    script: &impl Fn(&Published) -> Answer,
    heard: &Mutex<Vec<Published>>,
) {
    while let Some((kind, body)) = packet(&mut stream).await {
        let answer = match kind >> 4 {
            // CONNECT: no session, this reason, no properties.
            1 => vec![0x20, 3, 0, reason, 0],
            3 => {
                let (published, id) = publish(connection, kind, &body);
                let answer = script(&published);
                heard.lock().unwrap().push(published);
                match answer {
                    Answer::Acknowledge(_) if id.is_empty() => continue,
                    Answer::Acknowledge(reason) => [&[0x40, 4], &id[..], &[reason, 0]].concat(),
                    Answer::Disconnect(reason) => vec![0xE0, 2, reason, 0],
                    Answer::HangUp => return,
                    Answer::Silence => continue,
                }
            }
            _ => continue,
        };
        if stream.write_all(&answer).await.is_err() {
            return;
        }
    }
}

async fn packet(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let kind = stream.read_u8().await.ok()?;
    let (mut length, mut shift) = (0, 0);
    loop {
        let byte = stream.read_u8().await.ok()?;
        length |= usize::from(byte & 0x7F) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((kind, body))
}

/// A PUBLISH packet, and the packet id of QoS 1.
fn publish(connection: usize, kind: u8, body: &[u8]) -> (Published, Vec<u8>) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let topic_length = usize::from(u16::from_be_bytes([body[0], body[1]]));
    let (topic, rest) = body[2..].split_at(topic_length);
    let qos = (kind >> 1) & 3;
    let (id, rest) = rest.split_at(if qos == 0 { 0 } else { 2 });
    assert_eq!(rest[0], 0, "no properties");
    let published = Published {
        connection,
        topic: text(topic),
        payload: text(&rest[1..]),
        qos,
    };
    (published, id.to_vec())
}
