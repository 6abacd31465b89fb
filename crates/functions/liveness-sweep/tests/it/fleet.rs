//! A world to simulate: sensors that speak and fall silent, a queue that delivers late, twice and out of
//! order, or not at all for hours, functions that read it, and a clock that all of them go by.
//!
//! Time passes in the world alone: whoever sleeps lets everything happen that happens meanwhile.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_liveness_sweep::{Sweeper, queue_probe};
use antumbra_sensor_ingest::{Ingest, Rules, UnknownSensorPolicy};
use antumbra_service::clock::Clock;
use antumbra_service::liveness::Limits;
use antumbra_service::notifications::{BoxFuture, Channel, ChannelLimits, Message, SendError};
use antumbra_service::quarantine::Quarantine;
use antumbra_service::sensors::moment::{from_milliseconds, milliseconds};
use antumbra_service::sensors::{SensorStore, SilenceTimeout, What, occurrences::between};
use antumbra_shadow::Timestamp;
use antumbra_testkit::progress::MemoryProgress;
use antumbra_testkit::sensors::MemorySensors;
use antumbra_testkit::sensors::sample::{self, NOON_MS};
use serde_json::json;

/// Milliseconds by which a message may be delivered late.
pub(crate) const DELIVERY_MS: i64 = 3000;
/// How long a sweep waits for what its marker overtook, and for the marker.
pub(crate) const SETTLE: Duration = Duration::from_secs(5);
pub(crate) const WAIT: Duration = Duration::from_secs(10);
pub(crate) const PERIOD_MS: i64 = 60_000;
const URL: &str = "http://127.0.0.1/000000000000/antumbra-signals";

/// The time, which stands still unless the world moves it.
#[derive(Clone, Default)]
pub(crate) struct Now(Arc<AtomicI64>);

impl Now {
    pub(crate) fn ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    fn advance_to(&self, ms: i64) {
        self.0.fetch_max(ms, Ordering::SeqCst);
    }
}

impl Clock for Now {
    fn now(&self) -> Timestamp {
        from_milliseconds(self.ms())
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::task::yield_now())
    }
}

/// How a sensor lives.
#[derive(Debug, Clone)]
pub(crate) struct Habit {
    pub(crate) silence_s: i64,
    /// Between two messages, at least and at most.
    pub(crate) every_ms: (i64, i64),
    /// Out of 10,000: how likely it falls silent after a message, and for how long.
    pub(crate) falls_silent: u64,
    pub(crate) silent_ms: (i64, i64),
    /// Whether it says when it measured, and how wrong its clock is.
    pub(crate) clock_ms: Option<i64>,
}

enum Happens {
    Speaks(usize),
    Delivered(u64),
}

struct Queued {
    sent: i64,
    text: String,
}

/// What is seen of one sensor: when the queue took its messages, and when it was found lost.
#[derive(Default, Clone)]
pub(crate) struct Seen {
    pub(crate) sent: Vec<i64>,
    pub(crate) lost: Vec<i64>,
    pub(crate) restored: usize,
    pub(crate) changed: usize,
}

#[derive(Default)]
struct Inner {
    agenda: BinaryHeap<Reverse<(i64, u64)>>,
    happens: BTreeMap<u64, Happens>,
    numbers: u64,
    queue: BTreeMap<u64, Queued>,
    paused: bool,
    habits: Vec<Habit>,
    seen: Vec<Seen>,
}

impl Inner {
    fn plan(&mut self, at: i64, what: Happens) {
        self.numbers += 1;
        self.happens.insert(self.numbers, what);
        self.agenda.push(Reverse((at, self.numbers)));
    }
}

type Worker = Ingest<MemorySensors, MemoryProgress, MemorySensors>;

/// All of it.
pub(crate) struct World {
    pub(crate) now: Now,
    pub(crate) sensors: MemorySensors,
    progress: MemoryProgress,
    inner: Mutex<Inner>,
    random: Mutex<fastrand::Rng>,
    workers: Mutex<Vec<Arc<Worker>>>,
    pub(crate) messages: AtomicI64,
}

impl World {
    pub(crate) fn new(seed: u64) -> Arc<World> {
        let now = Now::default();
        now.advance_to(NOON_MS);
        let world = World {
            now,
            sensors: MemorySensors::new(4).without_readings(),
            progress: MemoryProgress::default(),
            inner: Mutex::default(),
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
            workers: Mutex::default(),
            messages: AtomicI64::new(0),
        };
        world.restart();
        let world = Arc::new(world);
        world.watch();
        world
    }

