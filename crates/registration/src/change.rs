//! The change of one item, as registrations match it.
//!
//! Everything is borrowed. The diff is computed on first use, so that a change without matching registrations costs
//! no diff.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::sync::LazyLock;

use antumbra_shadow::{
    AcknowledgedNodes, Diff, DiffBuffer, Document, Model, State, View, diff, word_enum,
};

word_enum! {
    /// The operation on the item, by its word in registrations and notifications.
    pub enum Operation as "operation" {
        Insert = "insert",
        Modify = "modify",
        Remove = "remove",
    }
}

/// The shadow document that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShadowRef<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub state: State,
}

/// The key attributes of an item: name and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyAttributes<'a> {
    pub partition: Option<(&'a str, &'a str)>,
    pub sort: Option<(&'a str, &'a str)>,
}

impl<'a> KeyAttributes<'a> {
    /// Iterates over the attributes, partition key first.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.partition.into_iter().chain(self.sort)
    }

    /// Returns the value of the attribute with this name.
    pub fn get(self, name: &str) -> Option<&'a str> {
        self.iter()
            .find(|(of, _)| *of == name)
            .map(|(_, value)| value)
    }
}

/// One change of one item.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    /// The item's key, `PK#SK`.
    pub key: &'a str,
    pub key_attributes: KeyAttributes<'a>,
    /// The shadow document; `None` for items of other kinds.
    pub shadow: Option<ShadowRef<'a>>,
    pub operation: Operation,
    /// `true` if the time to live removed the item.
    pub expired: bool,
    /// The document's version after the change; the last one if it was removed.
    pub version: Option<u64>,
    pub previous_version: Option<u64>,
    /// The token that the writer gave its request.
    pub client_token: Option<&'a str>,
    /// The time of the write, in nanoseconds since 1970.
    pub timestamp: Option<i64>,
    /// The document before the change; `None` on insert.
    pub old: Option<View<'a>>,
    /// The document after the change; `None` on remove.
    pub new: Option<View<'a>>,
    pub diff: &'a dyn LazyDiff,
    /// Leaves that were removed from a desired document because they are reported; `None` if there are none.
    pub acknowledged: Option<&'a AcknowledgedNodes>,
}

impl Change<'_> {
    /// Returns `true` if a value besides timestamps changed. Always true for insert and remove.
    pub fn value_changed(&self) -> bool {
        self.operation != Operation::Modify || self.diff.diff().value_changed()
    }
}

impl fmt::Debug for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change")
            .field("key", &self.key)
            .field("operation", &self.operation)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// A diff that is computed on first use.
pub trait LazyDiff {
    /// Returns the diff, the same at every call.
    fn diff(&self) -> &Diff<'_>;
}

/// The diff of two documents, computed once, on first use.
pub struct DiffCell<'a> {
    old: View<'a>,
    new: View<'a>,
    model: &'a Model,
    buffer: Cell<Option<&'a mut DiffBuffer>>,
    diff: OnceCell<Diff<'a>>,
}

/// The document of an item that does not exist.
static EMPTY: LazyLock<Document> = LazyLock::new(Document::default);

impl<'a> DiffCell<'a> {
    /// The diff from `old` to `new`; a missing document counts as empty.
    pub fn new(old: Option<View<'a>>, new: Option<View<'a>>, model: &'a Model) -> DiffCell<'a> {
        DiffCell {
            old: old.unwrap_or_else(|| EMPTY.view()),
            new: new.unwrap_or_else(|| EMPTY.view()),
            model,
            buffer: Cell::new(None),
            diff: OnceCell::new(),
        }
    }

    /// Computes the diff in a reused buffer, without allocation.
    pub fn in_buffer(mut self, buffer: &'a mut DiffBuffer) -> DiffCell<'a> {
        self.buffer = Cell::new(Some(buffer));
        self
    }

    /// Returns `true` if the diff was used.
    pub fn is_computed(&self) -> bool {
        self.diff.get().is_some()
    }
}

impl LazyDiff for DiffCell<'_> {
    fn diff(&self) -> &Diff<'_> {
        self.diff.get_or_init(|| match self.buffer.take() {
            Some(buffer) => buffer.diff(self.old, self.new, self.model),
            None => diff(self.old, self.new, self.model),
        })
    }
}

impl fmt::Debug for DiffCell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiffCell")
            .field("computed", &self.is_computed())
            .finish_non_exhaustive()
    }
}
