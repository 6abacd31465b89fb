//! A webhook endpoint for trying things out. It verifies signatures with the reference library, not with Antumbra's
//! own code, and returns the received requests.

use std::net::SocketAddr;
use std::sync::Arc;

use antumbra_service::clients::Secret;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tokio::sync::mpsc;

use crate::http::{AllowedHosts, serve};
use crate::listen::{StartError, bind};
use crate::task::Running;

const BODY_BYTES: usize = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Verified,
    /// There was no secret to verify it with.
    Unverified,
    /// The signature is wrong, or the request is not a webhook.
    Refused(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub id: String,
    /// Header `webhook-timestamp`, in seconds since 1970.
    pub timestamp: i64,
    /// Header `webhook-signature`.
    pub signature: String,
    pub verdict: Verdict,
    pub status: u16,
    pub body: String,
}

impl Received {
    /// Checks the signature regardless of the clock, for callers that learn the secret later or move the clock.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let signed = Webhook::new(secret)
            .and_then(|webhook| webhook.sign(&self.id, self.timestamp, self.body.as_bytes()));
        signed.is_ok_and(|signature| self.signature.split(' ').any(|one| one == signature))
    }

    /// The `type` of the event; empty if there is none.
    pub fn kind(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        body["type"].as_str().unwrap_or_default().to_owned()
    }

    pub fn json(&self) -> Value {
        let body: Value =
            serde_json::from_str(&self.body).unwrap_or_else(|_| Value::from(self.body.as_str()));
        json!({
            "id": self.id,
            "verified": self.verdict == Verdict::Verified,
            "status": self.status,
            "body": body,
        })
    }
}

/// The endpoint, running until it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    received: mpsc::UnboundedReceiver<Received>,
    _server: Running,
}

impl Receiver {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub async fn next(&mut self) -> Option<Received> {
        self.received.recv().await
    }
}

/// Starts an endpoint with these secrets; `respond` chooses the status of each response.
pub async fn start(
    port: u16,
    secrets: Vec<Secret>,
    hosts: AllowedHosts,
    respond: impl Fn(&Verdict) -> u16 + Send + Sync + 'static,
) -> Result<Receiver, StartError> {
    let (listener, address) = bind("webhooks", port).await?;
    let (sender, received) = mpsc::unbounded_channel();
    let shared = Arc::new((secrets, respond));
    let router = Router::new().fallback(move |request: Request| {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        async move {
            let (secrets, respond) = &*shared;
            let mut received = read(request, secrets).await;
            received.status = respond(&received.verdict);
            let status = StatusCode::from_u16(received.status);
            // The receiver may be dropped already.
            let _ = sender.send(received);
            status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        }
    });
    let server = Running::start(|stop| serve(listener, router, hosts, stop));
    Ok(Receiver {
        address,
        received,
        _server: server,
    })
}

async fn read(request: Request, secrets: &[Secret]) -> Received {
    let (head, body) = request.into_parts();
    let header = |name: &str| {
        let value = head.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let received = |verdict: Verdict, body: String| Received {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp").parse().unwrap_or_default(),
        signature: header("webhook-signature"),
        verdict,
        status: 0,
        body,
    };
    let refused = |reason: &str| received(Verdict::Refused(reason.to_owned()), String::new());
    let Ok(body) = to_bytes(body, BODY_BYTES).await else {
        return refused("the body cannot be read");
    };
    let Ok(text) = String::from_utf8(body.to_vec()) else {
        return refused("the body is not text");
    };
    let verifies = |secret: &Secret| {
        Webhook::new(secret.reveal())
            .is_ok_and(|webhook| webhook.verify(&body, &head.headers).is_ok())
    };
    let verdict = match secrets {
        [] => Verdict::Unverified,
        known if known.iter().any(verifies) => Verdict::Verified,
        _ => Verdict::Refused("the signature matches no known secret".to_owned()),
    };
    received(verdict, text)
}
