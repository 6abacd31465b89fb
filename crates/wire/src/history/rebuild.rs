//! The state of an item at a time, from its entries.
//!
//! Entries must be consecutive: each names the time of the write before it, which no other write of the item has. Versions
//! alone do not show it: a document that is created again continues those of the deleted one, or begins again. Across a
//! hole nothing is known.

use antumbra_registration::Operation;
use antumbra_shadow::{Document, Patched};

use super::entry::{Entry, EntryDocument, ItemDocuments};

/// Documents of an item, and the write that they are from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemState {
    pub version: u64,
    /// Time of the write, in nanoseconds since 1970.
    pub time: u64,
    pub documents: ItemDocuments,
}

/// State of an item at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebuilt {
    State(ItemState),
    /// The item did not exist.
    Absent,
    /// The entries do not say.
    Unknown,
}

/// The number of entries that lead back to one with the documents, in the order of newest first; `None` if none does.
pub fn reach(newest_first: &[Entry]) -> Option<usize> {
    newest_first.iter().position(Entry::is_snapshot)
}

/// Returns whether a change directly follows another one.
pub fn follows(later: &Entry, earlier: &Entry) -> bool {
    let (version, before) = (later.key.version, earlier.key.version);
    let is_named = later.previous_time == Some(earlier.key.time);
    match (later.operation, earlier.operation) {
        // Nothing is left of a delete some days later.
        (Operation::Insert, Operation::Remove) => is_named || later.previous_time.is_none(),
        (_, Operation::Remove) | (Operation::Insert, _) => false,
        (Operation::Modify, _) => is_named && before.checked_add(1) == Some(version),
        (Operation::Remove, _) => is_named && before == version,
    }
}

/// Returns the state after the newest entry. Entries must lead back to one with the documents ([`reach`]).
pub fn after(newest_first: &[Entry]) -> Rebuilt {
    let (Some(newest), Some(snapshot)) = (newest_first.first(), reach(newest_first)) else {
        return Rebuilt::Unknown;
    };
    if newest.operation == Operation::Remove {
        return Rebuilt::Absent;
    }
    let entries = &newest_first[..=snapshot];
    if !entries.windows(2).all(|two| follows(&two[0], &two[1])) {
        return Rebuilt::Unknown;
    }
    let mut state = Documents::default();
    for entry in entries.iter().rev() {
        if state.apply(entry).is_none() {
            return Rebuilt::Unknown;
        }
    }
    state.rebuilt(newest.key.version, newest.key.time)
}

/// Returns the state before the oldest entry: from the first entry that carries the documents, or from the documents
/// that the item has after all entries. It began at the time of the write that the oldest entry names.
pub fn before(oldest_first: &[Entry], current: Option<&ItemState>) -> Rebuilt {
    let Some(oldest) = oldest_first.first() else {
        return current.map_or(Rebuilt::Unknown, |state| Rebuilt::State(state.clone()));
    };
    let previous = match oldest.operation {
        Operation::Insert => return Rebuilt::Absent,
        Operation::Remove => return Rebuilt::Unknown,
        Operation::Modify => oldest.key.version.checked_sub(1),
    };
    let (Some(version), Some(time)) = (previous, oldest.previous_time) else {
        return Rebuilt::Unknown;
    };
    let snapshot = oldest_first.iter().position(Entry::is_snapshot);
    let (entries, mut state) = match (snapshot, current) {
        (Some(at), _) => {
            let mut state = Documents::default();
            if oldest_first[at].operation == Operation::Remove
                || state.apply(&oldest_first[at]).is_none()
            {
                return Rebuilt::Unknown;
            }
            (&oldest_first[..=at], state)
        }
        (None, Some(current))
            if oldest_first.last().is_some_and(|last| {
                (last.key.version, last.key.time) == (current.version, current.time)
            }) =>
        {
            (oldest_first, Documents::of(&current.documents))
        }
        _ => return Rebuilt::Unknown,
    };
    let consecutive = entries.windows(2).all(|two| follows(&two[1], &two[0]));
    if !consecutive
        || entries
            .iter()
            .rev()
            .any(|entry| state.revert(entry).is_none())
    {
        return Rebuilt::Unknown;
    }
    state.rebuilt(version, time)
}

/// Calls `visit` with each entry and the documents before and after it, oldest first, while it returns true. Entries
/// before the first one that carries the documents are left out, and so are those behind a hole.
pub fn replay(
    oldest_first: &[Entry],
    mut visit: impl FnMut(&Entry, &ItemDocuments, &ItemDocuments) -> bool,
) {
    // The entry before, the documents after it, and the same to be patched.
    let mut before: Option<(&Entry, ItemDocuments, Documents)> = None;
    for entry in oldest_first {
        let known = before
            .take()
            .filter(|(earlier, ..)| follows(entry, earlier));
        let (old, mut patched) = match known {
            Some((_, documents, patched)) => (Some(documents), patched),
            // Before a creation there was nothing.
            None if entry.operation == Operation::Insert => {
                (Some(ItemDocuments::default()), Documents::default())
            }
            None => (None, Documents::default()),
        };
        if patched.apply(entry).is_none() {
            continue;
        }
        let Some(new) = patched.documents() else {
            continue;
        };
        if let Some(old) = &old
            && !visit(entry, old, &new)
        {
            return;
        }
        before = Some((entry, new, patched));
    }
}

/// Documents that change.
#[derive(Default)]
struct Documents {
    reported: Option<Patched>,
    desired: Option<Patched>,
}

impl Documents {
    fn of(documents: &ItemDocuments) -> Documents {
        Documents {
            reported: documents.reported.as_ref().map(Patched::new),
            desired: documents.desired.as_ref().map(Patched::new),
        }
    }

    fn apply(&mut self, entry: &Entry) -> Option<()> {
        let parts = [
            (&mut self.reported, &entry.reported),
            (&mut self.desired, &entry.desired),
        ];
        for (document, part) in parts {
            match part {
                None => *document = None,
                Some(EntryDocument {
                    document: Some(new),
                    ..
                }) => *document = Some(Patched::new(new)),
                Some(EntryDocument { diff, .. }) => {
                    document.as_mut()?.apply(diff.as_ref()?).ok()?;
                }
            }
        }
        Some(())
    }

    fn revert(&mut self, entry: &Entry) -> Option<()> {
        let parts = [
            (&mut self.reported, &entry.reported),
            (&mut self.desired, &entry.desired),
        ];
        for (document, part) in parts {
            match (document, part) {
                (None, None) => {}
                (Some(document), Some(part)) => document.revert(part.diff.as_ref()?).ok()?,
                _ => return None,
            }
        }
        Some(())
    }

    fn rebuilt(self, version: u64, time: u64) -> Rebuilt {
        match self.documents() {
            Some(documents) => Rebuilt::State(ItemState {
                version,
                time,
                documents,
            }),
            None => Rebuilt::Unknown,
        }
    }

    fn documents(&self) -> Option<ItemDocuments> {
        let document = |patched: &Option<Patched>| -> Result<Option<Document>, _> {
            patched.as_ref().map(Patched::document).transpose()
        };
        Some(ItemDocuments {
            reported: document(&self.reported).ok()?,
            desired: document(&self.desired).ok()?,
        })
    }
}
