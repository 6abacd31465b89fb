//! Deliveries to many endpoints of which some never respond: the real worker, with its store, its queue and the endpoints
//! in memory, in the virtual time of a paused runtime.
//!
//! A call of the store takes five milliseconds. A healthy endpoint responds after 100 to 300 milliseconds, a slow one after
//! three seconds, a dead one never: the request ends after ten seconds. The queue hands out what is visible every ten milliseconds, in batches, to a bounded
//! number of executions at once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use antumbra_service::clients::{Circuit, Client, ClientId, ClientState, Mode, Secret, Secrets};
use antumbra_service::clock::{Clock, time_left};
use antumbra_service::deliveries::{
    Claim, DeadLetters, Deliver, Delivery, DeliveryContext, DeliveryId, DeliveryMessage,
    DeliveryRecord, DeliveryStore, EventType, HttpResponse, MessageVisibility, Policy, Post,
    PostError, Progress, Queues, Saved, Sender, Status, Transition, Wait, Waiting,
};
use antumbra_service::notifications::{Channel, ChannelLimits, Message, SendError};
use antumbra_service::quarantine::Quarantine;
use antumbra_service::store::{StoreError, Version};
use antumbra_shadow::Timestamp;
use antumbra_testkit::RecordingChannel;
use antumbra_webhook_deliver::Worker;
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::time::Instant;

const TICK: Duration = Duration::from_millis(10);
const CALL: Duration = Duration::from_millis(5);
const RESPONSE_MILLISECONDS: std::ops::Range<u64> = 100..300;
const TIMEOUT: Duration = Duration::from_secs(10);
const FUNCTION_TIMEOUT: Duration = Duration::from_secs(30);
/// Slow endpoints respond after this time.
const SLOW: Duration = Duration::from_secs(3);
const SWEEP_PERIOD: Duration = Duration::from_secs(60);
/// Deliveries that a sweep queues in a tick: pages of 100 from four shards at once, with some 60 milliseconds of calls each.
const SWEPT_PER_TICK: usize = 60;
/// Time that healthy deliveries have after the last one was queued.
const REST: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) webhooks_per_second: u32,
    pub(crate) endpoints: u32,
    /// Endpoints that never respond.
    pub(crate) dead: u32,
    /// Endpoints that respond after three seconds.
    pub(crate) slow: u32,
    pub(crate) seconds: u32,
    /// Executions of the function at once, and messages of each.
    pub(crate) executions: usize,
    pub(crate) batch: usize,
    pub(crate) policy: Policy,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Measured {
    /// Time from the queue to the response, of deliveries to healthy endpoints.
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) longest: Duration,
    /// The longest time of deliveries to slow endpoints. Only the test reads it.
    #[allow(dead_code)]
    pub(crate) longest_of_slow: Duration,
    /// Deliveries to healthy and slow endpoints that did not arrive.
    pub(crate) missing: usize,
    pub(crate) executions_at_once: usize,
    /// Messages that were received and not deleted, hidden ones too.
    pub(crate) in_flight: usize,
    /// Messages that were sent with a delay, which are not in flight. Only the test reads it.
    #[allow(dead_code)]
    pub(crate) delayed: usize,
    /// Endpoints with an open circuit at the end.
    pub(crate) open_circuits: usize,
    /// Requests to dead endpoints.
    pub(crate) dead_requests: usize,
    pub(crate) quarantined: usize,
}

#[derive(Default)]
struct State {
    visible: VecDeque<(u64, String)>,
    /// Messages that were received, by their receipt.
    received: HashMap<u64, String>,
    hidden: BinaryHeap<Reverse<(Timestamp, u64)>>,
    /// Messages that were sent with a delay.
    delayed: BinaryHeap<Reverse<(Timestamp, String)>>,
    next: u64,
    running: usize,
    measured: Measured,
    records: HashMap<String, DeliveryRecord>,
    due: BinaryHeap<Reverse<(Timestamp, String)>>,
    circuits: HashMap<ClientId, Circuit>,
    latencies: Vec<Duration>,
    slow_latencies: Vec<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Healthy,
    Slow,
    Dead,
}

/// The store, the queue and the endpoints.
#[derive(Clone)]
struct World {
    load: Load,
    began: Instant,
    secrets: Secrets,
    state: Arc<Mutex<State>>,
    chance: Arc<Mutex<fastrand::Rng>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap()
}

