//! Processes the signals of one event: states, readings, quarantine, progress.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antumbra_lambda_kit::batch::{
    BatchSummary, Group, Rejection, Step, process_groups, quarantine_rejected, waiting,
};
use antumbra_lambda_kit::{Handler, HandlerError, Invocation, Response};
use antumbra_service::clock::{Clock, Reserve, time_left};
use antumbra_service::liveness::IngestProgress;
use antumbra_service::quarantine::{Quarantine, QuarantinedMessage};
use antumbra_service::sensors::{
    OwnedReading, Recorded, SensorStore, Signal, StateStore, StoreError,
};
use antumbra_shadow::Timestamp;
use async_trait::async_trait;

use crate::arrival::{self, EventError, IncomingSignal, IncomingSignals};
use crate::plan::{self, Task};
use crate::redelivered::Redelivered;
use crate::rules::{Rules, UnknownSensorPolicy};

/// Groups whose states are written side by side.
const CONCURRENCY: usize = 32;
/// Time kept back for readings, and below for the quarantine, for markers and for the response.
const READINGS: Reserve = reserve(6000, 3);
const QUARANTINE: Reserve = reserve(3000, 6);
const MARKERS: Reserve = reserve(1500, 12);
const RESPONSE: Reserve = reserve(500, 24);

/// Names of the function's counters. Those after `quarantined` are the outcomes of signals.
pub const COUNTERS: &[&str] = &[
    "messages",
    "registered",
    "quarantined",
    "first",
    "changed",
    "same",
    "stale",
    "duplicate",
];

pub struct Ingest<S, P, R> {
    states: S,
    progress: P,
    unknown: UnknownSensorPolicy<R>,
    quarantine: Quarantine,
    rules: Rules,
    clock: Arc<dyn Clock>,
    redelivered: Redelivered,
}

impl<S: StateStore, P: IngestProgress, R: SensorStore> Ingest<S, P, R> {
    pub fn new(
        states: S,
        progress: P,
        unknown: UnknownSensorPolicy<R>,
        quarantine: Quarantine,
        rules: Rules,
        clock: Arc<dyn Clock>,
    ) -> Ingest<S, P, R> {
        Ingest {
            states,
            progress,
            unknown,
            quarantine,
            rules,
            clock,
            redelivered: Redelivered::default(),
        }
    }

    /// Processes one event. Fails as a whole only if it is neither an SQS nor a RabbitMQ event.
    pub async fn process_batch(
        &self,
        event: &[u8],
        deadline: Timestamp,
    ) -> Result<BatchSummary, EventError> {
        let start = self.clock.now();
        let IncomingSignals {
            messages,
            all_or_nothing,
        } = arrival::read(event, start, &self.redelivered)?;
        let (messages, tasks) = plan::in_order(messages, &self.rules);
        let mut summary = BatchSummary::new(COUNTERS);
        summary.add("messages", messages.len());
        summary.all_or_nothing = all_or_nothing;
        let ages = messages
            .iter()
            .map(|message| time_left(message.sent, start));
        summary.oldest = ages.max();

        let until = READINGS.deadline(deadline, start);
        let mut steps = self.record(&messages, &tasks, until, &mut summary).await;
        let until = QUARANTINE.deadline(deadline, start);
        self.save_readings(&tasks, &mut steps, until, &mut summary)
            .await;
        // Before the quarantine: a rejected message behind one that is received again would be
        // quarantined twice.
        fail_behind_failures(&messages, &mut steps);
        let until = MARKERS.deadline(deadline, start);
        let quarantined = self.quarantine(&messages, &mut steps, until).await;
        summary.add("quarantined", quarantined);
        fail_behind_failures(&messages, &mut steps);
        let until = RESPONSE.deadline(deadline, start);
        self.record_markers(&messages, &tasks, &mut steps, until)
            .await;

        for (message, step) in messages.iter().zip(&steps) {
            if let Step::Failed(reason) = step {
                summary.fail(&message.id, reason);
            }
        }
        if all_or_nothing && !summary.failed.is_empty() {
            let arrivals = messages.iter();
            self.redelivered
                .remember(arrivals.map(|message| (message.id.as_str(), message.time)));
        }
        Ok(summary)
    }

