//! Carries out updates: read, plan, write; and again after a conflict or a failure of the store.

use antumbra_shadow::{Acknowledgements, Changes, Model, State};
use futures_util::stream::{self, StreamExt};

use super::ShadowError;
use super::adapter::check_write;
use super::plan::{self, Plan};
use super::store::{
    DocumentSet, Layout, Read, ReadConsistency, SHADOWS_AT_ONCE, ShadowStore, Snapshot,
    StoredDocument, Write, group_by_shadow,
};
use super::update::{DEFAULT_RETRIES, DEFAULT_RETRY_TIME, Update};
use crate::backoff;
use crate::clock::Clock;
use crate::store::{StoreError, Version};

/// Result of an update.
#[derive(Debug, Clone)]
pub struct UpdateResult {
    /// True if a document was written.
    pub written: bool,
    /// The reported document after the update, if it was read.
    pub reported: Option<StoredDocument>,
    /// The desired document after the update, if it was read.
    pub desired: Option<StoredDocument>,
    /// The version of the shadow, computed from the documents that were read.
    pub shadow_version: Version,
    /// The verdict on each reported value.
    pub reported_changes: Option<Changes>,
    /// The verdict on each desired value.
    pub desired_changes: Option<Changes>,
    /// Desired values that the report acknowledged.
    pub acknowledged: Acknowledgements,
    /// Number of attempts.
    pub attempts: u32,
}

impl UpdateResult {
    /// Returns the version of a document; [`Version::NONE`] if it does not exist or was not read.
    pub fn version(&self, state: State) -> Version {
        let stored = match state {
            State::Reported => &self.reported,
            State::Desired => &self.desired,
        };
        stored
            .as_ref()
            .map_or(Version::NONE, |stored| stored.version)
    }
}

type Outcome = Result<UpdateResult, ShadowError>;
type Found = Result<Snapshot, StoreError>;

pub(super) struct Engine<'a, S> {
    pub(super) store: &'a S,
    pub(super) clock: &'a dyn Clock,
    pub(super) model: &'a Model,
    pub(super) seed: u64,
}

/// The updates of one shadow, as positions in the request, and the documents they need.
struct Group {
    positions: Vec<usize>,
    documents: DocumentSet,
}

/// A write whose response was lost: it may have been applied.
struct UncertainWrite {
    write: Write,
    plan: Plan,
}