impl Clock for World {
    fn now(&self) -> Timestamp {
        let start = Timestamp::from_nanoseconds(1_800_000_000_000_000_000);
        start.after(self.began.elapsed())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

impl World {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// One call of the store.
    async fn call(&self) -> MutexGuard<'_, State> {
        tokio::time::sleep(CALL).await;
        self.state()
    }

    fn endpoint(&self, number: u32) -> Endpoint {
        match number {
            number if number < self.load.dead => Endpoint::Dead,
            number if number < self.load.dead + self.load.slow => Endpoint::Slow,
            _ => Endpoint::Healthy,
        }
    }

    fn client(&self, id: &ClientId, circuit: Circuit) -> Client {
        Client {
            id: id.clone(),
            name: id.to_string(),
            url: "https://client.example/".to_owned(),
            mode: Mode::Latest,
            state: ClientState::Enabled,
            circuit,
            version: Version(1),
            created: Timestamp::default(),
            updated: Timestamp::default(),
        }
    }

    /// Records and queues a new delivery to an endpoint.
    fn queue_new(&self, endpoint: u32, sequence: u64) {
        let client = ClientId::new(format!("c{endpoint}")).unwrap();
        let now = self.now();
        let delivery = Delivery {
            id: DeliveryId::new(&client, now, sequence, "event"),
            event_type: EventType::StateChanged,
            sequence,
            number: sequence,
            occurred_at: now,
            sensor: None,
            data: serde_json::from_str("{}").unwrap(),
        };
        let message = DeliveryMessage::first(&delivery).encode();
        let record = DeliveryRecord {
            status: Status::Pending,
            progress: Progress::default(),
            attempts: Vec::new(),
            updated: now,
            delivery,
        };
        let mut state = self.state();
        let id = record.delivery.id.to_string();
        state.records.insert(id, record);
        state.queue(message);
    }

    /// Queues deliveries of the due index that still wait, as the sweep does. Returns whether there may be more.
    fn sweep(&self) -> bool {
        let mut state = self.state();
        let now = self.now();
        for _ in 0..SWEPT_PER_TICK {
            let is_due = |Reverse((at, _)): &&Reverse<(Timestamp, String)>| *at <= now;
            if state.due.peek().filter(is_due).is_none() {
                return false;
            }
            let Some(Reverse((at, id))) = state.due.pop() else {
                return false;
            };
            let waits = |record: &&DeliveryRecord| {
                let progress = &record.progress;
                progress.waiting == Some(Waiting::Due) && progress.not_before == Some(at)
            };
            let waiting = state.records.get(&id).filter(waits);
            let message = waiting.map(DeliveryRecord::message);
            if let Some(message) = message {
                state.queue(message.encode());
            }
        }
        true
    }

    /// Receives batches and invokes the function, as far as executions are free.
    fn receive(&self, worker: &Arc<Worker<World, World, World>>) {
        let now = self.now();
        let mut state = self.state();
        state.show(now);
        while state.running < self.load.executions && !state.visible.is_empty() {
            let size = self.load.batch.min(state.visible.len());
            let batch: Vec<(u64, String)> = state.visible.drain(..size).collect();
            state.received.extend(batch.iter().cloned());
            state.running += 1;
            let executions = state.measured.executions_at_once.max(state.running);
            state.measured.executions_at_once = executions;
            let in_flight = state.measured.in_flight.max(state.received.len());
            state.measured.in_flight = in_flight;
            let (world, worker) = (self.clone(), Arc::clone(worker));
            tokio::spawn(async move { world.invoke(&worker, batch).await });
        }
    }

    async fn invoke(&self, worker: &Worker<World, World, World>, batch: Vec<(u64, String)>) {
        let record = |(receipt, body): &(u64, String)| {
            json!({
                "messageId": receipt.to_string(),
                "receiptHandle": receipt.to_string(),
                "body": body,
                "attributes": {"SentTimestamp": "1800000000000"},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:deliveries",
            })
        };
        let records: Vec<_> = batch.iter().map(record).collect();
        let event = json!({ "Records": records }).to_string();
        let deadline = self.now().after(FUNCTION_TIMEOUT);
        let summary = worker.process_batch(event.as_bytes(), deadline).await;
        let summary = summary.unwrap();
        let mut state = self.state();
        state.running -= 1;
        state.measured.quarantined += summary.count("quarantined");
        for (receipt, _) in batch {
            if !summary.failed.contains(&receipt.to_string()) {
                state.received.remove(&receipt);
            }
        }
    }
}

impl State {
    fn queue(&mut self, message: String) {
        self.next += 1;
        self.visible.push_back((self.next, message));
    }