    /// Writes the states, the groups side by side.
    async fn record(
        &self,
        messages: &[IncomingSignal],
        tasks: &[Task],
        until: Timestamp,
        summary: &mut BatchSummary,
    ) -> Vec<Step<Recorded>> {
        let mut steps: Vec<Step<Recorded>> = tasks
            .iter()
            .map(|task| match task {
                Task::Reject(rejection) => Step::Rejected(rejection.clone()),
                Task::Signal(_) | Task::Marker => Step::Pending,
            })
            .collect();
        let groups: Vec<_> = messages
            .iter()
            .zip(tasks)
            .map(|(message, task)| group(message, task))
            .collect();
        let registered = AtomicUsize::new(0);
        process_groups(&mut steps, groups, CONCURRENCY, |index| {
            let (task, registered) = (&tasks[index], &registered);
            async move {
                let Task::Signal(signal) = task else {
                    return Step::Pending;
                };
                let left = time_left(self.clock.now(), until);
                // Boxed: futures of SDK calls are large types.
                let recording = Box::pin(self.record_one(signal, registered));
                let recorded = tokio::time::timeout(left, recording).await;
                recorded.unwrap_or_else(|_| Step::Failed("no time left".to_owned()))
            }
        })
        .await;
        summary.add("registered", registered.into_inner());
        steps
    }

    async fn record_one(&self, signal: &Signal, registered: &AtomicUsize) -> Step<Recorded> {
        match self.states.record(signal).await {
            Ok(Some(recorded)) => return Step::Processed(recorded),
            Ok(None) => {}
            Err(error) => return store_failure(&error),
        }
        let UnknownSensorPolicy::AutoRegister {
            sensors,
            registration,
        } = &self.unknown
        else {
            let detail = format!("no sensor has the id {}", signal.sensor());
            return Step::Rejected(Rejection::new("UnknownSensor", detail));
        };
        match registration
            .register(sensors, signal.sensor(), self.clock.now())
            .await
        {
            Ok(new) => registered.fetch_add(usize::from(new), Ordering::Relaxed),
            Err(error) => return store_failure(&error),
        };
        match self.states.record(signal).await {
            Ok(Some(recorded)) => Step::Processed(recorded),
            Ok(None) => Step::Failed("the sensor was unregistered in between".to_owned()),
            Err(error) => store_failure(&error),
        }
    }

    /// Saves a reading for every signal whose state is written.
    async fn save_readings(
        &self,
        tasks: &[Task],
        steps: &mut [Step<Recorded>],
        until: Timestamp,
        summary: &mut BatchSummary,
    ) {
        let mut readings: Vec<OwnedReading> = Vec::new();
        let mut positions = Vec::new();
        for (index, (task, step)) in tasks.iter().zip(steps.iter()).enumerate() {
            if let (Task::Signal(signal), Step::Processed(recorded)) = (task, step) {
                readings.push(signal.reading(recorded.owner.clone()));
                positions.push((index, recorded.outcome));
            }
        }
        if readings.is_empty() {
            return;
        }
        let left = time_left(self.clock.now(), until);
        let saving = Box::pin(self.states.save_readings(&readings));
        let saved = tokio::time::timeout(left, saving).await;
        let late = || Err(StoreError::Unavailable("no time left".to_owned()));
        let saved = saved.unwrap_or_default();
        let saved = saved.into_iter().chain(std::iter::repeat_with(late));
        for ((index, outcome), saved) in positions.into_iter().zip(saved) {
            steps[index] = match saved {
                Ok(()) => {
                    summary.add(outcome.as_str(), 1);
                    Step::Done
                }
                Err(error) => store_failure(&error),
            };
        }
    }

