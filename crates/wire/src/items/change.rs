//! Change of an item, from a stream record: the documents of a shadow that changed, or the whole item.
//!
//! Documents are compared only in a combined item, to find which of the two changed.

use std::borrow::Cow;

use antumbra_registration::{Change, LazyDiff, Operation, ShadowRef, State};
use antumbra_shadow::{
    AcknowledgedLeaves, AcknowledgedNodes, Document, LeafTimes, Timestamp, View,
};

use super::attributes::{
    ACKNOWLEDGED, CLIENT_TOKEN, DELETED_AT, DESIRED, DESIRED_TIMES, REPORTED, REPORTED_TIMES,
    TIMES_VERSION, TIMESTAMP, VERSION,
};
use super::{RecordKey, ShadowItem, ShadowKey};
use crate::history::{HistoryKey, ItemDocuments};
use crate::shadow_mqtt::{ShadowDocument, ShadowDocuments};
use crate::stream::{Images, Record};

/// A document that changed, or the whole item if it belongs to no shadow.
#[derive(Debug, Clone, Copy)]
pub struct DocumentChange<'a> {
    /// The document of a shadow; `None` for other items.
    pub state: Option<State>,
    pub old: Option<View<'a>>,
    pub new: Option<View<'a>>,
}

/// Change of a shadow's item, with its own copy of everything that the history keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChange {
    pub key: HistoryKey,
    pub operation: Operation,
    pub version: u64,
    pub previous_version: Option<u64>,
    /// Time of the write before, also of a delete that is not forgotten yet.
    pub previous_time: Option<u64>,
    pub client_token: Option<String>,
    /// The documents before and after.
    pub documents: [ItemDocuments; 2],
}

