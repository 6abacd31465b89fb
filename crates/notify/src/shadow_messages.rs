//! Messages made of both documents of a shadow.
//!
//! Where both lie in one item, the record holds them. Where they lie apart it holds one, and the other is
//! found in this order: in the next record of it in the event, as it was before; in the last one, as it is
//! after; in the table, as it is now. Of two records of one write, the first tells of both.
//!
//! Only the last way can show a document newer than the change. Then the change that made it newer is
//! still to come in the stream and tells of it again, so that the last message of a shadow is always true.

use std::collections::HashMap;

use antumbra_registration::{Change, RegistrationId, Registrations};
use antumbra_service::notifications::Message;
use antumbra_service::shadows::{ShadowId, StoreError, StoredDocument};
use antumbra_shadow::{Model, State};
use antumbra_wire::items::{ItemChange, ItemKind, ShadowItem};
use antumbra_wire::notification::NotificationId;
use antumbra_wire::shadow_mqtt::{ShadowDocument, ShadowDocuments};

use crate::undeliverable::Undeliverable;

/// A change of a shadow's item.
pub(crate) struct ShadowChange {
    pub(crate) record: usize,
    pub(crate) key: String,
    /// What its messages are ordered by: the shadow, whichever of its items changed.
    pub(crate) order: String,
    shadow: (String, String),
    item: ShadowItem,
    before: ShadowDocuments,
    after: ShadowDocuments,
    written_at: Option<i64>,
    pub(crate) seconds: i64,
    pub(crate) client_token: Option<String>,
    pub(crate) wanted: Vec<Subscriber>,
}

/// A registration that wants to be told of it.
#[derive(Clone)]
pub(crate) struct Subscriber {
    pub(crate) registration: RegistrationId,
    pub(crate) channel: usize,
    pub(crate) id: NotificationId,
    pub(crate) topic: Option<String>,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) limit: usize,
}

/// What is told of a change: the shadow before and after, to whom.
pub(crate) struct ShadowMessage<'p> {
    pub(crate) pending: &'p ShadowChange,
    pub(crate) before: ShadowDocuments,
    pub(crate) after: ShadowDocuments,
    pub(crate) wanted: Vec<&'p Subscriber>,
}

/// A document of another item than the one that changed.
pub(crate) type Other = (ShadowId, State);
/// What was found of it.
pub(crate) type Found = HashMap<Other, Result<Option<StoredDocument>, StoreError>>;

/// Changes that are told of, and those that cannot be told of now or ever.
#[derive(Default)]
pub(crate) struct Resolved<'p> {
    pub(crate) told: Vec<ShadowMessage<'p>>,
    /// Records to be looked at again.
    pub(crate) undone: Vec<usize>,
    pub(crate) parked: Vec<Undeliverable>,
}