impl<S: ShadowStore> Engine<'_, S> {
    pub(super) async fn update(&self, update: &Update) -> Outcome {
        let documents = plan::documents(update, self.store.layout());
        self.update_until_done(update, documents, &mut None, self.seed)
            .await
    }

    /// Plans an update and returns whether there is anything to write.
    pub(super) async fn would_write(&self, update: &Update) -> Result<bool, StoreError> {
        let layout = self.store.layout();
        let stored = match self.read(update, plan::documents(update, layout)).await {
            Err(StoreError::NotFound) => Snapshot::default(),
            found => found?,
        };
        let model = update.model.as_ref().unwrap_or(self.model);
        let plan = plan::plan(update, &stored, layout, model, self.clock.now())?;
        let write = plan.write.as_ref();
        write.map_or(Ok(()), |write| check_write(write, layout))?;
        Ok(write.is_some())
    }

    /// Carries out many updates: reads all shadows with one batched read, then updates shadows concurrently.
    /// Updates of the same shadow are applied in the given order. Returns one outcome per update.
    pub(super) async fn update_many(&self, updates: &[Update]) -> Vec<Outcome> {
        let groups = self.groups(updates);
        let reads: Vec<Read> = groups
            .iter()
            .map(|group| Read {
                shadow: updates[group.positions[0]].shadow.clone(),
                parts: group.documents,
            })
            .collect();
        let found = self.store.read_many(&reads, ReadConsistency::Strong).await;
        let groups = groups.into_iter().zip(found);
        let groups = groups.map(|(group, found)| self.update_group(updates, group, found));
        let done = stream::iter(groups).buffer_unordered(SHADOWS_AT_ONCE);
        let mut outcomes: Vec<(usize, Outcome)> = done.flat_map(stream::iter).collect().await;
        outcomes.sort_unstable_by_key(|(position, _)| *position);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    fn groups(&self, updates: &[Update]) -> Vec<Group> {
        let layout = self.store.layout();
        let documents = |positions: &[usize]| {
            let mut sets = positions
                .iter()
                .map(|&position| plan::documents(&updates[position], layout));
            let first = sets.next().unwrap_or(DocumentSet::Both);
            match sets.all(|set| set == first) {
                true => first,
                false => DocumentSet::Both,
            }
        };
        group_by_shadow(updates, |update| &update.shadow)
            .into_iter()
            .map(|positions| Group {
                documents: documents(&positions),
                positions,
            })
            .collect()
    }

    async fn update_group(
        &self,
        updates: &[Update],
        group: Group,
        found: Found,
    ) -> Vec<(usize, Outcome)> {
        let first = &updates[group.positions[0]];
        let mut known = Some(self.complete(first, group.documents, found).await);
        let mut outcomes = Vec::with_capacity(group.positions.len());
        for position in group.positions {
            let seed = self.seed ^ position as u64;
            let update = &updates[position];
            let outcome = self.update_until_done(update, group.documents, &mut known, seed);
            outcomes.push((position, outcome.await));
        }
        outcomes
    }

    /// Attempts an update until it succeeds, cannot succeed, or has used up its attempts or its time.
    /// `known` holds the shadow if it was just read or written; the next update of the group starts from it.
    async fn update_until_done(
        &self,
        update: &Update,
        documents: DocumentSet,
        known: &mut Option<Found>,
        seed: u64,
    ) -> Outcome {
        let mut random = fastrand::Rng::with_seed(seed);
        let deadline = update
            .deadline
            .unwrap_or_else(|| self.clock.now().after(DEFAULT_RETRY_TIME));
        let mut uncertain = None;
        let mut attempts = 0;
        loop {
            let found = match known.take() {
                Some(found) => found,
                None if attempts == 0 => self.read_first(update, documents).await,
                None => self.read(update, documents).await,
            };
            let attempt = match found {
                Ok(stored) => self.attempt(update, stored, &mut uncertain).await,
                Err(StoreError::NotFound) => {
                    let absent = Snapshot::default();
                    self.attempt(update, absent, &mut uncertain).await
                }
                Err(error) => Err(error),
            };
            let error = match attempt {
                Ok(done) => {
                    // The read that confirms an uncertain write is not an attempt of its own.
                    attempts += u32::from(!done.confirmed);
                    *known = Some(Ok(done.stored.clone()));
                    return Ok(done.into_result(self.store.layout(), attempts));
                }
                Err(error) => error,
            };
            attempts += 1;
            let delay = backoff::delay(attempts, random.f64());
            let in_time = self.clock.now().after(delay) < deadline;
            if !may_retry(update, &error, attempts, in_time) {
                return Err(ShadowError::Store { error, attempts });
            }
            self.clock.sleep(delay).await;
        }
    }

    /// Reads before the first attempt. An eventually consistent read costs half, and may miss the latest writes. It is
    /// enough if the update then writes the one item that was read: the write is conditional on what was read, so it
    /// proves that nothing was missed. Whether there is nothing to write, or a version is the expected one, only a
    /// consistent read can tell. An update with a time writes almost always, if only the times of its values.
    async fn read_first(&self, update: &Update, documents: DocumentSet) -> Found {
        let layout = self.store.layout();
        let one_item = layout == Layout::Combined || documents != DocumentSet::Both;
        let writes = update.time.is_some() && !update.changes_only;
        if one_item && writes && !update.is_conditional() && update.retries.is_none() {
            let read = self.read_with(update, documents, ReadConsistency::Eventual);
            let found = read.await;
            if is_absent(&found) {
                let both = self.read_with(update, DocumentSet::Both, ReadConsistency::Strong);
                return both.await;
            }
            if let Ok(stored) = &found
                && self.writes(update, stored)
            {
                return found;
            }
        }
        self.read(update, documents).await
    }

    fn writes(&self, update: &Update, stored: &Snapshot) -> bool {
        let model = update.model.as_ref().unwrap_or(self.model);
        let plan = plan::plan(update, stored, self.store.layout(), model, self.clock.now());
        plan.is_ok_and(|plan| plan.write.is_some())
    }

    async fn read(&self, update: &Update, documents: DocumentSet) -> Found {
        let read = self.read_with(update, documents, ReadConsistency::Strong);
        let found = read.await;
        self.complete(update, documents, found).await
    }

    /// Reads both documents if the only one that was read does not exist: the version of a created document continues
    /// from that of the whole shadow, which may have been deleted.
    async fn complete(&self, update: &Update, documents: DocumentSet, found: Found) -> Found {
        if !is_absent(&found) || documents == DocumentSet::Both {
            return found;
        }
        let both = self.read_with(update, DocumentSet::Both, ReadConsistency::Strong);
        both.await
    }

    async fn read_with(
        &self,
        update: &Update,
        documents: DocumentSet,
        consistency: ReadConsistency,
    ) -> Found {
        let read = Read {
            shadow: update.shadow.clone(),
            parts: documents,
        };
        self.store.read(&read, consistency).await
    }

    /// Plans and writes once, based on what is stored.
    async fn attempt(
        &self,
        update: &Update,
        stored: Snapshot,
        uncertain: &mut Option<UncertainWrite>,
    ) -> Result<Done, StoreError> {
        if let Some(UncertainWrite { write, plan }) = uncertain.take()
            && plan::already_applied(&stored, &write)
        {
            return Ok(Done {
                stored,
                plan,
                written: writes_document(&write),
                confirmed: true,
            });
        }
        let model = update.model.as_ref().unwrap_or(self.model);
        let (layout, now) = (self.store.layout(), self.clock.now());
        let mut plan = plan::plan(update, &stored, layout, model, now)?;
        let (stored, written) = match plan.write.take() {
            None => (stored, false),
            Some(write) => match self.store.write(&write).await {
                Ok(written) => (
                    plan::after(&stored, &write, &written),
                    writes_document(&write),
                ),
                Err(error) => {
                    if matches!(error, StoreError::Unavailable(_)) {
                        *uncertain = Some(UncertainWrite { write, plan });
                    }
                    return Err(error);
                }
            },
        };
        Ok(Done {
            stored,
            plan,
            written,
            confirmed: false,
        })
    }
}