/// Change of an item.
#[derive(Debug, Clone)]
pub struct ItemChange<'a> {
    key: RecordKey<'a>,
    operation: Operation,
    expired: bool,
    version: Option<u64>,
    previous_version: Option<u64>,
    client_token: Option<Cow<'a, str>>,
    timestamp: Option<i64>,
    /// Time of the stream record, in nanoseconds since 1970.
    created: Option<i64>,
    documents: [Option<DocumentChange<'a>>; 2],
    /// Leaves that were removed from the desired document because they are reported.
    acknowledged: Option<AcknowledgedNodes>,
    images: [Attributes<'a>; 2],
}

impl<'a> ItemChange<'a> {
    /// Builds the change from a record, its key and its images.
    ///
    /// Client token and time are those of the write. A removal has no token, and its time is the record's.
    /// A deleted shadow item counts as no document: the delete is a removal, and its expiry is no change. Nor is a
    /// write of leaf times only.
    pub fn new(record: Record<'_>, key: RecordKey<'a>, images: Images<'a>) -> ItemChange<'a> {
        let operation = record.operation();
        let mut change = ItemChange {
            key,
            operation,
            expired: record.expired(),
            version: None,
            previous_version: None,
            client_token: None,
            timestamp: None,
            created: record
                .created_seconds()
                .map(|seconds| (seconds * 1e9) as i64),
            documents: [None, None],
            acknowledged: None,
            images: Default::default(),
        };
        let Some(shadow) = key.item.shadow() else {
            change.documents[0] = Some(DocumentChange {
                state: None,
                old: images.old,
                new: images.new,
            });
            return change;
        };
        let (old, new) = (Attributes::of(images.old), Attributes::of(images.new));
        let operation = match (old.is_document, new.is_document) {
            // Only the times of leaves were written.
            (true, true)
                if old.version == new.version && old.times_version != new.times_version =>
            {
                return change;
            }
            (true, true) => Operation::Modify,
            (false, true) => Operation::Insert,
            (true, false) => Operation::Remove,
            (false, false) => {
                return change;
            }
        };
        change.operation = operation;
        change.previous_version = old.version.filter(|_| old.is_document);
        change.version = new.version.or(old.version);
        change.client_token = new.client_token.clone();
        change.timestamp = match operation {
            Operation::Remove => change.created,
            _ => new.timestamp,
        };
        let reported = DocumentChange {
            state: Some(State::Reported),
            old: old.reported,
            new: new.reported,
        };
        let desired = DocumentChange {
            state: Some(State::Desired),
            old: old.desired,
            new: new.desired,
        };
        // Another program may write an item without changing its document.
        let written = |one: DocumentChange<'a>| {
            let is_notified = operation != Operation::Modify || one.changed();
            [is_notified.then_some(one), None]
        };
        change.documents = match shadow.item {
            ShadowItem::Reported => written(reported),
            ShadowItem::Desired => written(desired),
            ShadowItem::Combined => changed_documents(reported, desired, operation),
        };
        if operation == Operation::Modify {
            change.acknowledged = acknowledged(&old, &new);
        }
        change.images = [old, new];
        change
    }

    /// Returns the documents that the item of a shadow held before and holds now, with the item's version.
    pub fn sections(&self) -> [ShadowDocuments; 2] {
        self.images.each_ref().map(Attributes::sections)
    }

    /// Returns the time of the write or delete, in nanoseconds since 1970. Items written together have the same
    /// time.
    pub fn written_at(&self) -> Option<i64> {
        let [_, new] = &self.images;
        new.written()
    }

    /// Returns the change of a shadow's item for its history; `None` if no document was written or removed.
    ///
    /// Its time is later than that of the write before. An item that another program removed has no time of its own,
    /// and takes that of the record.
    pub fn recorded(&self) -> Option<RecordedChange> {
        let [old, new] = &self.images;
        let shadow = self.shadow()?;
        if !old.is_document && !new.is_document {
            return None;
        }
        let before = old.written();
        let time = new.written().or(self.created);
        let time = match self.operation {
            Operation::Remove => time.max(before.map(|before| before.saturating_add(1))),
            _ => time,
        };
        let version = self.version.unwrap_or_default();
        let positive = |time: i64| u64::try_from(time).unwrap_or_default();
        Some(RecordedChange {
            key: HistoryKey {
                id: shadow.id.to_owned(),
                name: shadow.name.to_owned(),
                item: shadow.item,
                time: positive(time.unwrap_or_default()),
                version,
            },
            operation: self.operation,
            version,
            previous_version: self.previous_version,
            previous_time: before.map(positive),
            client_token: self.client_token.as_deref().map(str::to_owned),
            documents: [old.documents(), new.documents()],
        })
    }

    /// Returns the shadow that the item belongs to.
    pub fn shadow(&self) -> Option<ShadowKey<'a>> {
        self.key.item.shadow()
    }

    /// Returns the time of the change, in whole seconds since 1970.
    pub fn seconds(&self) -> i64 {
        self.timestamp.unwrap_or_default().div_euclid(1_000_000_000)
    }

    /// Returns the documents that changed: one, or for a combined item none to two.
    pub fn documents(&self) -> impl Iterator<Item = DocumentChange<'a>> {
        self.documents.into_iter().flatten()
    }

    /// Returns the change of one of the documents, as registrations see it.
    pub fn change<'s>(
        &'s self,
        document: DocumentChange<'s>,
        diff: &'s dyn LazyDiff,
    ) -> Change<'s> {
        let shadow = match (self.shadow(), document.state) {
            (Some(key), Some(state)) => Some(ShadowRef {
                id: key.id,
                name: key.name,
                state,
            }),
            _ => None,
        };
        Change {
            key: self.key.text,
            key_attributes: self.key.attributes,
            shadow,
            operation: self.operation,
            expired: self.expired,
            version: self.version,
            previous_version: self.previous_version,
            client_token: self.client_token.as_deref(),
            timestamp: self.timestamp,
            old: document.old,
            new: document.new,
            diff,
            acknowledged: match document.state {
                Some(State::Desired) => self.acknowledged.as_ref(),
                _ => None,
            },
        }
    }
}

/// Returns what a write acknowledged. A record that an earlier write left, or that a program left which changed the
/// document without counting its version, says nothing about this one.
fn acknowledged(old: &Attributes<'_>, new: &Attributes<'_>) -> Option<AcknowledgedNodes> {
    let version = new
        .version
        .filter(|version| old.version != Some(*version))?;
    let leaves =
        AcknowledgedLeaves::decode(new.acknowledged.as_deref()?, i64::try_from(version).ok()?)?;
    Some(leaves.nodes(old.desired?))
}

