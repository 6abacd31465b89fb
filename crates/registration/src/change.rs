//! A change: what the stream says happened to one item, as the rules see it.
//!
//! Everything is borrowed. The diff is computed when a registration first asks for it, so that a
//! change nobody wants costs no diff.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::sync::LazyLock;

use antumbra_shadow::{Diff, DiffBuffer, Document, Model, State, View, diff};

/// What happened to the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It was not there before.
    Insert,
    /// It was there before and is another now.
    Modify,
    /// It is gone.
    Remove,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 3] = [Operation::Insert, Operation::Modify, Operation::Remove];

    /// As registrations and notifications write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Insert => "insert",
            Operation::Modify => "modify",
            Operation::Remove => "remove",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The shadow document that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShadowRef<'a> {
    /// The shadow's id.
    pub id: &'a str,
    /// The shadow's name.
    pub name: &'a str,
    /// Which of its documents.
    pub state: State,
}

/// The attributes that are an item's key: name and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyAttributes<'a> {
    /// The partition key.
    pub partition: Option<(&'a str, &'a str)>,
    /// The sort key, if the table has one.
    pub sort: Option<(&'a str, &'a str)>,
}

impl<'a> KeyAttributes<'a> {
    /// Partition key first.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.partition.into_iter().chain(self.sort)
    }

    /// The value of the attribute of that name.
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
    /// The same, attribute by attribute.
    pub key_attributes: KeyAttributes<'a>,
    /// The shadow document, or `None` for items that are no shadows.
    pub shadow: Option<ShadowRef<'a>>,
    /// What happened.
    pub operation: Operation,
    /// Whether the table's time to live removed it.
    pub expired: bool,
    /// The document's version after the change, or the last one if it is gone.
    pub version: Option<u64>,
    /// The version before.
    pub previous_version: Option<u64>,
    /// What the writer called its request.
    pub client_token: Option<&'a str>,
    /// When it was written, in nanoseconds since 1970.
    pub timestamp: Option<i64>,
    /// The document before; `None` on insert.
    pub old: Option<View<'a>>,
    /// The document after; `None` on remove.
    pub new: Option<View<'a>>,
    /// What is different between them.
    pub diff: &'a dyn LazyDiff,
}

impl Change<'_> {
    /// Whether something besides timestamps changed. What came or went always did.
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

/// A diff that is computed when first asked for.
pub trait LazyDiff {
    /// The diff, the same at every call.
    fn diff(&self) -> &Diff<'_>;
}

/// The diff of two documents, computed once, when first asked for.
pub struct DiffCell<'a> {
    old: View<'a>,
    new: View<'a>,
    model: &'a Model,
    buffer: Cell<Option<&'a mut DiffBuffer>>,
    diff: OnceCell<Diff<'a>>,
}

/// What an item looked like before it was there.
static NOTHING: LazyLock<Document> = LazyLock::new(Document::default);

impl<'a> DiffCell<'a> {
    /// The diff from `old` to `new`; a document that is not there counts as empty.
    pub fn new(old: Option<View<'a>>, new: Option<View<'a>>, model: &'a Model) -> DiffCell<'a> {
        DiffCell {
            old: old.unwrap_or_else(|| NOTHING.view()),
            new: new.unwrap_or_else(|| NOTHING.view()),
            model,
            buffer: Cell::new(None),
            diff: OnceCell::new(),
        }
    }

    /// The same, in a buffer that is used again and again, so that nothing is allocated.
    pub fn in_buffer(mut self, buffer: &'a mut DiffBuffer) -> DiffCell<'a> {
        self.buffer = Cell::new(Some(buffer));
        self
    }

    /// Whether anybody asked.
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
