//! The DynamoDB behind all endpoints of a process: embedded or external.

use std::net::SocketAddr;
use std::sync::LazyLock;

use antumbra_database::{Engine, router};
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tower_service::Service as _;

/// Variable with the URL of an external DynamoDB, such as `http://127.0.0.1:8000`.
const EXTERNAL: &str = "ANTUMBRA_TEST_DYNAMODB";

pub(super) type HttpResponse = Response<Full<Bytes>>;

pub(super) enum Server {
    External(SocketAddr),
    /// Works on a runtime of its own, which outlives the runtimes of the tests.
    Embedded(Runtime, Router),
}

/// Returns DynamoDB. The first call opens the embedded one, unless an external one is set.
pub(super) fn server() -> &'static Server {
    static SERVER: LazyLock<Server> = LazyLock::new(|| match std::env::var(EXTERNAL) {
        Ok(url) => Server::External(external(&url)),
        Err(_) => embedded(),
    });
    &SERVER
}

fn external(url: &str) -> SocketAddr {
    let address = url.strip_prefix("http://").unwrap_or(url);
    let address = address.trim_end_matches('/').parse();
    address.unwrap_or_else(|error| panic!("{EXTERNAL}={url}: {error}"))
}

fn embedded() -> Server {
    let runtime = Builder::new_multi_thread().enable_all().build();
    let (write, _) = tokio::sync::watch::channel(());
    Server::Embedded(runtime.unwrap(), router(Engine::memory().unwrap(), write))
}

impl Server {
    pub(super) async fn respond(&self, request: Request<Full<Bytes>>) -> HttpResponse {
        match self {
            Server::External(address) => send(*address, request).await,
            Server::Embedded(runtime, router) => {
                let response = router.clone().call(request.map(Body::new));
                let response = runtime.spawn(async { whole(response.await.unwrap()).await });
                response.await.unwrap()
            }
        }
    }
}

/// Sends a request on a connection of its own.
pub(super) async fn send(address: SocketAddr, request: Request<Full<Bytes>>) -> HttpResponse {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    whole(sender.send_request(request).await.unwrap()).await
}

async fn whole<B: hyper::body::Body<Data = Bytes>>(response: Response<B>) -> HttpResponse
where
    B::Error: std::fmt::Debug,
{
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Response::from_parts(head, Full::new(body))
}
