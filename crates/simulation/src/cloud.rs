//! AWS as the SDKs see it: an HTTP client that serves the requests itself.
//!
//! The product's adapters make real requests. They are served by the embedded DynamoDB, by queues with SQS's rules,
//! and by a broker that keeps published messages. Between a request and its response time passes, and faults occur:
//! see [`Fate`]. A request that was sent is executed even if its sender is gone.

mod dynamodb;
mod iot;
mod sqs;
mod stale;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antumbra_queues::queue::{Message, NewMessage, Queue};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::SdkConfig;
use aws_types::region::Region;
use dynoxide::Database;
use dynoxide::actions::get_records::{GetRecordsRequest, Record};
use dynoxide::actions::get_shard_iterator::encode_shard_iterator;
use dynoxide::streams::shard_id;
use tokio::sync::{Notify, oneshot};

use crate::aim::{Aims, Caller, Interference, Intervention};
use crate::chance::Chance;
use crate::clock::VirtualClock;
use crate::executor::Spawner;
use crate::profile::{Faults, Outage, Service};
use crate::trace::Trace;

pub(crate) use iot::Published;
pub(crate) use sqs::{URL, receipt_handle};

/// Timeout of an attempt, as the functions set it (see `lambda-kit`).
const ATTEMPT: Duration = Duration::from_millis(2500);
/// Milliseconds until a late request arrives, after its caller gave up, and until a slow one does.
const LATE: (u64, u64) = (2600, 9000);
const SLOW: (u64, u64) = (100, 2400);

/// Fault of a call, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    Slow,
    Throttled,
    Failed,
    LostBefore,
    LostAfter,
    Late,
    Partial,
    Conflict,
}

struct Call {
    /// Position among all calls.
    number: u64,
    caller: &'static str,
    service: Service,
    operation: String,
    /// Topic of a publish.
    topic: String,
    body: String,
}

/// All services. Clones are the same.
#[derive(Clone)]
pub(crate) struct Cloud(Arc<Inner>);

struct Inner {
    database: Database,
    queues: Mutex<BTreeMap<String, Queue>>,
    earlier: Mutex<stale::Earlier>,
    published: Mutex<Vec<Published>>,
    faults: Mutex<Faults>,
    /// Start of the outages, and the outages relative to it.
    outages: Mutex<(Duration, Vec<Outage>)>,
    aims: Mutex<(Aims, Option<Intervention>)>,
    /// The invocation that runs now.
    caller: Mutex<Option<Caller>>,
    chance: Chance,
    clock: VirtualClock,
    spawner: Spawner,
    trace: Trace,
    /// Notified whenever a queue has changed.
    queued: Notify,
    /// Notified whenever a table may have changed.
    written: Notify,
    /// Number of those changes.
    writes: AtomicU64,
    calls: AtomicU64,
}

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cloud")
    }
}

impl Cloud {
    pub(crate) fn new(
        chance: Chance,
        clock: VirtualClock,
        spawner: Spawner,
        trace: Trace,
    ) -> Result<Cloud, dynoxide::DynoxideError> {
        Ok(Cloud(Arc::new(Inner {
            database: Database::memory_with_clock(Arc::new(clock))?,
            queues: Mutex::default(),
            earlier: Mutex::default(),
            published: Mutex::default(),
            faults: Mutex::default(),
            outages: Mutex::default(),
            aims: Mutex::default(),
            caller: Mutex::default(),
            chance,
            clock,
            spawner,
            trace,
            queued: Notify::new(),
            written: Notify::new(),
            writes: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        })))
    }

    /// SDK configuration. The SDKs do not retry: their retries would share a token bucket over all runs.
    pub(crate) fn sdk(&self) -> SdkConfig {
        let cloud = self.clone();
        let timeouts = TimeoutConfig::builder()
            .operation_attempt_timeout(ATTEMPT)
            .build();
        let credentials = Credentials::new("simulated", "simulated", None, None, "simulation");
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("us-east-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .endpoint_url("http://cloud")
            .http_client(http_client_fn(move |_, _| {
                SharedHttpConnector::new(cloud.clone())
            }))
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts)
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .build()
    }

    /// Sets the probabilities of failures, and the outages from now on.
    pub(crate) fn set_faults(&self, faults: Faults, outages: Vec<Outage>) {
        *lock(&self.0.faults) = faults;
        *lock(&self.0.outages) = (self.0.clock.elapsed(), outages);
    }

    /// Sets the aimed calls and the actor that intervenes.
    pub(crate) fn set_aims(&self, aims: Aims, intervention: Option<Intervention>) {
        *lock(&self.0.aims) = (aims, intervention);
    }