fn is_absent(found: &Found) -> bool {
    match found {
        Ok(stored) => stored.is_absent(),
        Err(error) => *error == StoreError::NotFound,
    }
}

/// Returns whether a write is more than one of times.
fn writes_document(write: &Write) -> bool {
    let parts = [&write.reported, &write.desired].into_iter().flatten();
    parts.into_iter().any(|part| !part.times_only)
}

/// A successful attempt.
struct Done {
    /// The shadow after the attempt.
    stored: Snapshot,
    plan: Plan,
    written: bool,
    /// True if the attempt only found that an earlier, uncertain write was applied.
    confirmed: bool,
}

impl Done {
    fn into_result(self, layout: Layout, attempts: u32) -> UpdateResult {
        UpdateResult {
            written: self.written,
            shadow_version: self.stored.version(layout),
            reported: self.stored.reported,
            desired: self.stored.desired,
            reported_changes: self.plan.reported_changes,
            desired_changes: self.plan.desired_changes,
            acknowledged: self.plan.acknowledged,
            attempts,
        }
    }
}

/// Decides whether a failed update is attempted again. After a conflict an update without an expected version is
/// retried for as long as it has time: other writers made progress. Failures of the store are retried a few times.
fn may_retry(update: &Update, error: &StoreError, attempts: u32, in_time: bool) -> bool {
    let is_conflict = matches!(error, StoreError::Conflict { .. });
    // If only times were written in between, the expected version is still stored; and after a delete there is none.
    let is_final = match error {
        StoreError::Conflict { expected, actual } => {
            update.is_conditional() && actual.unwrap_or(Version::NONE) != *expected
        }
        error => !error.is_retryable(),
    };
    if is_final {
        return false;
    }
    match update.retries {
        Some(retries) => attempts <= retries,
        None if is_conflict => in_time,
        None => in_time && attempts <= DEFAULT_RETRIES,
    }
}
