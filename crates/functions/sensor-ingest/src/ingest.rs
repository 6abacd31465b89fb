//! The function: states, readings, quarantine, progress, answer.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use antumbra_service::clock::{Clock, Reserve, time_left};
use antumbra_service::liveness::IngestProgress;
use antumbra_service::quarantine::{Quarantine, QuarantinedMessage};
use antumbra_service::sensors::{
    OwnedReading, Recorded, SensorStore, Signal, StateStore, StoreError,
};
use antumbra_shadow::Timestamp;
use futures_util::{StreamExt, stream};

use crate::arrival::{self, EventError, IncomingSignal, IncomingSignals};
use crate::plan::{self, Rejection, Task};
use crate::redelivered::Redelivered;
use crate::rules::{Rules, UnknownSensorPolicy};
use crate::summary::BatchSummary;

/// Sensors whose state is written side by side.
const AT_ONCE: usize = 32;
/// Time kept from the end of an invocation for readings, the quarantine, markers and the answer, and the
/// part of all its time that each may be at most: a function that is given little must still work.
const READINGS: Reserve = Reserve {
    time: Duration::from_millis(6000),
    share: 3,
};
const PUTTING_AWAY: Reserve = Reserve {
    time: Duration::from_millis(3000),
    share: 6,
};
const NOTING: Reserve = Reserve {
    time: Duration::from_millis(1500),
    share: 12,
};
const ANSWERING: Reserve = Reserve {
    time: Duration::from_millis(500),
    share: 24,
};

/// Takes in what sensors say.
pub struct Ingest<S, P, R> {
    states: S,
    progress: P,
    admission: UnknownSensorPolicy<R>,
    quarantine: Quarantine,
    rules: Rules,
    clock: Arc<dyn Clock>,
    redelivered: Redelivered,
}

/// What became of one message so far.
#[derive(Debug, Clone)]
enum Step {
    /// Nothing yet.
    Waiting,
    /// Its state is written; its reading is not.
    Recorded(Recorded),
    /// It can never be taken in; that is not written down yet.
    Rejected(Rejection),
    /// All is done.
    Done,
    /// It has to be delivered again.
    Failed(String),
}