    /// Runs a part of an invocation; its calls are attributed to the caller.
    pub(crate) fn run_as<T>(&self, caller: &Caller, work: impl FnOnce() -> T) -> T {
        *lock(&self.0.caller) = Some(caller.clone());
        let done = work();
        *lock(&self.0.caller) = None;
        done
    }

    /// Returns whether a service has an outage, for a call with this body.
    pub(crate) fn is_out(&self, service: Service, body: &str) -> bool {
        let (began, outages) = &*lock(&self.0.outages);
        let now = self.0.clock.elapsed().saturating_sub(*began);
        let mut outages = outages.iter();
        let concerns = |queue: &str| body.contains(&format!("/{queue}\""));
        outages.any(|out| {
            out.service == service
                && (out.from..out.until).contains(&now)
                && out.queue.is_none_or(concerns)
        })
    }

    pub(crate) fn queues(&self) -> MutexGuard<'_, BTreeMap<String, Queue>> {
        lock(&self.0.queues)
    }

    pub(crate) fn messages(&self, queue: &str) -> Vec<Message> {
        let queues = self.queues();
        let queue = queues.get(queue).into_iter();
        queue.flat_map(|queue| queue.messages().cloned()).collect()
    }

    /// Sends a message past the network, as systems outside do; returns its id.
    pub(crate) fn send(&self, queue: &str, message: NewMessage) -> String {
        let mut queues = self.queues();
        let queue = queues.get_mut(queue);
        let id = queue.map(|queue| self.put(queue, message));
        drop(queues);
        self.touch();
        id.unwrap_or_default()
    }

    /// The records of a table's stream after a position.
    pub(crate) fn records(&self, table: &str, position: i64) -> Vec<Record> {
        let request = GetRecordsRequest {
            shard_iterator: encode_shard_iterator(table, &shard_id(table), position),
            limit: None,
        };
        let read = self.0.database.get_records(request);
        read.map(|read| read.records).unwrap_or_default()
    }

    /// All published messages, in order.
    pub(crate) fn published(&self) -> Vec<Published> {
        lock(&self.0.published).clone()
    }

    pub(crate) async fn queued(&self) {
        self.0.queued.notified().await;
    }

    /// Notifies that a queue has changed.
    pub(crate) fn touch(&self) {
        self.0.queued.notify_waiters();
    }

    /// Waits until a table may have changed.
    pub(crate) async fn written(&self) {
        self.0.written.notified().await;
    }

    /// Number of possible table changes so far.
    pub(crate) fn writes(&self) -> u64 {
        self.0.writes.load(Ordering::Relaxed)
    }

    fn record_write(&self, operation: &str) {
        let reads = [
            "GetItem",
            "Query",
            "Scan",
            "BatchGetItem",
            "TransactGetItems",
        ];
        if !reads.contains(&operation) {
            self.remember_changes();
            self.0.writes.fetch_add(1, Ordering::Relaxed);
            self.0.written.notify_waiters();
        }
    }

    fn fate(&self, call: &Call) -> Fate {
        if self.is_out(call.service, &call.body) {
            return Fate::Failed;
        }
        let faults = *lock(&self.0.faults);
        let chance = &self.0.chance;
        let batch = matches!(
            call.operation.as_str(),
            "BatchWriteItem" | "BatchGetItem" | "SendMessageBatch"
        );
        if batch && chance.happens(faults.partial) {
            return Fate::Partial;
        }
        let all = [
            (faults.throttled, Fate::Throttled),
            (faults.failed, Fate::Failed),
            (faults.lost_before, Fate::LostBefore),
            (faults.lost_after, Fate::LostAfter),
            (faults.late, Fate::Late),
            (faults.conflict, Fate::Conflict),
        ];
        let found = all.into_iter().find(|(often, _)| chance.happens(*often));
        found.map_or(Fate::Done, |(_, fate)| fate)
    }

    /// Executes the request; `None` if the response is lost.
    fn serve(&self, call: &Call, fate: Fate) -> Option<(u16, String)> {
        let inner = &*self.0;
        inner
            .trace
            .step(&call.operation, || call.detail(&format!("{fate:?}")));
        let apply = || self.apply(call);
        match fate {
            Fate::Done | Fate::Slow | Fate::Late => Some(apply()),
            Fate::Throttled => Some(call.failure(400, "ThrottlingException")),
            Fate::Failed => Some(call.failure(500, "InternalServerError")),
            Fate::LostBefore => None,
            Fate::LostAfter => {
                apply();
                None
            }
            Fate::Partial => Some(self.partly(call).unwrap_or_else(apply)),
            Fate::Conflict => {
                let conflict = dynamodb::conflict(&call.operation, &call.body);
                Some(conflict.unwrap_or_else(apply))
            }
        }
    }

    fn apply(&self, call: &Call) -> (u16, String) {
        let inner = &*self.0;
        let operation = &call.operation;
        match call.service {
            Service::DynamoDb => {
                let reply = dynamodb::apply(&inner.database, operation, &call.body);
                self.record_write(operation);
                self.make_stale(operation, &call.body, reply)
            }
            Service::Sqs => self.sqs(operation, &call.body, &mut || true),
            Service::Iot | Service::Feeds => self.publish(call),
        }
    }

    fn partly(&self, call: &Call) -> Option<(u16, String)> {
        let inner = &*self.0;
        let mut keep = || inner.chance.happens(0.5);
        let operation = &call.operation;
        match call.service {
            Service::DynamoDb => {
                let reply = dynamodb::partly(&inner.database, operation, &call.body, keep);
                self.record_write(operation);
                reply
            }
            Service::Sqs => Some(self.sqs(operation, &call.body, &mut keep)),
            Service::Iot | Service::Feeds => None,
        }
    }
}

