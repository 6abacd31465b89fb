//! The executor: reads, plans, writes, and does it again where others were faster.

use std::collections::{HashMap, VecDeque};

use antumbra_shadow::{Acknowledgement, Changes, Model, State};

use super::ShadowError;
use super::id::ShadowId;
use super::plan::{self, Plan};
use super::store::{
    DocumentSet, Layout, Read, ReadConsistency, ShadowStore, Snapshot, StoredDocument, Write,
};
use super::update::Update;
use crate::backoff;
use crate::clock::Clock;
use crate::store::{StoreError, Version};

/// What an update led to.
#[derive(Debug, Clone)]
pub struct UpdateResult {
    /// Whether anything was written.
    pub written: bool,
    /// The reported document as it stands now, where it was looked at.
    pub reported: Option<StoredDocument>,
    /// The desired document as it stands now, where it was looked at.
    pub desired: Option<StoredDocument>,
    /// The version of the shadow as a whole, as far as it was looked at.
    pub shadow_version: Version,
    /// What became of each leaf of the report.
    pub reported_changes: Option<Changes>,
    /// What became of each leaf of the desire.
    pub desired_changes: Option<Changes>,
    /// What was desired and has come true.
    pub acknowledged: Vec<Acknowledgement>,
    /// How many times it was tried.
    pub attempts: u32,
}

impl UpdateResult {
    /// The version one of the documents has now; none if it is not there or was not looked at.
    pub fn version(&self, state: State) -> Version {
        let held = match state {
            State::Reported => &self.reported,
            State::Desired => &self.desired,
        };
        held.as_ref().map_or(Version::NONE, |held| held.version)
    }
}

type Outcome = Result<UpdateResult, ShadowError>;
type Outcomes = [Option<Outcome>];

/// The updates of one shadow, in the order asked.
struct Lane {
    waiting: VecDeque<usize>,
    parts: DocumentSet,
    layout: Layout,
    stored: Option<Snapshot>,
    attempts: u32,
    /// A write that may have taken place although it failed.
    doubtful: Option<(Write, Plan)>,
}

pub(super) struct Engine<'a, P> {
    pub(super) persistence: &'a P,
    pub(super) clock: &'a dyn Clock,
    pub(super) model: &'a Model,
    pub(super) leaf_times: bool,
    pub(super) random: fastrand::Rng,
}

