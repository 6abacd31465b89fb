//! A change as registrations see it: one that was recorded, or one that was typed.

use antumbra_registration::{
    Change, DiffCell, KeyAttributes, Operation, Registrations, ShadowRef, explain,
};
use antumbra_service::history::DocumentChange;
use antumbra_service::shadows::{Layout, ShadowId, State};
use antumbra_shadow::{Document, Model, Timestamp};
use antumbra_wire::items::{ItemKind, ShadowItem};

/// A change of an item.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) key: String,
    /// The document of a shadow; `None` for items of other kinds.
    pub(crate) shadow: Option<(ShadowId, State)>,
    pub(crate) operation: Operation,
    pub(crate) version: Option<u64>,
    pub(crate) client_token: Option<String>,
    pub(crate) time: Timestamp,
    pub(crate) old: Option<Document>,
    pub(crate) new: Option<Document>,
}

impl Subject {
    pub(crate) fn recorded(shadow: &ShadowId, change: DocumentChange) -> Subject {
        Subject {
            key: change.key,
            shadow: Some((shadow.clone(), change.state)),
            operation: change.operation,
            version: u64::try_from(change.version.0).ok(),
            client_token: change.client_token,
            time: change.time,
            old: change.old,
            new: change.new,
        }
    }

    /// Bytes of its documents.
    pub(crate) fn bytes(&self) -> usize {
        let bytes =
            |document: &Option<Document>| document.as_ref().map_or(0, |one| one.as_str().len());
        bytes(&self.old) + bytes(&self.new)
    }

    /// State of the document; `reported` for items that are not a shadow's.
    pub(crate) fn state(&self) -> State {
        let shadow = self.shadow.as_ref();
        shadow.map_or(State::Reported, |(_, state)| *state)
    }

    /// Calls `then` with the change as registrations see it.
    pub(crate) fn with<R>(&self, model: &Model, then: impl FnOnce(&Change<'_>) -> R) -> R {
        let (old, new) = (
            self.old.as_ref().map(Document::view),
            self.new.as_ref().map(Document::view),
        );
        let diff = DiffCell::new(old, new, model);
        let shadow = self.shadow.as_ref().map(|(shadow, state)| ShadowRef {
            id: shadow.id(),
            name: shadow.name(),
            state: *state,
        });
        then(&Change {
            key: &self.key,
            key_attributes: KeyAttributes::default(),
            shadow,
            operation: self.operation,
            expired: false,
            version: self.version,
            previous_version: self.version.and_then(|version| version.checked_sub(1)),
            client_token: self.client_token.as_deref(),
            timestamp: i64::try_from(self.time.nanoseconds()).ok(),
            old,
            new,
            diff: &diff,
            acknowledged: None,
        })
    }

    /// Returns whether the first registration matches.
    pub(crate) fn matches_first(&self, registrations: &Registrations, model: &Model) -> bool {
        let explained = self.with(model, |change| explain(registrations, change));
        explained.first().is_some_and(|first| first.unmet.is_none())
    }
}

/// Key of the item that holds a document of a shadow.
pub(crate) fn item_key(shadow: &ShadowId, state: State, layout: Layout) -> String {
    let item = match (layout, state) {
        (Layout::Combined, _) => ShadowItem::Combined,
        (Layout::Separate, State::Reported) => ShadowItem::Reported,
        (Layout::Separate, State::Desired) => ShadowItem::Desired,
    };
    let kind = ItemKind::Shadow(item);
    format!(
        "{}#{}",
        kind.partition(shadow.id()),
        kind.sort(shadow.name())
    )
}

/// The operation of a change that is typed: without an old document an insert, without a new one a removal.
pub(crate) fn operation(old: Option<&Document>, new: Option<&Document>) -> Operation {
    match (old, new) {
        (None, _) => Operation::Insert,
        (_, None) => Operation::Remove,
        _ => Operation::Modify,
    }
}