impl ShadowChange {
    /// `None` for what is no shadow's, and for what happens to what a delete left.
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
            wanted: Vec::new(),
        })
    }

    /// Whether it has to be known to tell of others, even if nobody wants to hear of it.
    pub(crate) fn matters(&self) -> bool {
        self.item != ShadowItem::Combined || !self.wanted.is_empty()
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

/// For each shadow whose documents lie apart, its changes in order.
fn timelines(pending: &[ShadowChange]) -> HashMap<&(String, String), Vec<usize>> {
    let mut timelines: HashMap<_, Vec<usize>> = HashMap::new();
    for (index, change) in pending.iter().enumerate() {
        if change.item != ShadowItem::Combined {
            timelines.entry(&change.shadow).or_default().push(index);
        }
    }
    timelines
}

/// The other document in the event itself.
fn in_event(pending: &[ShadowChange], timeline: &[usize], at: usize) -> Option<ShadowDocuments> {
    let kind = pending[timeline[at]].item;
    let others = |index: &&usize| pending[**index].item != kind;
    let next = timeline[at + 1..].iter().find(others);
    let last = timeline[..at].iter().rev().find(others);
    next.map(|&index| pending[index].before.clone())
        .or_else(|| last.map(|&index| pending[index].after.clone()))
}

/// The documents that have to be read from the table.
pub(crate) fn missing(pending: &[ShadowChange]) -> Vec<Other> {
    let mut missing = Vec::new();
    for timeline in timelines(pending).values() {
        let alone = timeline
            .iter()
            .all(|&index| pending[index].item == pending[timeline[0]].item);
        let wanted = timeline
            .iter()
            .any(|&index| !pending[index].wanted.is_empty());
        let first = &pending[timeline[0]];
        let (id, name) = &first.shadow;
        if alone
            && wanted
            && let Some(state) = first.other()
            && let Ok(shadow) = ShadowId::named(id, name)
        {
            missing.push((shadow, state));
        }
    }
    missing
}

/// Puts both documents together for every change that somebody wants to hear of.
pub(crate) fn resolve<'p>(
    pending: &'p [ShadowChange],
    found: &Found,
    registrations: &Registrations,
    sequence_number: &dyn Fn(usize) -> String,
) -> Resolved<'p> {
    let timelines = timelines(pending);
    let mut resolved = Resolved::default();
    let mut told_with_another = vec![false; pending.len()];
    for (index, change) in pending.iter().enumerate() {
        if told_with_another[index] {
            continue;
        }
        if change.item == ShadowItem::Combined {
            let sections = (change.before.clone(), change.after.clone());
            resolved.tell(change, sections, change.wanted.iter().collect());
            continue;
        }
        let timeline = &timelines[&change.shadow];
        let at = timeline
            .iter()
            .position(|&other| other == index)
            .unwrap_or(0);
        let mut wanted: Vec<&Subscriber> = change.wanted.iter().collect();
        if let Some(&next) = timeline.get(at + 1)
            && change.is_one_write_with(&pending[next])
        {
            let next_change = &pending[next];
            told_with_another[next] = true;
            let new =
                |other: &&Subscriber| wanted.iter().all(|w| w.registration != other.registration);
            let more: Vec<&Subscriber> = next_change.wanted.iter().filter(new).collect();
            wanted.extend(more);
            let before = together(&change.before, &next_change.before);
            let after = together(&change.after, &next_change.after);
            resolved.tell(change, (before, after), wanted);
            continue;
        }
        if wanted.is_empty() {
            continue;
        }
        let other = match in_event(pending, timeline, at) {
            Some(other) => Ok(other),
            None => stored(change, found),
        };
        match other {
            Ok(other) => {
                let before = together(&change.before, &other);
                let after = together(&change.after, &other);
                resolved.tell(change, (before, after), wanted);
            }
            Err(Unknown::Now) => resolved.undone.push(change.record),
            Err(Unknown::Forever(reason)) => {
                let sequence_number = sequence_number(change.record);
                for wanted in wanted {
                    let message = Message {
                        id: wanted.id.to_string(),
                        key: change.key.clone(),
                        ..Message::default()
                    };
                    let name = &registrations[wanted.registration].name;
                    let record = change.record;
                    let parked =
                        Undeliverable::refused(record, &sequence_number, name, &message, &reason);
                    resolved.parked.push(parked);
                }
            }
        }
    }
    resolved
}

impl<'p> Resolved<'p> {
    /// A shadow that is gone is told of by nobody here.
    fn tell(
        &mut self,
        pending: &'p ShadowChange,
        (before, after): (ShadowDocuments, ShadowDocuments),
        wanted: Vec<&'p Subscriber>,
    ) {
        if !after.is_absent() && !wanted.is_empty() {
            self.told.push(ShadowMessage {
                pending,
                before,
                after,
                wanted,
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
    let held = match found.get(&(shadow, state)) {
        None => return Err(forever("there is no way to its other document".to_owned())),
        Some(Ok(None)) => return Ok(ShadowDocuments::default()),
        Some(Ok(Some(held))) => held,
        Some(Err(error)) if error.is_retryable() => return Err(Unknown::Now),
        Some(Err(error)) => return Err(forever(error.to_string())),
    };
    let section = Some(ShadowDocument {
        document: held.document.clone(),
        times: held.leaf_times(),
    });
    let mut sections = ShadowDocuments {
        version: held.version.0,
        ..ShadowDocuments::default()
    };
    match state {
        State::Reported => sections.reported = section,
        State::Desired => sections.desired = section,
    }
    Ok(sections)
}

/// Two halves as one, with the sum of their versions.
fn together(one: &ShadowDocuments, other: &ShadowDocuments) -> ShadowDocuments {
    let version = |half: &ShadowDocuments| if half.is_absent() { 0 } else { half.version };
    ShadowDocuments {
        reported: one.reported.clone().or_else(|| other.reported.clone()),
        desired: one.desired.clone().or_else(|| other.desired.clone()),
        version: version(one) + version(other),
    }
}

/// The model that deltas are reckoned by: to AWS, an array is one value.
pub(crate) fn whole_arrays(model: &Model) -> Model {
    Model {
        arrays: antumbra_shadow::Arrays::Whole,
        ..model.clone()
    }
}
