//! Binding a loopback port, with an error that says which port and why.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;

/// Why a local service did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port is in use.
    #[error("port {port} for {service} is already in use; free it or choose another port")]
    PortTaken {
        service: &'static str,
        /// The port that is taken.
        port: u16,
    },
    /// The port could not be bound for another reason.
    #[error("cannot listen on port {port} for {service}")]
    Listen {
        service: &'static str,
        /// The port that was asked for.
        port: u16,
        #[source]
        source: std::io::Error,
    },
    /// The service itself refused to start.
    #[error("{service} did not start: {reason}")]
    Service {
        service: &'static str,
        reason: String,
    },
}

impl StartError {
    /// Sorts out a failed bind: a taken port is what users meet and can mend.
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

/// The loopback address of a port; 0 stands for any free one.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Listens on a loopback port and says where it ended up.
pub(crate) async fn bind(
    service: &'static str,
    port: u16,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::from_bind(service, port, source);
    let listener = TcpListener::bind(loopback(port)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}
