//! Connections to addresses that the guard allows.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use super::guard::{Endpoint, Guard};

/// Time limit per address, so that the next one is tried.
const ADDRESS_TIME: Duration = Duration::from_secs(4);

#[derive(Debug, Clone)]
pub(super) struct Connector {
    guard: Guard,
}

impl Connector {
    pub(super) fn new(guard: Guard) -> Connector {
        Connector { guard }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let guard = self.guard.clone();
        Box::pin(async move { connect(&guard, &uri).await.map(TokioIo::new) })
    }
}

async fn connect(guard: &Guard, uri: &Uri) -> io::Result<TcpStream> {
    let plain = uri.scheme_str() != Some("https");
    let host = uri.host().unwrap_or_default();
    let endpoint = Endpoint {
        plain,
        host: host.trim_start_matches('[').trim_end_matches(']'),
        port: uri.port_u16().unwrap_or(if plain { 80 } else { 443 }),
    };
    let addresses = guard.addresses(endpoint).await;
    let addresses = addresses.map_err(|rejection| io::Error::other(rejection.to_string()))?;
    let mut last = io::Error::other("no address");
    for address in &addresses {
        match tokio::time::timeout(ADDRESS_TIME, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // A delivery is one small packet: send it at once.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, "connection timed out"),
        }
    }
    Err(last)
}