    async fn quarantine(
        &self,
        messages: &[IncomingSignal],
        steps: &mut [Step<Recorded>],
        until: Timestamp,
    ) -> usize {
        let limit = self.quarantine.text_bytes();
        let quarantined = |index: usize, rejection: &Rejection| QuarantinedMessage {
            id: messages[index].id.clone(),
            text: messages[index].quarantine_text(limit),
            source: messages[index].source.clone(),
            origin: None,
            reason: rejection.reason,
            detail: rejection.detail.clone(),
        };
        quarantine_rejected(&self.quarantine, steps, until, &*self.clock, quarantined).await
    }

    /// Records how far queues were read, unless a message sent before the marker is received again.
    async fn record_markers(
        &self,
        messages: &[IncomingSignal],
        tasks: &[Task],
        steps: &mut [Step<Recorded>],
        until: Timestamp,
    ) {
        let mut newest: BTreeMap<&str, Timestamp> = BTreeMap::new();
        let mut markers = Vec::new();
        for (index, (message, task)) in messages.iter().zip(tasks).enumerate() {
            if *task != Task::Marker || matches!(steps[index], Step::Failed(_)) {
                continue;
            }
            let is_unprocessed = |(other, step): (&IncomingSignal, &Step<Recorded>)| {
                matches!(step, Step::Failed(_)) && other.sent <= message.sent
            };
            if messages.iter().zip(steps.iter()).any(is_unprocessed) {
                steps[index] = Step::Failed("an earlier message was not processed".to_owned());
                continue;
            }
            let reached = newest.entry(&message.queue).or_insert(message.sent);
            *reached = message.sent.max(*reached);
            markers.push(index);
        }
        for (queue, sent) in newest {
            let left = time_left(self.clock.now(), until);
            let noted = tokio::time::timeout(left, self.progress.note(queue, sent)).await;
            let step = match noted {
                Ok(Ok(())) => Step::Done,
                Ok(Err(error)) => Step::Failed(error.to_string()),
                Err(_) => Step::Failed("no time left".to_owned()),
            };
            for &index in markers.iter().filter(|&&at| messages[at].queue == queue) {
                steps[index] = step.clone();
            }
        }
    }
}

#[async_trait]
impl<S: StateStore, P: IngestProgress, R: SensorStore> Handler for Ingest<S, P, R> {
    async fn handle(&self, invocation: Invocation) -> Result<Response, HandlerError> {
        let summary = self.process_batch(&invocation.event, invocation.deadline);
        summary.await.map_err(HandlerError::event)?.response()
    }
}

/// Signals are recorded in order per group of a FIFO queue, otherwise per sensor.
fn group<'a>(message: &'a IncomingSignal, task: &'a Task) -> Option<Group<'a>> {
    let key = match (&message.group, task) {
        (Some(group), _) => group.as_str(),
        (None, Task::Signal(signal)) => signal.sensor().as_str(),
        (None, _) => return None,
    };
    Some(Group {
        key,
        stop_at_failure: true,
    })
}

fn store_failure(error: &StoreError) -> Step<Recorded> {
    if error.is_retryable() {
        Step::Failed(error.to_string())
    } else {
        Step::Rejected(Rejection::new("Unstorable", error))
    }
}

/// In a group of a FIFO queue, no message may succeed behind one that failed.
fn fail_behind_failures(messages: &[IncomingSignal], steps: &mut [Step<Recorded>]) {
    let mut failed: HashSet<&str> = HashSet::new();
    for (message, step) in messages.iter().zip(steps) {
        let Some(group) = &message.group else {
            continue;
        };
        if matches!(step, Step::Failed(_)) {
            failed.insert(group);
        } else if failed.contains(group.as_str()) {
            *step = waiting();
        }
    }
}

const fn reserve(milliseconds: u64, share: u32) -> Reserve {
    Reserve {
        time: Duration::from_millis(milliseconds),
        share,
    }
}
