//! Messages made of both documents of a shadow.
//!
//! In the combined layout the record has both documents. In the separate layout it has one, and the other is taken
//! from, in this order: the next record of it in the event (its old image), the last one (its new image), the table.
//! Two records of one write make one message, with the first.
//!
//! Only the table can have a document that is newer than the change. Then the newer change is still to come in the
//! stream and makes another message, so the last message of a shadow is always correct.

use std::collections::HashMap;

use antumbra_registration::{Change, RegistrationId};
use antumbra_service::shadows::{ShadowId, StoreError, StoredDocument};
use antumbra_shadow::{Model, State};
use antumbra_wire::items::{ItemChange, ItemKind, ShadowItem};
use antumbra_wire::shadow_mqtt::{ShadowDocument, ShadowDocuments};

use crate::plan::Draft;

pub(crate) struct ShadowChange {
    pub(crate) record: usize,
    pub(crate) key: String,
    /// The ordering key of its messages: the shadow, whichever of its items changed.
    pub(crate) order: String,
    shadow: (String, String),
    item: ShadowItem,
    before: ShadowDocuments,
    after: ShadowDocuments,
    written_at: Option<i64>,
    pub(crate) seconds: i64,
    pub(crate) client_token: Option<String>,
    pub(crate) subscribers: Vec<Draft>,
}

pub(crate) struct ShadowMessage<'p> {
    pub(crate) change: &'p ShadowChange,
    pub(crate) before: ShadowDocuments,
    pub(crate) after: ShadowDocuments,
    pub(crate) subscribers: Vec<&'p Draft>,
}

/// The document of a shadow that a record does not have.
pub type Other = (ShadowId, State);
/// A document as it is now; `None` if it does not exist.
pub type CurrentDocument = Result<Option<StoredDocument>, StoreError>;
pub(crate) type Found = HashMap<Other, CurrentDocument>;

#[derive(Default)]
pub(crate) struct Resolved<'p> {
    pub(crate) messages: Vec<ShadowMessage<'p>>,
    pub(crate) unfinished: Vec<usize>,
    pub(crate) rejected: Vec<Unresolved<'p>>,
}

/// A change whose other document can never be read.
pub(crate) struct Unresolved<'p> {
    pub(crate) change: &'p ShadowChange,
    pub(crate) subscribers: Vec<&'p Draft>,
    pub(crate) reason: String,
}

impl ShadowChange {
    /// `None` for items of other kinds, and for changes of a deleted shadow's remains.
    pub(crate) fn new(
        record: usize,
        item: &ItemChange<'_>,
        change: &Change<'_>,
    ) -> Option<ShadowChange> {
        let shadow = item.shadow()?;
        let [before, after] = item.sections();
        Some(ShadowChange {
            record,
            key: change.key.to_owned(),
            order: format!(
                "{}#{}",
                ItemKind::Shadow(shadow.item).partition(shadow.id),
                shadow.name
            ),
            shadow: (shadow.id.to_owned(), shadow.name.to_owned()),
            item: shadow.item,
            before,
            after,
            written_at: item.written_at(),
            seconds: item.seconds(),
            client_token: change.client_token.map(str::to_owned),
            subscribers: Vec::new(),
        })
    }

    /// Returns `true` if its messages, or those of other changes of the shadow, depend on it.
    pub(crate) fn is_needed(&self) -> bool {
        self.item != ShadowItem::Combined || !self.subscribers.is_empty()
    }

    pub(crate) fn has_subscriber(&self, registration: RegistrationId) -> bool {
        let mut subscribers = self.subscribers.iter();
        subscribers.any(|draft| draft.registration == registration)
    }

    fn other(&self) -> Option<State> {
        match self.item {
            ShadowItem::Reported => Some(State::Desired),
            ShadowItem::Desired => Some(State::Reported),
            ShadowItem::Combined => None,
        }
    }

    fn is_one_write_with(&self, next: &ShadowChange) -> bool {
        self.item != next.item && self.written_at.is_some() && self.written_at == next.written_at
    }
}

/// The changes of each shadow in the separate layout, in order.
fn timelines(changes: &[ShadowChange]) -> HashMap<&(String, String), Vec<usize>> {
    let mut timelines: HashMap<_, Vec<usize>> = HashMap::new();
    for (index, change) in changes.iter().enumerate() {
        if change.item != ShadowItem::Combined {
            timelines.entry(&change.shadow).or_default().push(index);
        }
    }
    timelines
}

/// The other document, taken from other records of the event.
fn in_event(changes: &[ShadowChange], timeline: &[usize], at: usize) -> Option<ShadowDocuments> {
    let kind = changes[timeline[at]].item;
    let others = |index: &&usize| changes[**index].item != kind;
    let next = timeline[at + 1..].iter().find(others);
    let last = timeline[..at].iter().rev().find(others);
    next.map(|&index| changes[index].before.clone())
        .or_else(|| last.map(|&index| changes[index].after.clone()))
}

