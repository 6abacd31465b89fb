//! A client's endpoint: takes deliveries, answers as told, and remembers what came.
//!
//! Not the local stack's receiver: that one knows its secrets before it starts, and holds signatures to
//! the machine's clock, which the tour moves.

use std::collections::VecDeque;
use std::net::SocketAddr;

use serde_json::Value;
use standardwebhooks::Webhook;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::stage::DemoStack;
use super::story::{DemoFailure, DemoResult};

/// One delivery as it came.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) id: String,
    timestamp: String,
    signature: String,
    body: String,
    /// What it was answered with.
    pub(super) answered: u16,
}

impl Delivery {
    pub(super) fn says(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// Whether the secret's owner has signed exactly this.
    pub(super) fn is_signed_with(&self, secret: &str) -> bool {
        let seconds = self.timestamp.parse().unwrap_or_default();
        let signed = Webhook::new(secret)
            .and_then(|webhook| webhook.sign(&self.id, seconds, self.body.as_bytes()));
        signed.is_ok_and(|signature| signature == self.signature)
    }
}

/// The endpoint, listening until it is dropped.
pub(super) struct Receiver {
    address: SocketAddr,
    deliveries: mpsc::UnboundedReceiver<Delivery>,
}

impl Receiver {
    /// Fails the first deliveries with a 500, and takes all that follow.
    pub(super) async fn start(failures: usize) -> DemoResult<Receiver> {
        let fault = |error: std::io::Error| DemoFailure::of("receiver", error);
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        let (took, deliveries) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut answers: VecDeque<u16> = vec![500; failures].into();
            while let Ok((stream, _)) = listener.accept().await {
                let answer = answers.pop_front().unwrap_or(204);
                let Ok(delivery) = take(stream, answer).await else {
                    continue;
                };
                if took.send(delivery).is_err() {
                    return;
                }
            }
        });
        Ok(Receiver {
            address,
            deliveries,
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(super) async fn next(&mut self, stage: &DemoStack) -> DemoResult<Delivery> {
        let delivery = stage.soon("a delivery", self.deliveries.recv()).await?;
        delivery.ok_or_else(|| DemoFailure("the receiver ended".to_owned()))
    }
}

async fn take(mut stream: TcpStream, answer: u16) -> std::io::Result<Delivery> {
    let mut taken = Vec::new();
    let (head, body_at, length) = loop {
        let mut part = [0; 4096];
        let read = stream.read(&mut part).await?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        taken.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&taken).into_owned();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = header(head, "content-length").parse().unwrap_or(0);
            break (head.to_owned(), head.len() + 4, length);
        }
    };
    let mut rest = vec![0; (body_at + length).saturating_sub(taken.len())];
    stream.read_exact(&mut rest).await?;
    taken.append(&mut rest);
    let said =
        format!("HTTP/1.1 {answer} Answer\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(said.as_bytes()).await?;
    Ok(Delivery {
        id: header(&head, "webhook-id").to_owned(),
        timestamp: header(&head, "webhook-timestamp").to_owned(),
        signature: header(&head, "webhook-signature").to_owned(),
        body: String::from_utf8_lossy(&taken[body_at..]).into_owned(),
        answered: answer,
    })
}

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    found.next().map_or("", |(_, value)| value.trim())
}
