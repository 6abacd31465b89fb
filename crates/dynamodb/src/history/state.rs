//! The state of a shadow at a time.

use antumbra_service::history::{ChangedDocument, Operation, StateAt};
use antumbra_service::shadows::{
    DocumentSet, Layout, Read, ReadConsistency, Shadow, ShadowId, ShadowStore, Snapshot, State,
    StoredDocument, Version,
};
use antumbra_service::store::StoreError;
use antumbra_shadow::{Timestamp, delta};
use antumbra_wire::history::rebuild::{self, ItemState, Rebuilt};
use antumbra_wire::history::{Entry, ItemDocuments, SNAPSHOT_EVERY, time_key};
use antumbra_wire::items::ShadowItem;
use futures_util::future;

use super::{HistoryReader, Stretch};

/// Entries that lead to one with the documents, if none is missing.
const REACH: usize = SNAPSHOT_EVERY as usize + 1;

/// State of one item at a time.
enum ItemAt {
    State(ItemState),
    Absent,
    /// Nothing from before the retention is kept.
    BeforeRetention,
    Unknown,
}

/// An item as it is stored now.
struct Current {
    state: Option<ItemState>,
    /// Version and time of the delete, if it was deleted recently.
    deleted: Option<(u64, u64)>,
}

impl HistoryReader {
    /// The items of a shadow.
    pub(super) fn items(&self) -> &'static [ShadowItem] {
        match self.shadows.config().layout {
            Layout::Separate => &[ShadowItem::Reported, ShadowItem::Desired],
            Layout::Combined => &[ShadowItem::Combined],
        }
    }

    /// Returns the state of a shadow at a time. Reads the current shadow, and at most about five documents of entries.
    pub async fn state_at(
        &self,
        shadow: &ShadowId,
        at: Timestamp,
        now: Timestamp,
    ) -> Result<StateAt, StoreError> {
        let read = Read {
            shadow: shadow.clone(),
            parts: DocumentSet::Both,
        };
        let current = match self.shadows.read(&read, ReadConsistency::Snapshot).await {
            Err(StoreError::NotFound) => Snapshot::default(),
            found => found?,
        };
        let items = self.items().iter();
        let items =
            items.map(|item| self.item_at(shadow, *item, current_item(&current, *item), at, now));
        let mut documents = Snapshot::default();
        for found in future::try_join_all(items).await? {
            match found {
                ItemAt::Unknown => return Ok(StateAt::NotRecorded),
                ItemAt::BeforeRetention => {
                    let since = self.history.since(now);
                    return Ok(StateAt::BeforeRetention { since });
                }
                ItemAt::Absent => {}
                ItemAt::State(state) => {
                    let stored = |document| stored(document, &state);
                    let ItemDocuments { reported, desired } = state.documents.clone();
                    documents.reported = documents.reported.or(reported.map(stored));
                    documents.desired = documents.desired.or(desired.map(stored));
                }
            }
        }
        if documents.is_absent() {
            return Ok(StateAt::DidNotExist);
        }
        let version = documents.version(self.shadows.config().layout);
        let document = |held: &Option<StoredDocument>| {
            held.as_ref()
                .map(|held| held.document.clone())
                .unwrap_or_default()
        };
        let delta = delta(
            &document(&documents.desired),
            &document(&documents.reported),
            &self.model,
        );
        Ok(StateAt::Existed(Box::new(Shadow {
            version,
            reported: documents.reported,
            desired: documents.desired,
            delta: Some(delta),
        })))
    }

    /// Returns the difference of a shadow at two times; a shadow that did not exist had empty documents. Fails with the
    /// state that is not known.
    pub async fn difference(
        &self,
        shadow: &ShadowId,
        [from, to]: [Timestamp; 2],
        now: Timestamp,
    ) -> Result<Result<Vec<ChangedDocument>, StateAt>, StoreError> {
        let mut states = Vec::new();
        for at in [from, to] {
            states.push(match self.state_at(shadow, at, now).await? {
                StateAt::Existed(shadow) => [shadow.reported, shadow.desired],
                StateAt::DidNotExist => [None, None],
                unknown => return Ok(Err(unknown)),
            });
        }
        let document = |at: usize, index: usize| {
            let held: &Option<StoredDocument> = &states[at][index];
            held.as_ref()
                .map(|held| held.document.clone())
                .unwrap_or_default()
        };
        let mut changed = Vec::new();
        for (index, state) in [State::Reported, State::Desired].into_iter().enumerate() {
            let values = self.values(&document(0, index), &document(1, index))?;
            if values.as_ref().is_none_or(|values| !values.is_empty()) {
                changed.push(ChangedDocument { state, values });
            }
        }
        Ok(Ok(changed))
    }

    async fn item_at(
        &self,
        shadow: &ShadowId,
        item: ShadowItem,
        current: Current,
        at: Timestamp,
        now: Timestamp,
    ) -> Result<ItemAt, StoreError> {
        let time = u64::try_from(at.nanoseconds()).unwrap_or_default();
        match (&current.state, current.deleted) {
            (Some(state), _) if state.time <= time => return Ok(ItemAt::State(state.clone())),
            (None, Some((_, deleted))) if deleted <= time => return Ok(ItemAt::Absent),
            _ => {}
        }
        let read = |stretch| self.history.entries(shadow, item, stretch, now);
        let until = format!("{}#:", time_key(time));
        let before = self.history.back_to_documents(shadow, item, until, now);
        let before = before.await?;
        let is_reached = rebuild::reach(&before).is_some();
        let next_is_current = before.first().is_some_and(|newest| current.follows(newest));
        if is_reached && next_is_current {
            return Ok(rebuilt(rebuild::after(&before)));
        }
        // The next change shows whether one is missing in between.
        let limit = if is_reached { 1 } else { REACH };
        let mut after = read(Stretch::after(time, limit)).await?;
        if let (Some(newest), next) = (before.first(), after.first()) {
            let is_gone = current.state.is_none() && current.deleted.is_none();
            let in_turn = match next {
                Some(next) => rebuild::follows(next, newest),
                None => newest.operation == Operation::Remove && is_gone,
            };
            if !in_turn {
                return Ok(ItemAt::Unknown);
            }
            if is_reached {
                return Ok(rebuilt(rebuild::after(&before)));
            }
        }
        // Up to one with the documents, or to the end: then the current documents follow.
        while rebuild::reach(&after).is_none() && after.len() % REACH == 0 {
            let Some(last) = after.last().map(|last| last.key.time) else {
                break;
            };
            let more = read(Stretch::after(last, REACH)).await?;
            if more.is_empty() {
                break;
            }
            after.extend(more);
        }
        let is_too_early = at < self.history.since(now);
        let unknown = || match is_too_early {
            true => ItemAt::BeforeRetention,
            false => ItemAt::Unknown,
        };
        if after.is_empty() {
            return Ok(match (&current.state, current.deleted) {
                (None, None) => ItemAt::Absent,
                _ => unknown(),
            });
        }
        Ok(match rebuild::before(&after, current.state.as_ref()) {
            Rebuilt::State(state) if state.time <= time => ItemAt::State(state),
            Rebuilt::Absent if !is_too_early => ItemAt::Absent,
            _ => unknown(),
        })
    }
}

