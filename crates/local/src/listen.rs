//! Binds loopback ports, with an error that names the port and the reason.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("port {port} for {service} is already in use; free it or choose another port")]
    PortTaken { service: &'static str, port: u16 },
    #[error("cannot listen on port {port} for {service}")]
    Listen {
        service: &'static str,
        port: u16,
        #[source]
        source: std::io::Error,
    },
    #[error("{service} did not start: {reason}")]
    Service {
        service: &'static str,
        reason: String,
    },
}

impl StartError {
    /// Distinguishes a port in use, which users can fix.
    pub(crate) fn from_bind(service: &'static str, port: u16, source: std::io::Error) -> Self {
        if source.kind() == std::io::ErrorKind::AddrInUse {
            Self::PortTaken { service, port }
        } else {
            Self::Listen {
                service,
                port,
                source,
            }
        }
    }
}

/// The loopback address of a port; 0 is any free one.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

pub(crate) async fn bind(
    service: &'static str,
    port: u16,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::from_bind(service, port, source);
    let listener = TcpListener::bind(loopback(port)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}