impl<P: ShadowStore> Engine<'_, P> {
    /// One result per update, in the order asked. Each round is one batched read and one batched write.
    pub(super) async fn run(mut self, updates: &[Update]) -> Vec<Outcome> {
        let mut results: Vec<Option<Outcome>> = updates.iter().map(|_| None).collect();
        let mut lanes = self.lanes(updates);
        loop {
            self.read(updates, &mut lanes, &mut results).await;
            let planned = self.plan(updates, &mut lanes, &mut results);
            if planned.is_empty() && lanes.iter().all(|lane| lane.waiting.is_empty()) {
                break;
            }
            let failures = self.write(updates, &mut lanes, planned, &mut results).await;
            if let Some(failures) = failures {
                self.clock
                    .sleep(backoff::delay(failures, self.random.f64()))
                    .await;
            }
        }
        let missing = || {
            Err(ShadowError::Store {
                error: StoreError::NotFound,
                attempts: 0,
            })
        };
        results
            .into_iter()
            .map(|result| result.unwrap_or_else(missing))
            .collect()
    }

    fn lanes(&self, updates: &[Update]) -> Vec<Lane> {
        let mut lanes: Vec<Lane> = Vec::new();
        let mut of: HashMap<&ShadowId, usize> = HashMap::new();
        for (index, update) in updates.iter().enumerate() {
            let parts = plan::parts(update, self.persistence.layout());
            let lane = *of.entry(&update.shadow).or_insert_with(|| {
                lanes.push(Lane {
                    waiting: VecDeque::new(),
                    parts,
                    layout: self.persistence.layout(),
                    stored: None,
                    attempts: 0,
                    doubtful: None,
                });
                lanes.len() - 1
            });
            let lane = &mut lanes[lane];
            lane.waiting.push_back(index);
            if lane.parts != parts {
                lane.parts = DocumentSet::Both;
            }
        }
        lanes
    }

    /// Reads what is not known yet. A failed read is an attempt of the update that waits for it.
    async fn read(&mut self, updates: &[Update], lanes: &mut [Lane], results: &mut Outcomes) {
        loop {
            let mut wanted: Vec<&mut Lane> = lanes
                .iter_mut()
                .filter(|lane| lane.stored.is_none() && !lane.waiting.is_empty())
                .collect();
            if wanted.is_empty() {
                return;
            }
            let reads: Vec<Read> = wanted
                .iter()
                .map(|lane| Read {
                    shadow: updates[lane.waiting[0]].shadow.clone(),
                    parts: lane.parts,
                })
                .collect();
            let answers = self.persistence.read(&reads, ReadConsistency::Strong).await;
            let mut failures = 0;
            for (lane, answer) in wanted.iter_mut().zip(answers) {
                match answer {
                    Ok(snapshot) => lane.stored = Some(snapshot),
                    Err(StoreError::NotFound) => lane.stored = Some(Snapshot::default()),
                    Err(error) => {
                        failures = failures.max(lane.attempts + 1);
                        lane.failed(updates, error, results);
                    }
                }
            }
            if failures > 0 {
                self.clock
                    .sleep(backoff::delay(failures, self.random.f64()))
                    .await;
            }
        }
    }

    /// Decides for the first update of each lane; those that need no write are done and the next is decided.
    fn plan(
        &self,
        updates: &[Update],
        lanes: &mut [Lane],
        results: &mut Outcomes,
    ) -> Vec<(usize, Plan, Write)> {
        let mut planned = Vec::new();
        for (number, lane) in lanes.iter_mut().enumerate() {
            while let Some(&index) = lane.waiting.front() {
                let Some(stored) = lane.stored.clone() else {
                    break;
                };
                if let Some((write, plan)) = lane.doubtful.take()
                    && plan::already_applied(&stored, &write)
                {
                    lane.attempts -= 1;
                    lane.done(index, stored, plan, true, results);
                    continue;
                }
                let update = &updates[index];
                let model = update.model.as_ref().unwrap_or(self.model);
                let now = self.clock.now();
                let layout = self.persistence.layout();
                match plan::plan(update, &stored, layout, model, self.leaf_times, now) {
                    Err(error) => lane.give_up(index, error, results),
                    Ok(mut plan) => match plan.write.take() {
                        Some(write) => {
                            planned.push((number, plan, write));
                            break;
                        }
                        None => lane.done(index, stored, plan, false, results),
                    },
                }
            }
        }
        planned
    }

    /// Writes what was decided. Says after how many failures to wait, if any failed.
    async fn write(
        &self,
        updates: &[Update],
        lanes: &mut [Lane],
        planned: Vec<(usize, Plan, Write)>,
        results: &mut Outcomes,
    ) -> Option<u32> {
        let writes: Vec<Write> = planned.iter().map(|(_, _, write)| write.clone()).collect();
        let answers = if writes.is_empty() {
            Vec::new()
        } else {
            self.persistence.write(&writes).await
        };
        let mut failures = None;
        for ((number, plan, write), answer) in planned.into_iter().zip(answers) {
            let lane = &mut lanes[number];
            match answer {
                Ok(written) => {
                    let stored = lane.stored.take().unwrap_or_default();
                    let stored = plan::after(&stored, &write, &written);
                    lane.done(lane.waiting[0], stored, plan, true, results);
                }
                Err(error) => {
                    failures = failures.max(Some(lane.attempts + 1));
                    lane.doubtful =
                        matches!(error, StoreError::Unavailable(_)).then_some((write, plan));
                    lane.failed(updates, error, results);
                }
            }
        }
        failures
    }
}

impl Lane {
    fn done(
        &mut self,
        index: usize,
        stored: Snapshot,
        plan: Plan,
        written: bool,
        results: &mut Outcomes,
    ) {
        results[index] = Some(Ok(UpdateResult {
            written,
            shadow_version: stored.version(self.layout),
            reported: stored.reported.clone(),
            desired: stored.desired.clone(),
            reported_changes: plan.reported_changes,
            desired_changes: plan.desired_changes,
            acknowledged: plan.acknowledged,
            attempts: self.attempts + 1,
        }));
        self.stored = Some(stored);
        self.next();
    }

    /// A failure that may be mended by reading and merging again, as long as tries are left.
    fn failed(&mut self, updates: &[Update], error: StoreError, results: &mut Outcomes) {
        let index = self.waiting[0];
        let update = &updates[index];
        let again = match error {
            StoreError::Conflict { .. } => !update.is_conditional(),
            _ => error.is_retryable(),
        };
        if again && self.attempts < update.retries {
            self.attempts += 1;
            self.stored = None;
        } else {
            self.give_up(index, error, results);
        }
    }

    fn give_up(&mut self, index: usize, error: StoreError, results: &mut Outcomes) {
        results[index] = Some(Err(ShadowError::Store {
            error,
            attempts: self.attempts + 1,
        }));
        self.stored = None;
        self.next();
    }

    fn next(&mut self) {
        self.waiting.pop_front();
        self.attempts = 0;
        self.doubtful = None;
    }
}
