//! A queue of a RabbitMQ broker as event source, as Lambda's mapping for Amazon MQ reads it.
//!
//! Messages are collected into batches and handed to the function. They are acknowledged after it has succeeded; if it
//! fails, the whole batch returns to the queue and is delivered again. A message stays with the broker until then, so
//! the end of this process loses none. The client is compiled with the feature `rabbitmq` only.

#[cfg(feature = "rabbitmq")]
mod consumer;
mod event;

use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;

pub use event::{Message, event};

/// Largest batch, as the template sets it.
pub const BATCH_SIZE: u16 = 10;
/// Time in which a batch is filled after its first message, as Lambda does by default.
pub const BATCHING_WINDOW: Duration = Duration::from_millis(500);
/// Largest event of Lambda.
pub const EVENT_BYTES: usize = 6 * 1024 * 1024;

/// A broker and its virtual host, as `amqp://user:password@host:port/virtual-host`.
#[derive(Clone, PartialEq, Eq)]
pub struct Broker {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    pub virtual_host: String,
}

/// A queue of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub broker: Broker,
    pub queue: String,
}

/// Without the password.
impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "amqp://{}:{}/", self.host, self.port)
    }
}

impl FromStr for Broker {
    type Err = &'static str;

    fn from_str(url: &str) -> Result<Broker, &'static str> {
        let Some(rest) = url.strip_prefix("amqp://") else {
            return Err(match url.starts_with("amqps://") {
                true => "TLS is not supported; use amqp://",
                false => "must start with amqp://",
            });
        };
        let (authority, path) = match rest.split_once('/') {
            Some((authority, path)) => (authority, Some(path)),
            None => (rest, None),
        };
        let (login, address) = match authority.rsplit_once('@') {
            Some((login, address)) => (Some(login), address),
            None => (None, authority),
        };
        let (host, port) = match address.rsplit_once(':') {
            // An IPv6 address without a port ends in a bracket.
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| "the port is not a number")?)
            }
            _ => (address, 5672),
        };
        if host.is_empty() {
            return Err("names no host");
        }
        let decoded = |text: &str| {
            let decoded = percent_decode_str(text).decode_utf8();
            decoded.map(String::from).map_err(|_| "is not UTF-8")
        };
        let (user, password) = login.map_or(("guest", "guest"), |login| {
            login.split_once(':').unwrap_or((login, ""))
        });
        Ok(Broker {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            user: decoded(user)?,
            password: decoded(password)?,
            // `amqp://host` has the default one, `amqp://host/` the one without a name.
            virtual_host: path.map_or(Ok("/".to_owned()), decoded)?,
        })
    }
}

/// Starts to consume a queue.
#[cfg(feature = "rabbitmq")]
pub use consumer::start;

/// Fails: the client is not compiled.
#[cfg(not(feature = "rabbitmq"))]
pub async fn start(
    _: Source,
    _: crate::function::Function,
) -> Result<crate::task::Running, crate::listen::StartError> {
    Err(crate::listen::StartError::Service {
        service: "RabbitMQ",
        reason: "this program is built without it; build it with --features rabbitmq".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_broker_and_a_virtual_host() {
        let broker = |url: &str| {
            let broker: Broker = url.parse().unwrap();
            let login = format!("{}:{}", broker.user, broker.password);
            (login, broker.host, broker.port, broker.virtual_host)
        };
        let parts = |login: &str, host: &str, port, path: &str| {
            (login.to_owned(), host.to_owned(), port, path.to_owned())
        };
        let plain = parts("guest:guest", "localhost", 5672, "/");
        assert_eq!(broker("amqp://localhost"), plain);
        assert_eq!(broker("amqp://localhost/%2F"), plain);
        let all = parts("me:a@b", "10.0.0.1", 1234, "locks");
        assert_eq!(broker("amqp://me:a%40b@10.0.0.1:1234/locks"), all);
        assert_eq!(broker("amqp://[::1]").1, "::1");
        for invalid in [
            "localhost",
            "amqps://a",
            "amqp://",
            "amqp://a:b",
            "amqp://a/%FF",
        ] {
            assert!(invalid.parse::<Broker>().is_err(), "{invalid}");
        }
        let secret: Broker = "amqp://me:secret@host".parse().unwrap();
        assert!(!format!("{secret:?}").contains("secret"));
    }
}
