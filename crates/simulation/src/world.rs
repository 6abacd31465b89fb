//! State that all parts of a run share.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use antumbra_queues::queue::Message;
use aws_types::SdkConfig;

use crate::aim::{Aims, Caller, Intervention};
use crate::chance::Chance;
use crate::clock::VirtualClock;
use crate::cloud::Cloud;
use crate::executor::Spawner;
use crate::profile::{Faults, Profile};
use crate::trace::Trace;

/// Maximum number of polls of an invocation before it crashes, as a power of two.
const CRASH_POLLS: u64 = 7;

pub(crate) struct World {
    pub(crate) chance: Chance,
    pub(crate) profile: Profile,
    pub(crate) clock: VirtualClock,
    pub(crate) spawner: Spawner,
    pub(crate) cloud: Cloud,
    pub(crate) sdk: SdkConfig,
    pub(crate) trace: Trace,
    /// End of the last fault in milliseconds; 0 while faults occur.
    faults_ended_ms: AtomicU64,
    busy: AtomicUsize,
    /// Invocations by function, and how many of them crashed.
    counts: Mutex<BTreeMap<&'static str, (u64, u64)>>,
    received: Mutex<Received>,
    /// Invariants that were violated during the run.
    broken: Mutex<Vec<Violation>>,
}

/// Deliveries of messages to functions.
#[derive(Default)]
struct Received {
    batches: u64,
    /// Time in milliseconds and batch of each message.
    messages: BTreeMap<String, Vec<(u64, u64)>>,
    /// Markers by the time at which they were sent.
    markers: BTreeMap<u64, Marker>,
}

/// A marker of the sweep. Times are in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marker {
    /// Time of the first delivery.
    pub(crate) received_at: u64,
    /// Time and batch in which it was processed.
    pub(crate) processed: Option<(u64, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub invariant: &'static str,
    /// The observation that violates it.
    pub seen: String,
}

impl World {
    pub(crate) fn new(
        chance: Chance,
        profile: Profile,
        spawner: Spawner,
        traced: bool,
    ) -> Result<Arc<World>, dynoxide::DynoxideError> {
        let clock = VirtualClock::start();
        let trace = Trace::new(clock, traced);
        let cloud = Cloud::new(chance.split(), clock, spawner.clone(), trace.clone())?;
        Ok(Arc::new(World {
            sdk: cloud.sdk(),
            chance,
            profile,
            clock,
            spawner,
            cloud,
            trace,
            faults_ended_ms: AtomicU64::new(1),
            busy: AtomicUsize::new(0),
            counts: Mutex::default(),
            received: Mutex::default(),
            broken: Mutex::default(),
        }))
    }

    /// Begins the phase with faults.
    pub(crate) fn begin_faults(&self, intervention: Intervention) {
        self.trace
            .step("faults begin", || format!("{:?}", self.profile));
        self.faults_ended_ms.store(0, Ordering::Relaxed);
        let outages = self.profile.outages.iter();
        let outages = outages.chain(&self.profile.target_outage).cloned();
        self.cloud
            .set_faults(self.profile.faults, outages.collect());
        self.cloud
            .set_aims(self.profile.aims.clone(), Some(intervention));
    }

    /// Ends the phase with faults.
    pub(crate) fn end_faults(&self) {
        self.trace.step("faults end", String::new);
        self.faults_ended_ms
            .store(self.clock.milliseconds(), Ordering::Relaxed);
        self.cloud.set_faults(Faults::default(), Vec::new());
        self.cloud.set_aims(Aims::default(), None);
    }

    /// Returns the time of the end of the faults in milliseconds.
    pub(crate) fn faults_ended_ms(&self) -> u64 {
        self.faults_ended_ms.load(Ordering::Relaxed)
    }

    /// Returns whether there are no random faults.
    pub(crate) fn is_free_of_faults(&self) -> bool {
        self.faults_ended_ms() > 0
    }

    /// Draws whether a fault of this probability occurs now.
    pub(crate) fn draws_fault(&self, often: f64) -> bool {
        !self.is_free_of_faults() && self.chance.happens(often)
    }