impl Current {
    /// Returns whether it is the result of the change directly after an entry.
    fn follows(&self, entry: &Entry) -> bool {
        let version = entry.key.version;
        match (&self.state, self.deleted) {
            (Some(state), _) => version.checked_add(1) == Some(state.version),
            (None, Some((deleted, _))) => version == deleted,
            (None, None) => false,
        }
    }
}

fn current_item(current: &Snapshot, item: ShadowItem) -> Current {
    let part = |state: State| match state {
        _ if !item.states().contains(&state) => None,
        State::Reported => current.reported.as_ref(),
        State::Desired => current.desired.as_ref(),
    };
    let (reported, desired) = (part(State::Reported), part(State::Desired));
    let positive = |time: Timestamp| u64::try_from(time.nanoseconds()).unwrap_or_default();
    let document = |held: Option<&StoredDocument>| held.map(|held| held.document.clone());
    let state = reported.or(desired).map(|held| ItemState {
        version: u64::try_from(held.version.0).unwrap_or_default(),
        time: positive(held.timestamp),
        documents: ItemDocuments {
            reported: document(reported),
            desired: document(desired),
        },
    });
    let [reported_time, desired_time] = current.deleted.written;
    let deleted = &current.deleted;
    let (version, deleted) = match item {
        ShadowItem::Reported => (deleted.reported, reported_time),
        ShadowItem::Desired => (deleted.desired, desired_time),
        ShadowItem::Combined => {
            let version = deleted.reported.max(deleted.desired);
            (version, reported_time.max(desired_time))
        }
    };
    let deleted = deleted.filter(|_| version != Version::NONE);
    Current {
        state,
        deleted: deleted.map(|time| (u64::try_from(version.0).unwrap_or_default(), positive(time))),
    }
}

fn stored(document: antumbra_shadow::Document, state: &ItemState) -> StoredDocument {
    StoredDocument {
        document,
        version: Version(i64::try_from(state.version).unwrap_or(i64::MAX)),
        timestamp: Timestamp::from_nanoseconds(state.time.into()),
        zone: None,
        client_token: None,
        times: None,
        times_version: 0,
    }
}

fn rebuilt(rebuilt: Rebuilt) -> ItemAt {
    match rebuilt {
        Rebuilt::State(state) => ItemAt::State(state),
        Rebuilt::Absent => ItemAt::Absent,
        Rebuilt::Unknown => ItemAt::Unknown,
    }
}