    /// New instances of the function, with nothing remembered.
    pub(crate) fn restart(&self) {
        let worker = || {
            Arc::new(Ingest::new(
                self.sensors.clone(),
                self.progress.clone(),
                UnknownSensorPolicy::Quarantine,
                Quarantine::new(Arc::new(Nowhere)),
                Rules::default(),
                Arc::new(self.now.clone()),
            ))
        };
        *self.workers.lock().unwrap() = (0..3).map(|_| worker()).collect();
    }

    /// Sees every write of a state as the stream would tell it, and that nothing is out of order.
    fn watch(self: &Arc<World>) {
        let world = Arc::downgrade(self);
        let mut sequences: BTreeMap<String, u64> = BTreeMap::new();
        self.sensors.watch(move |old, new| {
            let Some(world) = world.upgrade() else {
                return;
            };
            let mut inner = world.inner.lock().unwrap();
            let index: usize = new.sensor.as_str()[1..].parse().unwrap();
            let seen = &mut inner.seen[index];
            let mut restored = false;
            for occurrence in between(old, new) {
                let last = sequences.entry(new.sensor.to_string()).or_default();
                *last += 1;
                assert_eq!(occurrence.sequence, *last, "no gap, none twice");
                match occurrence.what {
                    What::Lost { .. } | What::NeverSeen { .. } => seen.lost.push(world.now.ms()),
                    What::Restored { .. } => {
                        restored = true;
                        seen.restored += 1;
                    }
                    What::Changed { .. } => {
                        let was_lost = old.is_some_and(|old| !old.is_awaited());
                        assert!(restored || !was_lost, "restored before changed");
                        seen.changed += 1;
                    }
                }
            }
        });
    }

    pub(crate) fn between(&self, (least, most): (i64, i64)) -> i64 {
        self.random.lock().unwrap().i64(least..=most)
    }

    /// Registers a sensor now; it speaks a first time after that long, or never.
    pub(crate) async fn add(&self, habit: Habit, first_ms: Option<i64>) {
        let index = {
            let mut inner = self.inner.lock().unwrap();
            inner.habits.push(habit.clone());
            inner.seen.push(Seen::default());
            inner.seen.len() - 1
        };
        let mut sensor = sample::somewhere(&format!("s{index}"));
        sensor.silence_after = SilenceTimeout::seconds(habit.silence_s as u64).unwrap();
        let mut registered = sample::new(sensor);
        registered.registered_at = self.now.now();
        self.sensors.register(&registered).await.unwrap();
        if let Some(first_ms) = first_ms {
            let at = self.now.ms() + first_ms;
            self.inner.lock().unwrap().plan(at, Happens::Speaks(index));
        }
    }

    pub(crate) fn seen(&self) -> Vec<(Habit, Seen)> {
        let inner = self.inner.lock().unwrap();
        let habits = inner.habits.iter().cloned();
        habits.zip(inner.seen.iter().cloned()).collect()
    }

    /// Nobody reads the queue from now on, or somebody does again.
    pub(crate) fn pause(&self, paused: bool) {
        let mut inner = self.inner.lock().unwrap();
        inner.paused = paused;
        if !paused {
            let waiting: Vec<u64> = inner.queue.keys().copied().collect();
            for (place, number) in waiting.into_iter().enumerate() {
                // A thousand a second, roughly in order.
                let at = self.now.ms() + place as i64 + self.between((0, DELIVERY_MS));
                inner.plan(at, Happens::Delivered(number));
            }
        }
    }

    fn enqueue(&self, text: String) {
        let mut inner = self.inner.lock().unwrap();
        inner.numbers += 1;
        let (number, sent) = (inner.numbers, self.now.ms());
        inner.queue.insert(number, Queued { sent, text });
        if !inner.paused {
            let at = sent + self.between((0, DELIVERY_MS));
            inner.plan(at, Happens::Delivered(number));
        }
    }

    /// Lets everything happen until then, in order.
    pub(crate) fn until(self: &Arc<World>, end: i64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let world = Arc::clone(self);
        Box::pin(async move {
            loop {
                let next = {
                    let mut inner = world.inner.lock().unwrap();
                    match inner.agenda.peek() {
                        Some(Reverse((at, _))) if *at <= end => {}
                        _ => break,
                    }
                    let Some(Reverse((at, number))) = inner.agenda.pop() else {
                        break;
                    };
                    inner.happens.remove(&number).map(|what| (at, what))
                };
                let Some((at, what)) = next else {
                    continue;
                };
                world.now.advance_to(at);
                match what {
                    Happens::Speaks(sensor) => world.speak(sensor),
                    Happens::Delivered(number) => world.deliver(number).await,
                }
            }
            world.now.advance_to(end);
        })
    }

