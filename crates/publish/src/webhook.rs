//! Clients' endpoints, by signed POST over HTTP.
//!
//! Reading order: `address` says which addresses are the public internet's, `allow` what a deployment
//! opens besides, `guard` puts both to a URL and to what its name leads to; `connect` makes connections
//! only where the guard lets it, `sign` signs as Standard Webhooks says, `retry_after` reads the header
//! of that name.
//!
//! A name is looked up once per connection, and what the guard looks at is the very address that is
//! connected to: a name that leads elsewhere a moment later leads nowhere.

mod address;
mod allow;
mod connect;
mod guard;
mod resolve;
mod retry_after;
mod sign;

use std::error::Error as _;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use antumbra_service::deliveries::{HttpResponse, Post, PostError, Sender};
use antumbra_shadow::Timestamp;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::RootCertStore;

pub use allow::{Allow, InvalidAllow};
pub use guard::Guard;
pub use resolve::{Resolve, SystemResolver};
pub use sign::sign;

use connect::Connector;

/// How long an endpoint may take to answer, the connection included.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// How long and how much of an answer's body is read, to keep the connection. The status has arrived by
/// then, and nothing else of an answer counts.
const BODY_TIME: Duration = Duration::from_millis(500);
const BODY_BYTES: usize = 64 * 1024;
/// The head of an answer.
const HEAD_BYTES: usize = 32 * 1024;
/// Connections that are kept for the next delivery, per endpoint, and for how long.
const IDLE_CONNECTIONS: usize = 4;
const IDLE_TIME: Duration = Duration::from_secs(20);
const AGENT: &str = concat!("antumbra/", env!("CARGO_PKG_VERSION"));

/// Sends requests to clients' endpoints, where the guard lets it.
#[derive(Clone)]
pub struct WebhookSender {
    client: Client<HttpsConnector<Connector>, Full<Bytes>>,
    guard: Guard,
    timeout: Duration,
}

impl WebhookSender {
    /// Trusting the certificates that this system trusts.
    pub fn new(guard: Guard) -> WebhookSender {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            tracing::warn!(errors = ?found.errors, "this system trusts no certificates");
        }
        WebhookSender::trusting(roots, guard)
    }

    /// Trusting these certificates.
    pub fn trusting(roots: RootCertStore, guard: Guard) -> WebhookSender {
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(connect::tls(roots))
            // The guard says where plain HTTP may go.
            .https_or_http()
            .enable_http1()
            .wrap_connector(Connector::new(guard.clone()));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIME)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .http1_max_buf_size(HEAD_BYTES)
            .build(connector);
        WebhookSender {
            client,
            guard,
            timeout: TIMEOUT,
        }
    }

    /// Another time-out than [`TIMEOUT`].
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> WebhookSender {
        WebhookSender { timeout, ..self }
    }

    fn request(&self, post: Post<'_>) -> Result<Request<Full<Bytes>>, PostError> {
        let refused = |reason: &dyn std::fmt::Display| PostError::Failed(reason.to_string());
        let url = self.guard.check_text(post.url).map_err(|r| refused(&r))?;
        let uri: Uri = url.as_str().parse().map_err(|fault| refused(&fault))?;
        let id = post.id.to_string();
        let seconds = post.now.nanoseconds().div_euclid(1_000_000_000) as i64;
        let signature =
            sign(post.secrets, &id, seconds, post.body).map_err(|fault| refused(&fault))?;
        let mut request = Request::new(Full::from(post.body.to_owned()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        for (name, value) in [
            ("webhook-id", id),
            ("webhook-timestamp", seconds.to_string()),
            ("webhook-signature", signature),
        ] {
            let value = HeaderValue::from_str(&value).map_err(|fault| refused(&fault))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(request)
    }
}

impl Sender for WebhookSender {
    async fn post(&self, post: Post<'_>) -> Result<HttpResponse, PostError> {
        let request = self.request(post)?;
        let response = tokio::time::timeout(self.timeout, self.client.request(request)).await;
        let response = match response {
            Err(_) => return Err(PostError::Timeout(self.timeout)),
            Ok(Err(error)) => return Err(failure(&error, self.timeout)),
            Ok(Ok(response)) => response,
        };
        let answer = HttpResponse {
            status: response.status().as_u16(),
            retry_after: response
                .headers()
                .get(RETRY_AFTER)
                .and_then(|value| value.to_str().ok())
                .and_then(|value| retry_after::read(value, now())),
        };
        // What is not read to its end costs the connection and nothing else.
        let _ = tokio::time::timeout(BODY_TIME, drain(response)).await;
        Ok(answer)
    }
}

async fn drain(mut response: Response<Incoming>) {
    let mut bytes = 0;
    while let Some(Ok(frame)) = response.body_mut().frame().await {
        bytes += frame.data_ref().map_or(0, Bytes::len);
        if bytes > BODY_BYTES {
            return;
        }
    }
}

/// The cause below all causes: "connection refused", not "client error (Connect)".
fn failure(error: &hyper_util::client::legacy::Error, timeout: Duration) -> PostError {
    let mut cause: &dyn std::error::Error = error;
    let mut source = error.source();
    while let Some(below) = source {
        cause = below;
        source = below.source();
    }
    let timed_out = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    if cause.downcast_ref::<io::Error>().is_some_and(timed_out) {
        return PostError::Timeout(timeout);
    }
    PostError::Failed(cause.to_string())
}

fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_nanoseconds(since.as_nanos() as i128)
}

impl std::fmt::Debug for WebhookSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookSender")
            .field("guard", &self.guard)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