/// The documents that must be read from the table.
pub(crate) fn missing(changes: &[ShadowChange]) -> Vec<Other> {
    let mut missing = Vec::new();
    for timeline in timelines(changes).values() {
        let alone = timeline
            .iter()
            .all(|&index| changes[index].item == changes[timeline[0]].item);
        let subscribed = timeline
            .iter()
            .any(|&index| !changes[index].subscribers.is_empty());
        let first = &changes[timeline[0]];
        let (id, name) = &first.shadow;
        if alone
            && subscribed
            && let Some(state) = first.other()
            && let Ok(shadow) = ShadowId::named(id, name)
        {
            missing.push((shadow, state));
        }
    }
    missing
}

/// Combines both documents for every change with subscribers.
pub(crate) fn resolve<'p>(changes: &'p [ShadowChange], found: &Found) -> Resolved<'p> {
    let timelines = timelines(changes);
    let mut resolved = Resolved::default();
    let mut merged_into_earlier = vec![false; changes.len()];
    for (index, change) in changes.iter().enumerate() {
        if merged_into_earlier[index] {
            continue;
        }
        let mut subscribers: Vec<&Draft> = change.subscribers.iter().collect();
        if change.item == ShadowItem::Combined {
            resolved.add(
                change,
                change.before.clone(),
                change.after.clone(),
                subscribers,
            );
            continue;
        }
        let timeline = &timelines[&change.shadow];
        let at = timeline
            .iter()
            .position(|&other| other == index)
            .unwrap_or(0);
        if let Some(&next) = timeline.get(at + 1)
            && change.is_one_write_with(&changes[next])
        {
            merged_into_earlier[next] = true;
            let next = &changes[next];
            let more = next.subscribers.iter();
            subscribers.extend(more.filter(|draft| !change.has_subscriber(draft.registration)));
            let before = together(&change.before, &next.before);
            let after = together(&change.after, &next.after);
            resolved.add(change, before, after, subscribers);
            continue;
        }
        if subscribers.is_empty() {
            continue;
        }
        let other = match in_event(changes, timeline, at) {
            Some(other) => Ok(other),
            None => stored(change, found),
        };
        match other {
            Ok(other) => {
                let before = together(&change.before, &other);
                let after = together(&change.after, &other);
                resolved.add(change, before, after, subscribers);
            }
            Err(Unknown::Now) => resolved.unfinished.push(change.record),
            Err(Unknown::Forever(reason)) => resolved.rejected.push(Unresolved {
                change,
                subscribers,
                reason,
            }),
        }
    }
    resolved
}

impl<'p> Resolved<'p> {
    /// A deleted shadow has no messages of this form.
    fn add(
        &mut self,
        change: &'p ShadowChange,
        before: ShadowDocuments,
        after: ShadowDocuments,
        subscribers: Vec<&'p Draft>,
    ) {
        if !after.is_absent() && !subscribers.is_empty() {
            self.messages.push(ShadowMessage {
                change,
                before,
                after,
                subscribers,
            });
        }
    }
}

enum Unknown {
    Now,
    Forever(String),
}

fn stored(change: &ShadowChange, found: &Found) -> Result<ShadowDocuments, Unknown> {
    let (id, name) = &change.shadow;
    let forever = |reason: String| Unknown::Forever(reason);
    let shadow = ShadowId::named(id, name).map_err(|error| forever(error.to_string()))?;
    let state = change.other().unwrap_or(State::Reported);
    let stored = match found.get(&(shadow, state)) {
        None => {
            return Err(forever(
                "the listener has no access to the shadow's other document".to_owned(),
            ));
        }
        Some(Ok(None)) => return Ok(ShadowDocuments::default()),
        Some(Ok(Some(stored))) => stored,
        Some(Err(error)) if error.is_retryable() => return Err(Unknown::Now),
        Some(Err(error)) => return Err(forever(error.to_string())),
    };
    let section = Some(ShadowDocument {
        document: stored.document.clone(),
        times: stored.leaf_times(),
    });
    let mut sections = ShadowDocuments {
        version: stored.version.0,
        ..ShadowDocuments::default()
    };
    match state {
        State::Reported => sections.reported = section,
        State::Desired => sections.desired = section,
    }
    Ok(sections)
}

/// Combines the documents of two items, with the sum of their versions.
fn together(one: &ShadowDocuments, other: &ShadowDocuments) -> ShadowDocuments {
    let version = |item: &ShadowDocuments| if item.is_absent() { 0 } else { item.version };
    ShadowDocuments {
        reported: one.reported.clone().or_else(|| other.reported.clone()),
        desired: one.desired.clone().or_else(|| other.desired.clone()),
        version: version(one) + version(other),
    }
}

/// The model for deltas: AWS IoT Device Shadow treats an array as one value.
pub(crate) fn whole_arrays(model: &Model) -> Model {
    Model {
        arrays: antumbra_shadow::Arrays::Whole,
        ..model.clone()
    }
}