    fn speak(&self, sensor: usize) {
        let now = self.now.ms();
        let habit = self.inner.lock().unwrap().habits[sensor].clone();
        let data = self.between((0, 1));
        let mut said = json!({"sensor_id": format!("s{sensor}"), "data": data});
        if let Some(wrong_ms) = habit.clock_ms {
            // Sometimes from its memory, measured an hour before.
            let kept = if self.between((0, 19)) == 0 {
                3_600_000
            } else {
                0
            };
            said["ts"] = json!(from_milliseconds(now + wrong_ms - kept).to_string());
            said["seq"] = json!(self.between((0, 1 << 40)));
        }
        self.enqueue(said.to_string());
        let falls_silent = self.between((0, 9999)) < habit.falls_silent as i64;
        let pause = if falls_silent {
            habit.silent_ms
        } else {
            habit.every_ms
        };
        let next = now + self.between(pause);
        let mut inner = self.inner.lock().unwrap();
        inner.seen[sensor].sent.push(now);
        inner.plan(next, Happens::Speaks(sensor));
    }

    /// Hands a message to one of the instances, and one in twenty a second time, later.
    async fn deliver(self: &Arc<World>, number: u64) {
        let event = {
            let mut inner = self.inner.lock().unwrap();
            if inner.paused {
                return;
            }
            let again = self.between((0, 19)) == 0;
            if again {
                let at = self.now.ms() + self.between((0, 20_000));
                inner.plan(at, Happens::Delivered(number));
            }
            let Some(queued) = inner.queue.get(&number) else {
                return;
            };
            let event = json!({"Records": [{
                "messageId": format!("m{number}"),
                "body": queued.text,
                "attributes": {"SentTimestamp": queued.sent.to_string()},
                "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:antumbra-signals",
            }]});
            if !again {
                inner.queue.remove(&number);
            }
            event.to_string()
        };
        self.messages.fetch_add(1, Ordering::Relaxed);
        let worker = {
            let workers = self.workers.lock().unwrap();
            let at = self.between((0, workers.len() as i64 - 1));
            Arc::clone(&workers[at as usize])
        };
        let deadline = self.now.now().after(Duration::from_secs(30));
        let summary = worker
            .process_batch(event.as_bytes(), deadline)
            .await
            .unwrap();
        assert_eq!(
            (summary.failed.len(), summary.count("quarantined")),
            (0, 0),
            "{event}"
        );
    }

    /// A sweep as the schedule calls it: a new instance each time, that knows nothing.
    pub(crate) fn sweeper(self: &Arc<World>) -> Sweeper<MemorySensors, MemoryProgress> {
        let probe = queue_probe(Arc::new(Markers(Arc::clone(self))), URL, WAIT, SETTLE);
        Sweeper::new(
            self.sensors.clone(),
            self.progress.clone(),
            Some(probe),
            Limits::default(),
            Arc::new(WorldClock(Arc::clone(self))),
        )
    }

    /// The time so many milliseconds from now.
    pub(crate) fn after(&self, milliseconds: u64) -> Timestamp {
        self.now.now().after(Duration::from_millis(milliseconds))
    }
}

/// A clock whose sleeper lets the world go on.
pub(crate) struct WorldClock(Arc<World>);

impl Clock for WorldClock {
    fn now(&self) -> Timestamp {
        self.0.now.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        let end = milliseconds(self.now().after(duration));
        Box::pin(async move {
            // Whoever goes to sleep at the same time does so before time passes.
            tokio::task::yield_now().await;
            self.0.until(end).await;
        })
    }
}

const LIMITS: ChannelLimits = ChannelLimits {
    batch_count: 10,
    batch_bytes: 1000,
    message_bytes: 1000,
};

/// The way into the queue for markers.
struct Markers(Arc<World>);

impl Channel for Markers {
    fn limits(&self) -> ChannelLimits {
        LIMITS
    }

    fn send<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(async move {
            for message in messages {
                self.0.enqueue(message.body.clone());
            }
            messages.iter().map(|_| Ok(())).collect()
        })
    }
}

/// A quarantine that nothing may reach.
struct Nowhere;

impl Channel for Nowhere {
    fn limits(&self) -> ChannelLimits {
        LIMITS
    }

    fn send<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        panic!("put away: {messages:?}")
    }
}