/// Returns the documents of a combined item that changed. Creating or deleting a shadow with two empty
/// documents counts as a change of the reported one, so that it is notified.
fn changed_documents<'a>(
    reported: DocumentChange<'a>,
    desired: DocumentChange<'a>,
    operation: Operation,
) -> [Option<DocumentChange<'a>>; 2] {
    let changed = [reported, desired].map(|one| one.changed().then_some(one));
    match (operation, &changed) {
        (Operation::Insert | Operation::Remove, [None, None]) => [Some(reported), None],
        _ => changed,
    }
}

impl DocumentChange<'_> {
    /// Returns whether old and new differ. A missing document equals an empty one.
    fn changed(&self) -> bool {
        match (self.old, self.new) {
            (Some(old), Some(new)) => !old.same(new),
            (Some(one), None) | (None, Some(one)) => !one.is_empty_container(),
            (None, None) => false,
        }
    }
}

/// The attributes of a shadow's item.
#[derive(Debug, Clone, Default)]
struct Attributes<'a> {
    /// The item exists and is not deleted.
    is_document: bool,
    version: Option<u64>,
    times_version: Option<u64>,
    timestamp: Option<i64>,
    client_token: Option<Cow<'a, str>>,
    deleted_at: Option<i64>,
    reported: Option<View<'a>>,
    desired: Option<View<'a>>,
    reported_times: Option<Cow<'a, str>>,
    desired_times: Option<Cow<'a, str>>,
    acknowledged: Option<Cow<'a, str>>,
}

impl<'a> Attributes<'a> {
    /// Time of the write or delete.
    fn written(&self) -> Option<i64> {
        self.timestamp.or(self.deleted_at)
    }

    fn documents(&self) -> ItemDocuments {
        // An image has another member order than a document, and other programs may write anything.
        let document = |view: Option<View<'_>>| Document::parse(&view?.to_json()).ok();
        match self.is_document {
            true => ItemDocuments {
                reported: document(self.reported),
                desired: document(self.desired),
            },
            false => ItemDocuments::default(),
        }
    }

    fn sections(&self) -> ShadowDocuments {
        if !self.is_document {
            return ShadowDocuments::default();
        }
        let written = Timestamp::from_nanoseconds(self.timestamp.unwrap_or_default().into());
        let section = |view: Option<View<'_>>, times: &Option<Cow<'_, str>>| {
            // An image has another member order than a document, and other programs may write anything.
            let document = Document::parse(&view?.to_json()).ok()?;
            let times = times.as_deref();
            let times = times.and_then(|text| LeafTimes::decode(text, &document));
            let times = times.unwrap_or_else(|| LeafTimes::all(&document, written));
            Some(ShadowDocument { document, times })
        };
        ShadowDocuments {
            reported: section(self.reported, &self.reported_times),
            desired: section(self.desired, &self.desired_times),
            version: self
                .version
                .and_then(|version| i64::try_from(version).ok())
                .unwrap_or_default(),
        }
    }

    fn of(image: Option<View<'a>>) -> Attributes<'a> {
        let mut attributes = Attributes {
            is_document: image.is_some(),
            ..Attributes::default()
        };
        for member in image.into_iter().flat_map(View::children) {
            match &*member.key() {
                VERSION => attributes.version = integer(member),
                TIMES_VERSION => attributes.times_version = integer(member),
                TIMESTAMP => attributes.timestamp = integer(member),
                CLIENT_TOKEN => attributes.client_token = member.as_str(),
                REPORTED => attributes.reported = Some(member),
                DESIRED => attributes.desired = Some(member),
                REPORTED_TIMES => attributes.reported_times = member.as_str(),
                ACKNOWLEDGED => attributes.acknowledged = member.as_str(),
                DESIRED_TIMES => attributes.desired_times = member.as_str(),
                DELETED_AT => {
                    attributes.is_document = false;
                    attributes.deleted_at = integer(member);
                }
                _ => {}
            }
        }
        attributes
    }
}

fn integer<T: std::str::FromStr>(view: View<'_>) -> Option<T> {
    view.as_number()?.parse().ok()
}
