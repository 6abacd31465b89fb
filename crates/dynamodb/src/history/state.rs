//! The state of a shadow at a time.

use antumbra_service::history::{ChangedDocument, Operation, StateAt};
use antumbra_service::shadows::{
    DocumentSet, Layout, Read, ReadConsistency, Shadow, ShadowId, ShadowStore, Snapshot, State,
    StoredDocument, Version,
};
use antumbra_service::store::StoreError;
use antumbra_shadow::{Timestamp, delta};
use antumbra_wire::history::rebuild::{self, ItemState, Rebuilt};
use antumbra_wire::history::{Entry, HistoryKey, ItemDocuments, SNAPSHOT_EVERY, time_key};
use antumbra_wire::items::ShadowItem;
use futures_util::future;

use super::item::malformed;
use super::{HistoryReader, Stretch};
use crate::table::Query;

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
    /// The delete, if it was deleted recently.
    deleted: Option<Deleted>,
}

/// Times of a delete and of the write before it.
#[derive(Clone, Copy)]
struct Deleted {
    time: u64,
    previous: Option<u64>,
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
        let written = match (&current.state, current.deleted) {
            (Some(state), _) => Some(state.time),
            (None, deleted) => deleted.map(|deleted| deleted.time),
        };
        if let Some(written) = written
            && written <= time
            // An entry of a later change means that the table was restored since then.
            && (at >= now || self.newest_time(shadow, item, time).await? <= Some(written))
        {
            return Ok(current.state.map_or(ItemAt::Absent, ItemAt::State));
        }
        let read = |stretch| self.history.entries(shadow, item, stretch, now);
        let until = format!("{}#:", time_key(time));
        // The next change shows whether one is missing in between.
        let (before, after) = future::try_join(
            self.history.back_to_documents(shadow, item, until, now),
            read(Stretch::after(time, 1)),
        )
        .await?;
        let mut after = after.entries;
        if let Some(newest) = before.first() {
            let in_turn = match after.first() {
                Some(next) => rebuild::follows(next, newest),
                None => current.follows(newest),
            };
            if !in_turn {
                return Ok(ItemAt::Unknown);
            }
            if rebuild::reach(&before).is_some() {
                return Ok(rebuilt(rebuild::after(&before)));
            }
        }
        // Up to one with the documents, or to the end: then the current documents follow.
        while rebuild::reach(&after).is_none() {
            let Some(last) = after.last().map(|last| last.key.time) else {
                break;
            };
            let more = read(Stretch::after(last, REACH)).await?;
            after.extend(more.entries);
            if more.is_end {
                break;
            }
        }
        let is_too_early = at < self.history.since(now);
        let unknown = || match is_too_early {
            true => ItemAt::BeforeRetention,
            false => ItemAt::Unknown,
        };
        let Some(next) = after.first() else {
            return Ok(match (&current.state, current.deleted) {
                (None, None) => ItemAt::Absent,
                _ => unknown(),
            });
        };
        if next.previous_time > Some(time) {
            return Ok(unknown());
        }
        Ok(match rebuild::before(&after, current.state.as_ref()) {
            Rebuilt::State(state) => ItemAt::State(state),
            Rebuilt::Absent if !is_too_early => ItemAt::Absent,
            _ => unknown(),
        })
    }

    /// Time of the newest entry of an item up to a time. Half price: what matters was written long ago.
    async fn newest_time(
        &self,
        shadow: &ShadowId,
        item: ShadowItem,
        time: u64,
    ) -> Result<Option<u64>, StoreError> {
        let stretch = Stretch {
            from: time_key(0),
            to: format!("{}#:", time_key(time)),
            newest_first: true,
            limit: 1,
            bytes: usize::MAX,
        };
        let query = Query {
            limit: Some(1),
            ..stretch.query(shadow, item).projection("#PK, #SK")
        };
        let table = &self.history.table;
        let found = table.query(query).await?.items.pop();
        let Some(key) = found.and_then(|found| table.key(&found)) else {
            return Ok(None);
        };
        let key = HistoryKey::parse(&key.partition, &key.sort).map_err(|_| malformed())?;
        Ok(Some(key.time))
    }
}

impl Current {
    /// Returns whether it is the result of the change directly after the newest entry, as far as it shows.
    fn follows(&self, newest: &Entry) -> bool {
        match (&self.state, self.deleted) {
            // Only its entry will name the write before it.
            (Some(_), _) => false,
            (None, Some(deleted)) => deleted.previous == Some(newest.key.time),
            // Nothing is left of a delete some days later.
            (None, None) => newest.operation == Operation::Remove,
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
    let of_item = |[reported, desired]: [Option<Timestamp>; 2]| match item {
        ShadowItem::Reported => reported,
        ShadowItem::Desired => desired,
        ShadowItem::Combined => reported.max(desired),
    };
    let previous = of_item(current.deleted.previous).map(positive);
    Current {
        state,
        deleted: of_item(current.deleted.written).map(|time| Deleted {
            time: positive(time),
            previous,
        }),
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