impl<S, P, R> Ingest<S, P, R>
where
    S: StateStore,
    P: IngestProgress,
    R: SensorStore,
{
    /// Writes to these, by these rules.
    pub fn new(
        states: S,
        progress: P,
        admission: UnknownSensorPolicy<R>,
        quarantine: Quarantine,
        rules: Rules,
        clock: Arc<dyn Clock>,
    ) -> Ingest<S, P, R> {
        Ingest {
            states,
            progress,
            admission,
            quarantine,
            rules,
            clock,
            redelivered: Redelivered::default(),
        }
    }

    /// Handles one event, and stops a while before the deadline.
    ///
    /// Only an event that is none of a queue is an error; it fails as a whole.
    pub async fn handle(
        &self,
        event: &[u8],
        deadline: Timestamp,
    ) -> Result<BatchSummary, EventError> {
        let start = self.clock.now();
        let IncomingSignals {
            messages,
            all_or_nothing,
        } = arrival::read(event, start, &self.redelivered)?;
        let tasks: Vec<Task> = messages
            .iter()
            .map(|arrival| plan::task(arrival, &self.rules))
            .collect();
        let mut handled = BatchSummary {
            messages: messages.len(),
            all_or_nothing,
            oldest: messages
                .iter()
                .map(|arrival| time_left(arrival.sent, start))
                .max()
                .unwrap_or_default(),
            ..BatchSummary::default()
        };
        let mut steps = self
            .record(
                &messages,
                &tasks,
                READINGS.deadline(deadline, start),
                &mut handled,
            )
            .await;
        let until = PUTTING_AWAY.deadline(deadline, start);
        self.save(&tasks, &mut steps, until, &mut handled).await;
        // What is refused behind what is delivered again would be put away twice.
        hold_groups(&messages, &mut steps);
        let until = NOTING.deadline(deadline, start);
        self.put_away(&messages, &mut steps, until, &mut handled)
            .await;
        hold_groups(&messages, &mut steps);
        let until = ANSWERING.deadline(deadline, start);
        self.note_markers(&messages, &tasks, &mut steps, until)
            .await;
        handled.markers = tasks.iter().filter(|task| **task == Task::Marker).count();

        for (arrival, step) in messages.iter().zip(&steps) {
            if let Step::Failed(reason) = step {
                tracing::warn!(message = arrival.id, reason, "to be delivered again");
                handled.failed.push(arrival.id.clone());
            }
        }
        if all_or_nothing && !handled.failed.is_empty() {
            let all = messages.iter();
            self.redelivered
                .remember(all.map(|arrival| (arrival.id.as_str(), arrival.time)));
        }
        Ok(handled)
    }

    /// Writes the states: lanes side by side, each in order, until one of it fails.
    async fn record(
        &self,
        arrivals: &[IncomingSignal],
        tasks: &[Task],
        until: Timestamp,
        handled: &mut BatchSummary,
    ) -> Vec<Step> {
        let mut steps: Vec<Step> = tasks
            .iter()
            .map(|task| match task {
                Task::Refuse(refusal) => Step::Rejected(refusal.clone()),
                Task::Signal(_) | Task::Marker => Step::Waiting,
            })
            .collect();
        let lanes = stream::iter(plan::lanes(arrivals, tasks));
        let mut done = lanes
            .map(|lane| self.record_lane(lane, tasks, until))
            .buffer_unordered(AT_ONCE);
        while let Some((lane, registered)) = done.next().await {
            handled.registered += registered;
            for (index, step) in lane {
                steps[index] = step;
            }
        }
        steps
    }

    async fn record_lane(
        &self,
        lane: Vec<usize>,
        tasks: &[Task],
        until: Timestamp,
    ) -> (Vec<(usize, Step)>, usize) {
        let (mut steps, mut registered, mut stopped) = (Vec::new(), 0, false);
        for index in lane {
            let Task::Signal(signal) = &tasks[index] else {
                continue;
            };
            if stopped {
                let waits = "waits for an earlier message".to_owned();
                steps.push((index, Step::Failed(waits)));
                continue;
            }
            let left = time_left(self.clock.now(), until);
            // Boxed, as the SDK's calls are deep types and the compiler has to name them all.
            let recording = Box::pin(self.record_one(signal, &mut registered));
            let recorded = tokio::time::timeout(left, recording);
            let step = recorded
                .await
                .unwrap_or_else(|_| Step::Failed("no time left".to_owned()));
            stopped = matches!(step, Step::Failed(_));
            steps.push((index, step));
        }
        (steps, registered)
    }

    async fn record_one(&self, signal: &Signal, registered: &mut usize) -> Step {
        match self.states.record(signal).await {
            Ok(Some(recorded)) => return Step::Recorded(recorded),
            Ok(None) => {}
            Err(error) => return failed(error),
        }
        let UnknownSensorPolicy::AutoRegister { registry, newcomer } = &self.admission else {
            let detail = format!("no sensor has the id {}", signal.sensor());
            return Step::Rejected(Rejection::new("UnknownSensor", detail));
        };
        match newcomer
            .register(registry, signal.sensor(), self.clock.now())
            .await
        {
            Ok(new) => *registered += usize::from(new),
            Err(error) => return failed(error),
        }
        match self.states.record(signal).await {
            Ok(Some(recorded)) => Step::Recorded(recorded),
            // Registered and unregistered again in between.
            Ok(None) => Step::Failed("the sensor is gone again".to_owned()),
            Err(error) => failed(error),
        }
    }

    /// Keeps a reading of every signal whose state is written.
    async fn save(
        &self,
        tasks: &[Task],
        steps: &mut [Step],
        until: Timestamp,
        handled: &mut BatchSummary,
    ) {
        let mut readings: Vec<OwnedReading> = Vec::new();
        let mut of_reading = Vec::new();
        for (index, (task, step)) in tasks.iter().zip(steps.iter()).enumerate() {
            if let (Task::Signal(signal), Step::Recorded(recorded)) = (task, step) {
                readings.push(signal.reading(recorded.owner.clone()));
                of_reading.push((index, recorded.outcome));
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
        for ((index, outcome), saved) in of_reading.into_iter().zip(saved) {
            steps[index] = match saved {
                Ok(()) => {
                    handled.outcomes.push(outcome);
                    Step::Done
                }
                Err(error) => failed(error),
            };
        }
    }

    /// Puts away what can never be taken in.
    async fn put_away(
        &self,
        arrivals: &[IncomingSignal],
        steps: &mut [Step],
        until: Timestamp,
        handled: &mut BatchSummary,
    ) {
        let limit = self.quarantine.text_bytes();
        let mut refused = Vec::new();
        let mut of_refused = Vec::new();
        for (index, (arrival, step)) in arrivals.iter().zip(steps.iter_mut()).enumerate() {
            let Step::Rejected(refusal) = step else {
                continue;
            };
            tracing::warn!(
                message = arrival.id,
                reason = refusal.reason,
                detail = refusal.detail,
                "a message cannot be taken in"
            );
            refused.push(QuarantinedMessage {
                id: arrival.id.clone(),
                text: arrival.quotable(limit),
                source: arrival.source.clone(),
                reason: refusal.reason,
                detail: refusal.detail.clone(),
            });
            of_refused.push(index);
            *step = Step::Done;
        }
        let left = self.quarantine.send(&refused, until, &self.clock).await;
        handled.quarantined += refused.len() - left.len();
        for not_put in left {
            steps[of_refused[not_put.index]] = Step::Failed(not_put.reason);
        }
    }

    /// Notes how far queues were read, unless something sent before is to be delivered again.
    async fn note_markers(
        &self,
        arrivals: &[IncomingSignal],
        tasks: &[Task],
        steps: &mut [Step],
        until: Timestamp,
    ) {
        let mut newest: BTreeMap<&str, Timestamp> = BTreeMap::new();
        let mut markers = Vec::new();
        for (index, (arrival, task)) in arrivals.iter().zip(tasks).enumerate() {
            if *task != Task::Marker || matches!(steps[index], Step::Failed(_)) {
                continue;
            }
            let is_left = |(other, step): (&IncomingSignal, &Step)| {
                matches!(step, Step::Failed(_)) && other.sent <= arrival.sent
            };
            if arrivals.iter().zip(steps.iter()).any(is_left) {
                let waits = "marks more than was taken in".to_owned();
                steps[index] = Step::Failed(waits);
                continue;
            }
            let reached = newest.entry(&arrival.queue).or_insert(arrival.sent);
            *reached = arrival.sent.max(*reached);
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
            for &index in markers.iter().filter(|&&at| arrivals[at].queue == queue) {
                steps[index] = step.clone();
            }
        }
    }
}

/// What a store's failure means for the message.
fn failed(error: StoreError) -> Step {
    if error.is_retryable() {
        Step::Failed(error.to_string())
    } else {
        Step::Rejected(Rejection::new("Unstorable", error))
    }
}

/// Of a FIFO queue's group nothing may be taken for done behind what is to be delivered again.
fn hold_groups(arrivals: &[IncomingSignal], steps: &mut [Step]) {
    let mut held: HashSet<&str> = HashSet::new();
    for (arrival, step) in arrivals.iter().zip(steps) {
        let Some(group) = &arrival.group else {
            continue;
        };
        if matches!(step, Step::Failed(_)) {
            held.insert(group);
        } else if held.contains(group.as_str()) {
            *step = Step::Failed("waits for an earlier message".to_owned());
        }
    }
}
