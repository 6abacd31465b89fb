//! Faults that AWS allows and a laptop never shows, by a seed.
//!
//! Invocations of rules are late, so that they overtake each other, come twice and are throttled; queues deliver late,
//! twice and in any order; calls take time; DynamoDB rejects writes because of a transaction. Each part of the stack
//! draws from a sequence of its own. Calls that run at once draw in the order in which they happen to run.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use antumbra_queues::Unkindness;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use serde_json::json;

use crate::clients::HttpClients;

const COLD_START: Duration = Duration::from_millis(1500);
const LATENCY: Duration = Duration::from_millis(20);
const LONG_LATENCY: Duration = Duration::from_millis(500);
/// Probabilities in thousandths.
const COLD_STARTS: u32 = 200;
const LONG_LATENCIES: u32 = 10;
const REPETITIONS: u32 = 20;
const THROTTLES: u32 = 10;
const CONFLICTS: u32 = 10;

/// The faults of one part of the stack; the default has none.
#[derive(Debug, Clone, Default)]
pub struct Unkind {
    seed: Option<u64>,
    random: Arc<Mutex<Option<fastrand::Rng>>>,
}

impl Unkind {
    pub fn with_seed(seed: u64) -> Unkind {
        Unkind {
            seed: Some(seed),
            random: Arc::new(Mutex::new(Some(fastrand::Rng::with_seed(seed)))),
        }
    }

    /// The faults of a part, by its name.
    pub(crate) fn of(&self, part: &str) -> Unkind {
        let seeded = |seed: u64| {
            let mut hasher = DefaultHasher::new();
            (seed, part).hash(&mut hasher);
            Unkind::with_seed(hasher.finish())
        };
        self.seed.map(seeded).unwrap_or_default()
    }

    pub(crate) fn is_on(&self) -> bool {
        self.seed.is_some()
    }

    fn happens(&self, per_mille: u32) -> bool {
        self.draw(|random| random.u32(0..1000) < per_mille)
            .unwrap_or(false)
    }

    fn within(&self, longest: Duration) -> Duration {
        self.draw(|random| longest.mul_f64(random.f64()))
            .unwrap_or_default()
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> Option<T> {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        random.as_mut().map(draw)
    }

    /// Time until an invocation starts.
    pub(crate) fn start_delay(&self) -> Duration {
        match self.happens(COLD_STARTS) {
            true => self.within(COLD_START),
            false => self.within(LATENCY),
        }
    }

    /// Duration of a call on its way.
    pub(crate) fn latency(&self) -> Duration {
        match self.happens(LONG_LATENCIES) {
            true => self.within(LONG_LATENCY),
            false => self.within(LATENCY),
        }
    }

    pub(crate) fn throttles(&self) -> bool {
        self.happens(THROTTLES)
    }

    pub(crate) fn queues(&self) -> Unkindness {
        match self.seed {
            None => Unkindness::default(),
            Some(seed) => Unkindness {
                seed,
                duplicates_per_mille: REPETITIONS,
                reorder: true,
                max_delay_ms: 200,
            },
        }
    }

    /// Gives each call latency, and some writes of items a conflict.
    pub(crate) fn http_clients(&self, clients: HttpClients) -> HttpClients {
        if !self.is_on() {
            return clients;
        }
        let unkind = self.clone();
        HttpClients::new(move |function| unkind.of(function).http_client(clients.of(function)))
    }

    fn http_client(self, client: SharedHttpClient) -> SharedHttpClient {
        use aws_smithy_runtime_api::client::http::HttpClient as _;
        http_client_fn(move |settings, components| {
            SharedHttpConnector::new(UnkindConnector {
                unkind: self.clone(),
                connector: client.http_connector(settings, components),
            })
        })
    }
}

#[derive(Debug)]
struct UnkindConnector {
    unkind: Unkind,
    connector: SharedHttpConnector,
}

impl HttpConnector for UnkindConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (there, back) = (self.unkind.latency(), self.unkind.latency());
        if is_item_write(&request) && self.unkind.happens(CONFLICTS) {
            return HttpConnectorFuture::new(async move {
                tokio::time::sleep(there + back).await;
                Ok(conflict())
            });
        }
        let connector = self.connector.clone();
        HttpConnectorFuture::new(async move {
            tokio::time::sleep(there).await;
            let response = connector.call(request).await;
            tokio::time::sleep(back).await;
            response
        })
    }
}

fn is_item_write(request: &HttpRequest) -> bool {
    let target = request.headers().get("x-amz-target").unwrap_or_default();
    let operation = target.rsplit('.').next();
    matches!(operation, Some("PutItem" | "UpdateItem" | "DeleteItem"))
}

/// The response to a write of an item that a transaction holds.
fn conflict() -> HttpResponse {
    let body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException",
        "message": "Transaction is ongoing for the item",
    });
    let status = aws_smithy_runtime_api::http::StatusCode::try_from(400);
    // 400 is a status.
    let status = status.unwrap_or_else(|_| unreachable!());
    let mut response = HttpResponse::new(status, SdkBody::from(body.to_string()));
    let headers = response.headers_mut();
    headers.insert("content-type", "application/x-amz-json-1.0");
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_the_draws_of_each_part() {
        let draws = |seed: u64, part: &str| {
            let unkind = Unkind::with_seed(seed).of(part);
            let delays = (0..50).map(|_| unkind.start_delay()).collect::<Vec<_>>();
            assert!(delays.iter().any(|delay| *delay > LATENCY));
            delays
        };
        assert_eq!(draws(7, "rules"), draws(7, "rules"));
        assert_ne!(draws(7, "rules"), draws(7, "queues"));
        assert_ne!(draws(7, "rules"), draws(8, "rules"));
    }

    #[test]
    fn without_a_seed_nothing_is_late() {
        let kind = Unkind::default().of("rules");
        assert_eq!(kind.start_delay() + kind.latency(), Duration::ZERO);
        assert!(!kind.throttles() && !kind.is_on());
        assert_eq!(kind.queues(), Unkindness::default());
    }
}
