//! Webhooks: signed POSTs to the URLs of clients.
//!
//! Reading order: `address` lists the addresses that are not public, `allow` the exceptions of a deployment, `guard`
//! checks URLs and the addresses that their names resolve to; `connect` connects only to addresses that the guard
//! allows, `sign` signs according to Standard Webhooks, `retry_after` parses the header of that name.
//!
//! A name is resolved once per connection, and the guard checks the very address that is connected to. Changing the
//! name's record between check and connection has no effect.

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
use rustls::ClientConfig;

pub use allow::{Allow, InvalidAllow};
pub use guard::Guard;
pub use resolve::{Resolve, SystemResolver};
pub use sign::sign;

use connect::Connector;

/// Time limit for the response, including the connection.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// Limits for reading a response body, which only serves to reuse the connection.
const BODY_TIME: Duration = Duration::from_millis(500);
const BODY_BYTES: usize = 64 * 1024;
const HEAD_BYTES: usize = 32 * 1024;
/// Idle connections kept per endpoint, and the time they are kept.
const IDLE_CONNECTIONS: usize = 4;
const IDLE_TIME: Duration = Duration::from_secs(20);
const AGENT: &str = concat!("antumbra/", env!("CARGO_PKG_VERSION"));

#[derive(Clone)]
pub struct WebhookSender {
    client: Client<HttpsConnector<Connector>, Full<Bytes>>,
    guard: Guard,
    timeout: Duration,
}

impl WebhookSender {
    pub fn new(tls: ClientConfig, guard: Guard) -> WebhookSender {
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            // The guard decides about plain HTTP.
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

    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> WebhookSender {
        WebhookSender { timeout, ..self }
    }

    fn request(&self, post: Post<'_>) -> Result<Request<Full<Bytes>>, PostError> {
        let rejected = |reason: &dyn std::fmt::Display| PostError::Failed(reason.to_string());
        let url = self.guard.check_text(post.url).map_err(|r| rejected(&r))?;
        let uri: Uri = url.as_str().parse().map_err(|fault| rejected(&fault))?;
        let id = post.id.to_string();
        let seconds = post.now.nanoseconds().div_euclid(1_000_000_000) as i64;
        let signature =
            sign(post.secrets, &id, seconds, post.body).map_err(|fault| rejected(&fault))?;
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
            let value = HeaderValue::from_str(&value).map_err(|fault| rejected(&fault))?;
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
                .and_then(|value| retry_after::parse(value, now())),
        };
        // An unread body only prevents the reuse of the connection.
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

/// Reports the innermost cause: "connection refused" instead of "client error (Connect)".
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
