//! Functions that die where the test says: a panic at that point ends the call as a killed process would,
//! with everything before it done and nothing after it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbDeliveries, MAIN};
use antumbra_local::clients::sdk_config;
use antumbra_local::function::{Function, HandlerError};
use antumbra_local::stack::Webhooks;
use antumbra_publish::webhook::Guard;
use antumbra_publish::{SqsVisibility, WebhookSender};
use antumbra_service::clients::ClientId;
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::deliveries::{
    Attempt, Deliver, Delivery, DeliveryContext, DeliveryStore, HttpAnswer, MessageVisibility,
    Post, PostError, Sender, Status,
};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_webhook_deliver::Worker;
use bytes::Bytes;
use serde_json::Value;

use super::home::Home;

/// As the template has it.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where a call can end before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Point {
    /// The state is written, and the listener has not looked at it.
    ListenerCalled,
    /// Everything is queued, and nobody was told.
    ListenerDone,
    /// The message is received.
    TurnBegun,
    /// Everything is read, and nothing is sent.
    Read,
    /// The endpoint has answered, and nothing is recorded.
    Posted,
    /// It is recorded, and nothing else.
    Recorded,
    /// The queue knows when to hand it over again, if it is to.
    Postponed,
    /// All is done, and the queue was not told so.
    TurnDone,
}

impl Point {
    pub(super) const ALL: [Point; 8] = [
        Point::ListenerCalled,
        Point::ListenerDone,
        Point::TurnBegun,
        Point::Read,
        Point::Posted,
        Point::Recorded,
        Point::Postponed,
        Point::TurnDone,
    ];
}

type Decide = Box<dyn FnMut(Point) -> bool + Send>;

/// Says whether a call ends here, and counts how often it did.
#[derive(Clone)]
pub(super) struct Fate {
    decide: Arc<Mutex<Decide>>,
    deaths: Arc<Mutex<HashMap<Point, usize>>>,
}

impl Fate {
    pub(super) fn new(decide: impl FnMut(Point) -> bool + Send + 'static) -> Fate {
        Fate {
            decide: Arc::new(Mutex::new(Box::new(decide))),
            deaths: Arc::default(),
        }
    }

    /// Ends the first so many calls that come to a point.
    pub(super) fn at(point: Point, times: usize) -> Fate {
        let mut left = times;
        Fate::new(move |reached| {
            let ends = reached == point && left > 0;
            left -= usize::from(ends);
            ends
        })
    }

    pub(super) fn deaths(&self) -> HashMap<Point, usize> {
        self.deaths.lock().unwrap().clone()
    }

    fn ends(&self, point: Point) -> bool {
        let ends = (self.decide.lock().unwrap())(point);
        if ends {
            *self.deaths.lock().unwrap().entry(point).or_default() += 1;
        }
        ends
    }

    fn pass(&self, point: Point) {
        assert!(!self.ends(point), "killed at {point:?}, to order");
    }
}

/// The functions of a stack, mortal.
pub(super) struct Mortal {
    fate: Fate,
    worker: Arc<OnceLock<Function>>,
}

impl Mortal {
    pub(super) fn new(fate: Fate) -> Mortal {
        Mortal {
            fate,
            worker: Arc::default(),
        }
    }

    /// What the stack's functions pass through.
    pub(super) fn wrap(&self) -> impl Fn(Function) -> Function + Send + Sync + 'static {
        let (fate, worker) = (self.fate.clone(), Arc::clone(&self.worker));
        move |inner| match inner.name() {
            "stream-listener" => listener(inner, fate.clone()),
            "webhook-deliver" => late(inner.name(), Arc::clone(&worker)),
            _ => inner,
        }
    }

    /// Puts the worker in, now that it is known where everything is.
    pub(super) fn begin(&self, home: &Home, webhooks: &Webhooks) {
        let database = sdk_config(home.stack.addresses().dynamodb);
        let guard = Guard::new(webhooks.allow.clone());
        let sender = WebhookSender::new(guard).with_timeout(webhooks.timeout);
        let of = |fate: &Fate| fate.clone();
        let ledger = Cut(
            DynamoDbDeliveries::connect(&database, MAIN.name),
            of(&self.fate),
        );
        let sender = Cut(sender, of(&self.fate));
        let deliver = Deliver::new(ledger, sender, Arc::new(SystemClock), webhooks.policy);
        let urls = ["antumbra-deliveries.fifo", "antumbra-deliveries"];
        let urls = urls.map(|queue| home.stack.queue_url(queue));
        let visibility = SqsVisibility::new(home.sqs.clone(), urls);
        let worker = Worker::new(deliver, Cut(visibility.clone(), of(&self.fate)));
        let (worker, fate) = (Arc::new(worker), of(&self.fate));
        let inner = Function::new("webhook-deliver", TIMEOUT, move |event: Bytes| {
            let (worker, fate) = (Arc::clone(&worker), fate.clone());
            async move {
                fate.pass(Point::TurnBegun);
                let deadline = SystemClock.now().after(TIMEOUT);
                let handled = worker.handle(&event, deadline).await.unwrap();
                fate.pass(Point::TurnDone);
                Ok(serde_json::to_vec(&handled.response()).unwrap().into())
            }
        });
        let hasty = Function::new("webhook-deliver", TIMEOUT, move |event: Bytes| {
            let (inner, visibility) = (inner.clone(), visibility.clone());
            async move {
                let answer = inner.invoke(event.clone()).await;
                if answer.is_err() {
                    // The time that the queue hides a message for has passed.
                    show(&visibility, &event).await;
                }
                answer.map_err(|error| HandlerError(error.to_string()))
            }
        });
        assert!(self.worker.set(hasty).is_ok());
    }
}

