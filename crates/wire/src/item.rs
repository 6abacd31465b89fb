//! From a record of the main table to changes: whose item it is, and which of its documents changed.
//!
//! An item of a shadow holds its documents among attributes of our own; every other item is taken
//! whole. Nothing is compared here beyond what tells the halves of a combined item apart.

use std::borrow::Cow;

use antumbra_registration::{Change, KeyAttributes, LazyDiff, Operation, ShadowRef, State};
use antumbra_shadow::{Document, LeafTimes, View};

use crate::shadow_mqtt::{ShadowDocument, ShadowDocuments};
use crate::stream::{Images, Record};

/// Which documents an item holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// `DSR#`: the reported document.
    Reported,
    /// `DSD#`: the desired document.
    Desired,
    /// `DSC#`: both.
    Combined,
}

/// The shadow an item belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShadowKey<'a> {
    /// The shadow's id; free text.
    pub id: &'a str,
    /// The shadow's name.
    pub name: &'a str,
    /// Which of its documents the item holds.
    pub layout: Layout,
}

impl<'a> ShadowKey<'a> {
    /// From an item's partition and sort key; `None` for items that are no shadows.
    ///
    /// ```
    /// use antumbra_wire::item::{Layout, ShadowKey};
    ///
    /// let key = ShadowKey::parse("DS#My House#Basement", "DSR#main").unwrap();
    /// assert_eq!((key.id, key.name, key.layout), ("My House#Basement", "main", Layout::Reported));
    /// assert_eq!(ShadowKey::parse("SENSOR#1", "STATE"), None);
    /// ```
    pub fn parse(partition: &'a str, sort: &'a str) -> Option<ShadowKey<'a>> {
        let id = partition.strip_prefix("DS#")?;
        let (prefix, name) = sort.split_at_checked("DSR#".len())?;
        let layout = match prefix {
            "DSR#" => Layout::Reported,
            "DSD#" => Layout::Desired,
            "DSC#" => Layout::Combined,
            _ => return None,
        };
        (!id.is_empty() && !name.is_empty()).then_some(ShadowKey { id, name, layout })
    }
}

/// The names of partition keys, which come first in an item's key; others go by their names.
const PARTITION_KEYS: [&str; 2] = ["PK", "uuid"];

/// Room for an item's key, kept to be used again without allocating.
#[derive(Debug, Default)]
pub struct KeyBuffer {
    text: String,
    names: String,
}

/// An item's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemKey<'a> {
    /// Partition key and sort key with `#` between them.
    pub text: &'a str,
    /// The attributes it is made of.
    pub attributes: KeyAttributes<'a>,
    /// The shadow, if the item is one.
    pub shadow: Option<ShadowKey<'a>>,
}

impl KeyBuffer {
    /// The key of a record's item.
    pub fn of(&mut self, record: Record<'_>) -> ItemKey<'_> {
        self.text.clear();
        self.names.clear();
        let mut keys = record.keys();
        let (Some(first), second) = (keys.next(), keys.next()) else {
            return ItemKey {
                text: "",
                attributes: KeyAttributes::default(),
                shadow: None,
            };
        };
        let Some(second) = second else {
            self.names.push_str(&first.0);
            self.text.push_str(&first.1);
            let attributes = KeyAttributes {
                partition: Some((&self.names, &self.text)),
                sort: None,
            };
            return ItemKey {
                text: &self.text,
                attributes,
                shadow: None,
            };
        };
        let (a, b) = (&*first.0, &*second.0);
        let first_leads = (!PARTITION_KEYS.contains(&a), a) <= (!PARTITION_KEYS.contains(&b), b);
        let (partition, sort) = if first_leads {
            (first, second)
        } else {
            (second, first)
        };
        self.text.push_str(&partition.1);
        let middle = self.text.len();
        self.text.push('#');
        self.text.push_str(&sort.1);
        self.names.push_str(&partition.0);
        let end = self.names.len();
        self.names.push_str(&sort.0);
        let attributes = KeyAttributes {
            partition: Some((&self.names[..end], &self.text[..middle])),
            sort: Some((&self.names[end..], &self.text[middle + 1..])),
        };
        let ours = partition.0 == "PK" && sort.0 == "SK";
        let shadow = ours
            .then(|| ShadowKey::parse(&self.text[..middle], &self.text[middle + 1..]))
            .flatten();
        ItemKey {
            text: &self.text,
            attributes,
            shadow,
        }
    }
}

/// A document that changed.
#[derive(Debug, Clone, Copy)]
pub struct DocumentChange<'a> {
    /// Which of a shadow's documents; `None` for an item that is no shadow.
    pub state: Option<State>,
    /// What it was.
    pub old: Option<View<'a>>,
    /// What it is.
    pub new: Option<View<'a>>,
}

