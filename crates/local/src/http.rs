//! HTTP servers on loopback, closed to web pages and to other machines.
//!
//! Any web page can send requests to loopback ports, and a foreign host name can resolve to 127.0.0.1. Therefore a
//! request must name a loopback host, or one that was allowed, and a request with an `Origin` must come from a page
//! of the same server. Connections are limited in number, and so is the time of sending a request's head.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use antumbra_console::security::is_loopback;
use axum::Router;
use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::listen::{self, StartError};
use crate::task::Running;

/// Time that connections get to end on a stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after a connection that was not accepted.
const AFTER_ERROR: Duration = Duration::from_millis(10);

/// Host names that requests may have beside loopback ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedHosts(Arc<[String]>);

impl FromIterator<String> for AllowedHosts {
    fn from_iter<T: IntoIterator<Item = String>>(names: T) -> AllowedHosts {
        AllowedHosts(names.into_iter().collect())
    }
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    header_timeout: Duration,
    connections: usize,
}

const LIMITS: Limits = Limits {
    header_timeout: Duration::from_secs(15),
    connections: 1000,
};

/// Binds a port of this machine.
pub async fn bind(
    service: &'static str,
    port: u16,
) -> Result<(TcpListener, SocketAddr), StartError> {
    listen::bind(service, port).await
}

/// Serves on a port of this machine, for loopback names only.
pub fn start(listener: TcpListener, router: Router) -> Running {
    Running::start(|stop| serve(listener, router, AllowedHosts::default(), stop))
}

/// Serves until the stop, then lets running requests finish.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    hosts: AllowedHosts,
    stop: CancellationToken,
) {
    serve_within(LIMITS, listener, router, hosts, stop).await;
}

async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    router: Router,
    hosts: AllowedHosts,
    stop: CancellationToken,
) {
    let router = router.layer(from_fn(move |request: Request, next: Next| {
        let refusal = hosts.refusal(request.headers());
        async move {
            match refusal {
                Some(reason) => (StatusCode::FORBIDDEN, reason).into_response(),
                None => next.run(request).await,
            }
        }
    }));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout);
    let connections = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(limits.connections));
    while let Some(permit) = stop
        .run_until_cancelled(Arc::clone(&room).acquire_owned())
        .await
    {
        let Some(accepted) = stop.run_until_cancelled(listener.accept()).await else {
            break;
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // The connection ended already, or there is no file handle left: no reason to stop listening.
            Err(error) => {
                tracing::debug!(%error, "connection not accepted");
                tokio::time::sleep(AFTER_ERROR).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended early");
            }
            drop(permit);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, connections.shutdown()).await;
}

impl AllowedHosts {
    /// Returns the reason to refuse a request.
    fn refusal(&self, headers: &HeaderMap) -> Option<String> {
        let mut hosts = headers.get_all(HOST).iter();
        let (host, None) = (hosts.next(), hosts.next()) else {
            return Some("the request has several Host headers".to_owned());
        };
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        let name = host.parse::<Authority>();
        let name = name.as_ref().map_or("", Authority::host);
        let name = if host.contains('@') { "" } else { name };
        if !is_loopback(name)
            && !self
                .0
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(name))
        {
            return Some(format!(
                "the host {host:?} is not allowed; use 127.0.0.1, or start with --allow-host {name}"
            ));
        }
        let is_own = |origin: &[u8]| origin == format!("http://{host}").as_bytes();
        let foreign = headers
            .get_all(ORIGIN)
            .iter()
            .any(|origin| !is_own(origin.as_bytes()));
        foreign.then(|| "requests of other web pages are not allowed".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    async fn start(limits: Limits) -> (SocketAddr, tokio_util::sync::DropGuard) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let router = Router::new().fallback(|| async { "served" });
        let hosts = AllowedHosts::from_iter(["stack.internal".to_owned()]);
        tokio::spawn(serve_within(limits, listener, router, hosts, stop.clone()));
        (address, stop.drop_guard())
    }

    async fn send(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        // A connection that is reset has no response either.
        let _ = stream.read_to_string(&mut response).await;
        response
    }

    #[tokio::test]
    async fn foreign_hosts_and_origins_are_refused() {
        let (address, _stop) = start(LIMITS).await;
        for (headers, served) in [
            ("host: 127.0.0.1", true),
            ("host: 127.0.0.1:8000", true),
            ("host: localhost:1", true),
            ("host: sqs.localhost:1", true),
            ("host: [::1]:8000", true),
            ("host: STACK.internal:8000", true),
            ("host: evil.example", false),
            ("host: localhost.evil.example", false),
            ("host: 127.0.0.1.evil.example:8000", false),
            ("host: 192.168.0.7", false),
            ("host: 0.0.0.0", false),
            ("host: evil.example@127.0.0.1:8000", false),
            ("host: 127.0.0.1@evil.example", false),
            ("host: ", false),
            ("x: y", false),
            ("host: 127.0.0.1\r\nhost: evil.example", false),
            (
                "host: 127.0.0.1:8000\r\norigin: http://127.0.0.1:8000",
                true,
            ),
            (
                "host: 127.0.0.1:8000\r\norigin: http://127.0.0.1:3000",
                false,
            ),
            (
                "host: 127.0.0.1:8000\r\norigin: https://evil.example",
                false,
            ),
            ("host: 127.0.0.1:8000\r\norigin: null", false),
        ] {
            for method in ["POST", "GET", "OPTIONS"] {
                let request = format!(
                    "{method} / HTTP/1.1\r\n{headers}\r\nconnection: close\r\naccess-control-request-method: POST\r\ncontent-length: 0\r\n\r\n"
                );
                let response = send(address, &request).await;
                let is_served = response.starts_with("HTTP/1.1 200");
                assert_eq!(is_served, served, "{method} {headers}: {response}");
                assert!(
                    !response.to_lowercase().contains("access-control"),
                    "{response}"
                );
            }
        }
    }

    #[tokio::test]
    async fn half_sent_requests_end_and_make_room() {
        let (address, _stop) = start(Limits {
            header_timeout: Duration::from_millis(200),
            connections: 2,
        })
        .await;
        let mut halves = Vec::new();
        for _ in 0..5 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream
                .write_all(b"POST / HTTP/1.1\r\nhost: ")
                .await
                .unwrap();
            halves.push(stream);
        }
        let request = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        let response = tokio::time::timeout(Duration::from_secs(10), send(address, request));
        assert!(response.await.unwrap().ends_with("served"));
    }
}
