//! The HTTP client that the clients of all AWS services share.
//!
//! The SDK's own client would read the certificates as text when it is created, and brings HTTP/2, which no service of
//! the functions needs. This one is created at the function's start, which has a whole processor.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::connection::{CaptureSmithyConnection, ConnectionMetadata};
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::ErrorKind;
use hyper::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{
    CaptureConnection, HttpConnector as Tcp, capture_connection,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower_service::Service;

#[derive(Debug)]
pub(super) struct Https {
    connector: SharedHttpConnector,
}

impl Https {
    /// `connect_timeout` is the limit for a connection, with the resolution of its name and TLS.
    pub(super) fn new(tls: ClientConfig, connect_timeout: Duration) -> Https {
        let mut tcp = Tcp::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let connect = Connect {
            https: HttpsConnector::from((tcp, tls)),
            timeout: connect_timeout,
        };
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(connect);
        Https {
            connector: SharedHttpConnector::new(Connector { client }),
        }
    }
}

impl HttpClient for Https {
    /// All clients use the settings of [`config`](super::config).
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        self.connector.clone()
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        Some(ConnectorMetadata::new("hyper", Some("1.x".into())))
    }
}

#[derive(Debug)]
struct Connector {
    client: legacy::Client<Connect, SdkBody>,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let mut request = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => {
                return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into())));
            }
        };
        let connection = capture_connection(&mut request);
        if let Some(capture) = request.extensions().get::<CaptureSmithyConnection>() {
            capture.set_connection_retriever(move || metadata(&connection));
        }
        let response = self.client.request(request);
        HttpConnectorFuture::new(async move {
            let response = response.await.map_err(classify)?;
            HttpResponse::try_from(response.map(SdkBody::from_body_1_x))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// Lets the SDK close a connection after a response that it takes for a failure of the server.
fn metadata(connection: &CaptureConnection) -> Option<ConnectionMetadata> {
    connection.connection_metadata().as_ref()?;
    let connection = connection.clone();
    let poison = move || {
        if let Some(connected) = connection.connection_metadata().as_ref() {
            connected.poison();
        }
    };
    let metadata = ConnectionMetadata::builder()
        .proxied(false)
        .poison_fn(poison);
    Some(metadata.build())
}

/// Tells the SDK which failures it may try again.
fn classify(error: legacy::Error) -> ConnectorError {
    let io = source::<io::Error>(&error).map(io::Error::kind);
    let hyper = source::<hyper::Error>(&error);
    let is = |test: fn(&hyper::Error) -> bool| hyper.is_some_and(test);
    if io == Some(io::ErrorKind::TimedOut) {
        ConnectorError::timeout(error.into())
    } else if is(hyper::Error::is_user) {
        ConnectorError::user(error.into())
    } else if is(hyper::Error::is_incomplete_message) {
        ConnectorError::other(error.into(), Some(ErrorKind::TransientError))
    } else if error.is_connect()
        || io.is_some()
        || is(hyper::Error::is_closed)
        || is(hyper::Error::is_canceled)
    {
        ConnectorError::io(error.into())
    } else {
        ConnectorError::other(error.into(), None)
    }
}

/// The first error of a type, from the outside.
fn source<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    std::iter::successors(Some(error), |&error| error.source())
        .find_map(|error| error.downcast_ref())
}

/// Opens connections within a time limit.
#[derive(Debug, Clone)]
struct Connect {
    https: HttpsConnector<Tcp>,
    timeout: Duration,
}

impl Service<Uri> for Connect {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connection = tokio::time::timeout(self.timeout, self.https.call(uri));
        Box::pin(async move {
            let late = || io::Error::new(io::ErrorKind::TimedOut, "connection timed out");
            connection.await.map_err(|_| late())?
        })
    }
}

#[cfg(test)]
mod tests;