fn listener(inner: Function, fate: Fate) -> Function {
    let name = inner.name().to_owned();
    Function::new(&name, TIMEOUT, move |event: Bytes| {
        let (inner, fate) = (inner.clone(), fate.clone());
        async move {
            let killed = |point| Err(HandlerError(format!("killed at {point:?}, to order")));
            // Only what tells of a change to clients counts.
            let told = String::from_utf8_lossy(&event).contains(r#""S":"STATE""#);
            if told && fate.ends(Point::ListenerCalled) {
                return killed(Point::ListenerCalled);
            }
            let answer = inner.invoke(event).await;
            if told && fate.ends(Point::ListenerDone) {
                return killed(Point::ListenerDone);
            }
            answer.map_err(|error| HandlerError(error.to_string()))
        }
    })
}

fn late(name: &str, worker: Arc<OnceLock<Function>>) -> Function {
    Function::new(name, TIMEOUT, move |event: Bytes| {
        let worker = worker.get().cloned();
        async move {
            let worker = worker.ok_or_else(|| HandlerError("not begun".to_owned()))?;
            let answer = worker.invoke(event).await;
            answer.map_err(|error| HandlerError(error.to_string()))
        }
    })
}

async fn show(visibility: &SqsVisibility, event: &[u8]) {
    let event: Value = serde_json::from_slice(event).unwrap();
    for record in event["Records"].as_array().unwrap() {
        let text = |name: &str| record[name].as_str().unwrap();
        let shown = visibility.postpone(
            text("eventSourceARN"),
            text("receiptHandle"),
            Duration::ZERO,
        );
        shown.await.unwrap();
    }
}

/// A port behind which a call may end.
struct Cut<T>(T, Fate);

impl DeliveryStore for Cut<DynamoDbDeliveries> {
    async fn standing(&self, delivery: &Delivery) -> Result<DeliveryContext, StoreError> {
        let standing = self.0.standing(delivery).await;
        self.1.pass(Point::Read);
        standing
    }

    async fn record(
        &self,
        delivery: &Delivery,
        status: Status,
        attempts: &[Attempt],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let recorded = self.0.record(delivery, status, attempts, now).await;
        self.1.pass(Point::Recorded);
        recorded
    }

    async fn note_failure(
        &self,
        client: &ClientId,
        weight: u32,
        open_until: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        self.0.note_failure(client, weight, open_until).await
    }

    async fn note_success(&self, client: &ClientId) -> Result<(), StoreError> {
        self.0.note_success(client).await
    }

    async fn claim_probe(
        &self,
        client: &ClientId,
        seen: Option<Timestamp>,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.0.claim_probe(client, seen, until).await
    }

    async fn disable(
        &self,
        client: &ClientId,
        reason: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.0.disable(client, reason, now).await
    }
}

impl Sender for Cut<WebhookSender> {
    async fn post(&self, post: Post<'_>) -> Result<HttpAnswer, PostError> {
        let answer = self.0.post(post).await;
        self.1.pass(Point::Posted);
        answer
    }
}

impl MessageVisibility for Cut<SqsVisibility> {
    async fn postpone(&self, queue_arn: &str, receipt: &str, by: Duration) -> Result<(), String> {
        let postponed = self.0.postpone(queue_arn, receipt, by).await;
        self.1.pass(Point::Postponed);
        postponed
    }
}
