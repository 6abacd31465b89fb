//! Scripted endpoints of clients.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use antumbra_publish::webhook::sign;
use antumbra_service::clients::Secret;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response};
use axum::routing::post;
use serde_json::Value;

use crate::support::eventually;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    Status(u16),
    RetryAfter(u16, u64),
    Hang,
    /// Status 204 after some milliseconds.
    Slow(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) id: String,
    pub(crate) timestamp: String,
    pub(crate) signature: String,
    pub(crate) text: String,
    pub(crate) body: Value,
    pub(crate) at: Instant,
}

impl Seen {
    pub(crate) fn assert_signed(&self, secrets: &[&Secret]) {
        let seconds: i64 = self.timestamp.parse().unwrap();
        let expected = sign(secrets, &self.id, seconds, &self.text).unwrap();
        assert_eq!(self.signature, expected);
    }
}

#[derive(Default)]
struct Script {
    replies: HashMap<String, VecDeque<Reply>>,
    seen: Vec<Seen>,
}

/// One server with an endpoint per path, which responds 204 unless scripted otherwise.
#[derive(Clone)]
pub(crate) struct Endpoints {
    pub(crate) address: SocketAddr,
    script: Arc<Mutex<Script>>,
}

impl Endpoints {
    pub(crate) async fn start() -> Endpoints {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoints = Endpoints {
            address: listener.local_addr().unwrap(),
            script: Arc::default(),
        };
        let router = Router::new()
            .route("/{path}", post(respond))
            .with_state(Arc::clone(&endpoints.script));
        tokio::spawn(async move { axum::serve(listener, router).await });
        endpoints
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Sets the replies to the next requests to a path.
    pub(crate) fn next(&self, path: &str, replies: &[Reply]) {
        let mut script = self.script.lock().unwrap();
        let waiting = script.replies.entry(path.to_owned()).or_default();
        waiting.extend(replies);
    }

    /// Responds to requests to a path as usual again.
    pub(crate) fn clear(&self, path: &str) {
        self.script.lock().unwrap().replies.remove(path);
    }

    /// Returns the requests to a path.
    pub(crate) fn seen(&self, path: &str) -> Vec<Seen> {
        let script = self.script.lock().unwrap();
        let of_path = script.seen.iter().filter(|seen| seen.path == path);
        of_path.cloned().collect()
    }

    /// Waits for a number of requests to a path.
    pub(crate) async fn wait(&self, path: &str, count: usize) -> Vec<Seen> {
        let what = format!("{count} requests to {path}");
        eventually(&what, async || {
            Some(self.seen(path)).filter(|seen| seen.len() >= count)
        })
        .await
    }
}

async fn respond(
    State(script): State<Arc<Mutex<Script>>>,
    Path(path): Path<String>,
    headers: HeaderMap,
    text: String,
) -> Response<Body> {
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let reply = {
        let mut script = script.lock().unwrap();
        script.seen.push(Seen {
            path: path.clone(),
            id: header("webhook-id"),
            timestamp: header("webhook-timestamp"),
            signature: header("webhook-signature"),
            body: serde_json::from_str(&text).unwrap(),
            text,
            at: Instant::now(),
        });
        let waiting = script.replies.get_mut(&path);
        waiting
            .and_then(VecDeque::pop_front)
            .unwrap_or(Reply::Status(204))
    };
    let response = match reply {
        Reply::Status(status) => Response::builder().status(status),
        Reply::RetryAfter(status, seconds) => Response::builder()
            .status(status)
            .header("retry-after", seconds),
        Reply::Hang => std::future::pending().await,
        Reply::Slow(milliseconds) => {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            Response::builder().status(204)
        }
    };
    response.body(Body::empty()).unwrap()
}
