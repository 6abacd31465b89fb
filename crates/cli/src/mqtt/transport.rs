//! Transports of an MQTT session: TCP, and WebSockets. WebSockets to AWS IoT are signed with the caller's
//! credentials and need no certificate.

use std::fmt;

use aws_config::SdkConfig;
use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::sign;

#[derive(Debug, Clone)]
pub(crate) enum Broker {
    /// Host and port.
    Tcp(String),
    /// A URL that begins with `ws://` or `wss://`.
    WebSocket(String),
    /// Data endpoint of AWS IoT, and the credentials for it.
    Aws {
        endpoint: String,
        sdk: Box<SdkConfig>,
    },
}

impl Broker {
    /// Parses `mqtt://host[:port]`, `ws://…` or `wss://…`.
    pub(crate) fn parse(url: &str) -> Result<Broker, String> {
        if let Some(address) = url.strip_prefix("mqtt://") {
            let address = address.trim_end_matches('/');
            return match address.rsplit_once(':') {
                _ if address.is_empty() => Err("the host is missing".to_owned()),
                Some((_, port)) if port.parse::<u16>().is_ok() => Ok(Broker::Tcp(address.into())),
                Some(_) => Err("the port is not a number".to_owned()),
                None => Ok(Broker::Tcp(format!("{address}:1883"))),
            };
        }
        if url.starts_with("ws://") || url.starts_with("wss://") {
            return Ok(Broker::WebSocket(url.to_owned()));
        }
        Err("the URL must start with mqtt://, ws:// or wss://".to_owned())
    }
}

impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broker::Tcp(address) => write!(f, "mqtt://{address}"),
            Broker::WebSocket(url) => f.write_str(url),
            Broker::Aws { endpoint, .. } => write!(f, "AWS IoT at {endpoint}"),
        }
    }
}

pub(super) enum Transport {
    Tcp(TcpStream),
    WebSocket(Box<WebSocketStream<MaybeTlsStream<TcpStream>>>),
}

impl Transport {
    pub(super) async fn open(broker: &Broker) -> Result<Transport, String> {
        match broker {
            Broker::Tcp(address) => {
                let stream = TcpStream::connect(address).await.map_err(text)?;
                stream.set_nodelay(true).map_err(text)?;
                Ok(Transport::Tcp(stream))
            }
            Broker::WebSocket(url) => Transport::web_socket(url).await,
            Broker::Aws { endpoint, sdk } => {
                Transport::web_socket(&sign::url(endpoint, sdk).await?).await
            }
        }
    }

    async fn web_socket(url: &str) -> Result<Transport, String> {
        let mut request = url.into_client_request().map_err(text)?;
        let protocol = HeaderValue::from_static("mqtt");
        let headers = request.headers_mut();
        headers.insert("Sec-WebSocket-Protocol", protocol);
        // The build has two crypto providers; use that of the AWS SDKs. A second installation is ignored.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let (stream, _) = connect_async(request).await.map_err(text)?;
        Ok(Transport::WebSocket(Box::new(stream)))
    }

    pub(super) async fn send(&mut self, bytes: Bytes) -> Result<(), String> {
        match self {
            Transport::Tcp(stream) => stream.write_all(&bytes).await.map_err(text),
            Transport::WebSocket(stream) => stream.send(Message::Binary(bytes)).await.map_err(text),
        }
    }

    /// Appends the next received bytes.
    pub(super) async fn receive(&mut self, read: &mut BytesMut) -> Result<(), String> {
        match self {
            Transport::Tcp(stream) => match stream.read_buf(read).await.map_err(text)? {
                0 => Err("closed by the broker".to_owned()),
                _ => Ok(()),
            },
            Transport::WebSocket(stream) => match stream.next().await {
                Some(Ok(Message::Binary(bytes))) => {
                    read.extend_from_slice(&bytes);
                    Ok(())
                }
                Some(Ok(Message::Close(_))) | None => Err("closed by the broker".to_owned()),
                Some(Ok(_)) => Ok(()),
                Some(Err(error)) => Err(text(error)),
            },
        }
    }
}

fn text(error: impl std::error::Error) -> String {
    crate::error::chain(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brokers_are_parsed_and_displayed() {
        for (url, shown) in [
            ("mqtt://127.0.0.1", "mqtt://127.0.0.1:1883"),
            ("mqtt://localhost:2883/", "mqtt://localhost:2883"),
            ("ws://localhost:8083/mqtt", "ws://localhost:8083/mqtt"),
        ] {
            assert_eq!(Broker::parse(url).unwrap().to_string(), shown);
        }
        for url in [
            "",
            "localhost",
            "mqtt://",
            "mqtt://a:b",
            "http://a",
            "mqtts://a",
        ] {
            assert!(Broker::parse(url).is_err(), "{url}");
        }
    }
}