    /// Makes messages visible that were hidden or delayed until now.
    fn show(&mut self, now: Timestamp) {
        while let Some(Reverse((at, receipt))) = self.hidden.peek().copied() {
            if at > now {
                break;
            }
            self.hidden.pop();
            if let Some(message) = self.received.remove(&receipt) {
                self.queue(message);
            }
        }
        let is_over = |Reverse((at, _)): &&Reverse<(Timestamp, String)>| *at <= now;
        while self.delayed.peek().filter(is_over).is_some() {
            if let Some(Reverse((_, message))) = self.delayed.pop() {
                self.queue(message);
            }
        }
    }

    fn arrived(&self) -> usize {
        self.latencies.len() + self.slow_latencies.len()
    }

    fn record(&mut self, message: &DeliveryMessage) -> Option<&mut DeliveryRecord> {
        self.records.get_mut(&message.id.to_string())
    }
}

/// A record has not changed since it was read.
fn is_unchanged(stored: &DeliveryRecord, read: &DeliveryRecord) -> bool {
    stored.progress == read.progress && stored.status == read.status
}

impl DeliveryStore for World {
    async fn context(&self, message: &DeliveryMessage) -> Result<DeliveryContext, StoreError> {
        let mut state = self.call().await;
        let id = message.id.client();
        let circuit = state.circuits.get(id).copied().unwrap_or_default();
        Ok(DeliveryContext {
            record: state.record(message).cloned(),
            client: Some((self.client(id, circuit), self.secrets.clone())),
            ..DeliveryContext::default()
        })
    }

    async fn claim(&self, claim: &Claim<'_>) -> Result<bool, StoreError> {
        let mut state = self.call().await;
        let stored = state.record(claim.message);
        let Some(stored) = stored.filter(|stored| is_unchanged(stored, claim.record)) else {
            return Ok(false);
        };
        stored.progress = Progress {
            begun: claim.attempt,
            claimed_until: Some(claim.until),
            queued: stored.progress.queued,
            ..Progress::default()
        };
        Ok(true)
    }

    async fn save(&self, transition: &Transition<'_>) -> Result<Saved, StoreError> {
        let mut state = self.call().await;
        let id = transition.message.id.to_string();
        let Some(stored) = state.records.get_mut(&id) else {
            return Ok(Saved::Changed);
        };
        if transition.claim.is_none() && !is_unchanged(stored, transition.record) {
            return Ok(Saved::Changed);
        }
        stored.status = transition.status;
        stored.progress.claimed_until = None;
        let mut next = None;
        match transition.wait {
            None => drop(state.records.remove(&id)),
            Some(Wait::Due(until)) => {
                stored.progress.not_before = Some(until);
                stored.progress.waiting = Some(Waiting::Due);
                stored.progress.queued += 1;
                next = Some(stored.message());
                state.due.push(Reverse((until, id)));
            }
            Some(Wait::Held | Wait::Behind) => panic!("no client is disabled or in order"),
        }
        Ok(Saved::Applied(next))
    }

    async fn record_failure(
        &self,
        client: &ClientId,
        weight: u32,
        open_until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut state = self.call().await;
        let circuit = state.circuits.entry(client.clone()).or_default();
        circuit.failures += weight;
        circuit.failing_since.get_or_insert(now);
        if open_until.is_some() {
            circuit.open_until = open_until;
            circuit.probing_since = None;
        }
        Ok(())
    }

    async fn record_success(&self, client: &ClientId) -> Result<(), StoreError> {
        self.call().await.circuits.remove(client);
        Ok(())
    }

    async fn claim_probe(
        &self,
        client: &ClientId,
        seen: Option<Timestamp>,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut state = self.call().await;
        let circuit = state.circuits.entry(client.clone()).or_default();
        let claimed = circuit.open_until == seen;
        if claimed {
            circuit.open_until = Some(until);
            circuit.probing_since = Some(now);
        }
        Ok(claimed)
    }