/// What happened to an item.
#[derive(Debug, Clone)]
pub struct ItemChange<'a> {
    key: ItemKey<'a>,
    operation: Operation,
    expired: bool,
    version: Option<u64>,
    previous_version: Option<u64>,
    client_token: Option<Cow<'a, str>>,
    timestamp: Option<i64>,
    documents: [Option<DocumentChange<'a>>; 2],
    images: [Attributes<'a>; 2],
}

impl<'a> ItemChange<'a> {
    /// From a record, its key and its images.
    ///
    /// The client token and the time are those of the write; a removal has no token, and the time
    /// the stream says. What a delete leaves of a shadow's item is no document: a removal is seen when it
    /// takes the document's place, and nothing when it goes itself.
    pub fn new(record: Record<'_>, key: ItemKey<'a>, images: Images<'a>) -> ItemChange<'a> {
        let operation = record.operation();
        let mut change = ItemChange {
            key,
            operation,
            expired: record.expired(),
            version: None,
            previous_version: None,
            client_token: None,
            timestamp: None,
            documents: [None, None],
            images: Default::default(),
        };
        let Some(shadow) = key.shadow else {
            change.documents[0] = Some(DocumentChange {
                state: None,
                old: images.old,
                new: images.new,
            });
            return change;
        };
        let (old, new) = (Attributes::of(images.old), Attributes::of(images.new));
        // A delete leaves the version behind, and a create may find it: what lies there is no document.
        let operation = match (old.is_document, new.is_document) {
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
            Operation::Remove => record
                .created_seconds()
                .map(|seconds| (seconds * 1e9) as i64),
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
        change.documents = match shadow.layout {
            Layout::Reported => [Some(reported), None],
            Layout::Desired => [Some(desired), None],
            Layout::Combined => changed_halves(reported, desired, operation),
        };
        change.images = [old, new];
        change
    }

    /// The documents that the item of a shadow held before and holds now, with its own version.
    pub fn sections(&self) -> [ShadowDocuments; 2] {
        self.images.each_ref().map(Attributes::sections)
    }

    /// When the item was written or deleted, in nanoseconds since 1970: what was written together has one
    /// time.
    pub fn written_at(&self) -> Option<i64> {
        let [_, new] = &self.images;
        new.deleted_at.or(new.timestamp)
    }

    /// Which shadow the item is of.
    pub fn shadow(&self) -> Option<ShadowKey<'a>> {
        self.key.shadow
    }

    /// When it happened, in whole seconds since 1970.
    pub fn seconds(&self) -> i64 {
        self.timestamp.unwrap_or_default().div_euclid(1_000_000_000)
    }

    /// The documents that changed: one, or for a combined item none to two.
    pub fn documents(&self) -> impl Iterator<Item = DocumentChange<'a>> {
        self.documents.into_iter().flatten()
    }

    /// The change of one of the documents, as registrations see it.
    pub fn change<'s>(
        &'s self,
        document: DocumentChange<'s>,
        diff: &'s dyn LazyDiff,
    ) -> Change<'s> {
        let shadow = match (self.key.shadow, document.state) {
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
        }
    }
}

/// The halves that changed. A shadow that came or went with nothing in it is told of by its reported
/// half, so that it is told of at all.
fn changed_halves<'a>(
    reported: DocumentChange<'a>,
    desired: DocumentChange<'a>,
    operation: Operation,
) -> [Option<DocumentChange<'a>>; 2] {
    let halves = [reported, desired].map(|half| half.changed().then_some(half));
    match (operation, &halves) {
        (Operation::Insert | Operation::Remove, [None, None]) => [Some(reported), None],
        _ => halves,
    }
}

impl DocumentChange<'_> {
    /// Whether it says something else now. A document that is not there says nothing.
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
    /// Whether there is an item and it is not what a delete left.
    is_document: bool,
    version: Option<u64>,
    timestamp: Option<i64>,
    client_token: Option<Cow<'a, str>>,
    deleted_at: Option<i64>,
    reported: Option<View<'a>>,
    desired: Option<View<'a>>,
    reported_times: Option<Cow<'a, str>>,
    desired_times: Option<Cow<'a, str>>,
}

impl<'a> Attributes<'a> {
    fn sections(&self) -> ShadowDocuments {
        if !self.is_document {
            return ShadowDocuments::default();
        }
        let written = self.timestamp.unwrap_or_default().div_euclid(1_000_000_000);
        let section = |view: Option<View<'_>>, times: &Option<Cow<'_, str>>| {
            // Images are not in the order of documents, and what others wrote may be none.
            let document = Document::parse(&view?.to_json()).ok()?;
            let times = times.as_deref();
            let times = times.and_then(|text| LeafTimes::decode(text, written, &document));
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
                "version" => attributes.version = integer(member),
                "timestamp" => attributes.timestamp = integer(member),
                "clientToken" => attributes.client_token = member.as_str(),
                "reported" => attributes.reported = Some(member),
                "desired" => attributes.desired = Some(member),
                "reportedTimes" => attributes.reported_times = member.as_str(),
                "desiredTimes" => attributes.desired_times = member.as_str(),
                "deletedAt" => {
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