    /// Returns whether the history writer is not invoked now.
    pub(crate) fn is_history_paused(&self) -> bool {
        let pause = self.profile.history_pause;
        pause.is_some_and(|[from, until]| (from..until).contains(&self.clock.elapsed()))
    }

    /// Marks work that is not over although no function runs, such as a retry that waits.
    pub(crate) fn begin_work(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_work(&self) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn broken(&self, invariant: &'static str, seen: String) {
        self.trace.step("BROKEN", || format!("{invariant}: {seen}"));
        lock(&self.broken).push(Violation { invariant, seen });
    }

    /// Returns all violated invariants so far.
    pub(crate) fn all_broken(&self) -> Vec<Violation> {
        lock(&self.broken).clone()
    }

    /// Records that a batch of messages is passed to a function; returns the number of the batch.
    pub(crate) fn record_receipt(&self, messages: &[Message]) -> u64 {
        let now = self.clock.milliseconds();
        let mut received = lock(&self.received);
        received.batches += 1;
        let batch = received.batches;
        for message in messages {
            if is_marker(message) {
                let marker = Marker {
                    received_at: now,
                    processed: None,
                };
                received.markers.entry(message.sent_ms).or_insert(marker);
            }
            let times = received.messages.entry(message.id.clone()).or_default();
            times.push((now, batch));
        }
        batch
    }

    /// Records that a function has processed a message of a batch.
    pub(crate) fn record_processed(&self, message: &Message, batch: u64) {
        let now = self.clock.milliseconds();
        let mut received = lock(&self.received);
        if let Some(marker) = received.markers.get_mut(&message.sent_ms)
            && is_marker(message)
        {
            marker.processed.get_or_insert((now, batch));
        }
    }

    /// The first processed marker that covers everything sent until then.
    pub(crate) fn marker_of(&self, until: u64) -> Option<Marker> {
        let received = lock(&self.received);
        let mut markers = received.markers.range(until..);
        markers.next().map(|(_, marker)| *marker)
    }

    /// Returns whether a message was in a batch.
    pub(crate) fn was_in(&self, message: &str, batch: u64) -> bool {
        let received = lock(&self.received);
        let times = received.messages.get(message);
        times.is_some_and(|times| times.iter().any(|(_, other)| *other == batch))
    }

    /// Invocations by function, and how many of them crashed.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, (u64, u64)> {
        lock(&self.counts).clone()
    }

    /// Runs a function within its timeout; `None` if it crashed between two steps or timed out.
    pub(crate) async fn invoke<T>(
        &self,
        name: &'static str,
        timeout: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        self.begin_work();
        let done = self.run_crashing(name, timeout, work).await;
        self.end_work();
        done
    }

    /// Like [`World::invoke`], for a program outside: nobody waits for its end.
    pub(crate) async fn run_crashing<T>(
        &self,
        name: &'static str,
        timeout: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let most = 1 << self.chance.between(0, CRASH_POLLS);
        let mut polls_left = self
            .draws_fault(self.profile.crash)
            .then(|| self.chance.between(1, most));
        let done = {
            let mut work = std::pin::pin!(work);
            let caller = Caller::new(name);
            let crashing = poll_fn(|context| {
                match &mut polls_left {
                    Some(0) => return Poll::Ready(None),
                    Some(left) => *left -= 1,
                    None => {}
                }
                let polled = self.cloud.run_as(&caller, || work.as_mut().poll(context));
                if caller.has_ended() {
                    return Poll::Ready(None);
                }
                polled.map(Some)
            });
            tokio::time::timeout(timeout, crashing).await
        };
        let done = done.unwrap_or_default();
        let mut counts = lock(&self.counts);
        let count = counts.entry(name).or_default();
        count.0 += 1;
        count.1 += u64::from(done.is_none());
        if done.is_none() {
            self.trace.step("crash", || name.to_owned());
        }
        done
    }
}

fn is_marker(message: &Message) -> bool {
    message.body.contains("\"marker\"")
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