    async fn disable(&self, _: &Client, _: &str, _: Timestamp) -> Result<bool, StoreError> {
        panic!("no client fails for days")
    }
}

impl Sender for World {
    async fn post(&self, post: Post<'_>) -> Result<HttpResponse, PostError> {
        let number = post.id.client().as_str().trim_start_matches('c');
        let endpoint = self.endpoint(number.parse().unwrap());
        match endpoint {
            Endpoint::Dead => {
                self.state().measured.dead_requests += 1;
                tokio::time::sleep(TIMEOUT).await;
                return Err(PostError::Timeout(TIMEOUT));
            }
            Endpoint::Slow => tokio::time::sleep(SLOW).await,
            Endpoint::Healthy => {
                let milliseconds = lock(&self.chance).u64(RESPONSE_MILLISECONDS);
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            }
        }
        let latency = time_left(post.id.time(), self.now());
        let mut state = self.state();
        match endpoint {
            Endpoint::Slow => state.slow_latencies.push(latency),
            _ => state.latencies.push(latency),
        }
        Ok(HttpResponse {
            status: 204,
            retry_after: None,
        })
    }
}

impl MessageVisibility for World {
    async fn postpone(&self, _: &str, receipt: &str, by: Duration) -> Result<(), String> {
        let until = self.now().after(by);
        let mut state = self.call().await;
        state
            .hidden
            .push(Reverse((until, receipt.parse().unwrap())));
        Ok(())
    }
}

/// The queue, for messages that are sent with a delay.
#[async_trait]
impl Channel for World {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: 1,
            batch_bytes: 1024,
            message_bytes: 1024,
        }
    }

    async fn send(&self, messages: &[Message]) -> Vec<Result<(), SendError>> {
        let mut state = self.call().await;
        for message in messages {
            let delay = Duration::from_secs(message.delay_seconds.unwrap().into());
            let at = self.now().after(delay);
            state.delayed.push(Reverse((at, message.body.clone())));
            state.measured.delayed += 1;
        }
        messages.iter().map(|_| Ok(())).collect()
    }
}

/// Runs a load. The runtime must be single-threaded, with its time paused.
pub(crate) async fn run(load: Load) -> Measured {
    fastrand::seed(1);
    let world = World {
        load,
        began: Instant::now(),
        secrets: Secrets {
            current: Secret::random(),
            previous: None,
            requested: None,
        },
        state: Arc::default(),
        chance: Arc::new(Mutex::new(fastrand::Rng::with_seed(1))),
    };
    let other: Arc<RecordingChannel> = Arc::default();
    let queues = Queues {
        ordered: other.clone(),
        unordered: Arc::new(world.clone()),
    };
    let dead_letters = DeadLetters {
        queues: Queues {
            ordered: other.clone(),
            unordered: other.clone(),
        },
        ordered_source: String::new(),
        unordered_source: String::new(),
    };
    let clock = Arc::new(world.clone());
    let (store, sender) = (world.clone(), world.clone());
    let deliver = Deliver::new(store, sender, queues, dead_letters, clock, load.policy);
    let worker = Worker::new(deliver, world.clone(), Quarantine::new(other));
    let worker = Arc::new(worker);

    let ticks_per_second = (1000 / TICK.as_millis()) as u64;
    let rate = u64::from(load.webhooks_per_second);
    let ticks = u64::from(load.seconds) * ticks_per_second;
    let rest = (REST.as_millis() / TICK.as_millis()) as u64;
    let mut ticking = tokio::time::interval(TICK);
    let (mut queued, mut responding, mut swept) = (0, 0, Duration::ZERO);
    let mut sweeping = false;
    for tick in 1..=ticks + rest {
        ticking.tick().await;
        while tick <= ticks && queued < tick * rate / ticks_per_second {
            let endpoint = lock(&world.chance).u32(..load.endpoints);
            responding += usize::from(world.endpoint(endpoint) != Endpoint::Dead);
            world.queue_new(endpoint, queued);
            queued += 1;
        }
        if world.began.elapsed() >= swept + SWEEP_PERIOD {
            swept += SWEEP_PERIOD;
            sweeping = true;
        }
        if sweeping {
            sweeping = world.sweep();
        }
        world.receive(&worker);
        if tick > ticks && world.state().arrived() == responding {
            break;
        }
    }
    // The results of the last responses are recorded.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut state = world.state();
    let now = world.now();
    let is_open = |circuit: &&Circuit| circuit.open_until.is_some_and(|until| until > now);
    let open_circuits = state.circuits.values().filter(is_open).count();
    state.latencies.sort_unstable();
    let (latencies, measured) = (&state.latencies, state.measured.clone());
    let percentile = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
    Measured {
        p50: percentile(50),
        p99: percentile(99),
        longest: percentile(100),
        longest_of_slow: state
            .slow_latencies
            .iter()
            .max()
            .copied()
            .unwrap_or_default(),
        missing: responding - state.arrived(),
        open_circuits,
        ..measured
    }
}