impl HttpConnector for Cloud {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let caller = lock(&self.0.caller).clone();
        let function = caller.as_ref().map_or("", |caller| caller.function);
        let number = self.0.calls.fetch_add(1, Ordering::Relaxed);
        let call = Call::of(&request, number, function);
        let chance = &self.0.chance;
        let (interference, intervention) = {
            let (aims, intervention) = &*lock(&self.0.aims);
            let interference = aims.hits((call.caller, &call.operation), &call.body, chance);
            (interference, intervention.clone())
        };
        if let (Some(Interference::EndsBefore | Interference::EndsAfter), Some(caller)) =
            (interference, &caller)
        {
            caller.end();
        }
        if interference == Some(Interference::EndsBefore) {
            return HttpConnectorFuture::new(std::future::pending());
        }
        let fate = match interference {
            Some(Interference::HasFate(fate)) => fate,
            _ => self.fate(&call),
        };
        let intervention = intervention.filter(|_| interference == Some(Interference::Intervenes));
        let action = intervention.map(|intervention| intervention(call.caller, &call.body));
        // While it is in flight, or just before it arrives.
        let intervenes_first = chance.happens(0.5);
        let there = match fate {
            Fate::Late => chance.between(LATE.0, LATE.1),
            Fate::Slow => chance.between(SLOW.0, SLOW.1),
            _ => chance.between(1, 15),
        };
        let there = Duration::from_millis(there);
        let back = chance.between(1, 15);
        let cloud = self.clone();
        let (sender, receiver) = oneshot::channel();
        self.0.spawner.spawn(async move {
            if !intervenes_first {
                tokio::time::sleep(there).await;
            }
            if let Some(action) = action {
                action.await;
            }
            if intervenes_first {
                tokio::time::sleep(there).await;
            }
            let reply = cloud.serve(&call, fate);
            tokio::time::sleep(Duration::from_millis(back)).await;
            // The caller may have ended.
            let _ = sender.send(reply);
        });
        HttpConnectorFuture::new(async move {
            match receiver.await {
                Ok(Some((status, body))) => response(status, body),
                _ => Err(ConnectorError::io("the connection broke".into())),
            }
        })
    }
}

fn response(status: u16, body: String) -> Result<HttpResponse, ConnectorError> {
    let status =
        StatusCode::try_from(status).map_err(|error| ConnectorError::user(error.into()))?;
    let mut response = HttpResponse::new(status, SdkBody::from(body));
    response
        .headers_mut()
        .insert("content-type", "application/x-amz-json-1.0");
    Ok(response)
}

impl Call {
    fn of(request: &HttpRequest, number: u64, caller: &'static str) -> Call {
        let body = request.body().bytes().unwrap_or_default();
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let (service, operation) = target.split_once('.').unwrap_or(("", "Publish"));
        let service = match service {
            "" => Service::Iot,
            "AmazonSQS" => Service::Sqs,
            _ => Service::DynamoDb,
        };
        Call {
            number,
            caller,
            service,
            operation: operation.to_owned(),
            topic: iot::topic(request.uri()),
            body: String::from_utf8_lossy(body).into_owned(),
        }
    }

    fn detail(&self, fate: &str) -> String {
        let Call {
            caller,
            topic,
            body,
            ..
        } = self;
        format!("{fate} {caller} {topic} {body}")
    }

    fn failure(&self, status: u16, code: &str) -> (u16, String) {
        match self.service {
            Service::Sqs => sqs::failure(status, code),
            _ => dynamodb::failure(status, code, "as the seed says"),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
