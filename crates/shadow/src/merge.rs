//! Merges the stored and the sent document into one, value by value.
//!
//! Pure and total: every pair of documents merges. Paths are walked in document order, the result is
//! written as it goes, and each leaf gets its verdict.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::build::Builder;
use crate::changes::{Changes, Note, Verdict};
use crate::clamp::clamp;
use crate::diff::unchanged;
use crate::document::Document;
use crate::model::{Arrays, Model};
use crate::pairs::all_pairs;
use crate::pointer;
use crate::tape::{Kind, View};
use crate::text;
use crate::timestamp::Timestamp;

/// Rule for values that only one side has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// The sender adds and updates, and cannot delete.
    #[default]
    ServerIsMaster,
    /// Values that the sender leaves out are removed.
    ClientIsMaster,
    /// Values that the sender leaves out are kept; `null` deletes.
    Patch,
}

/// The text is not the name of a merge mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown merge mode {0:?}: one of ServerIsMaster, ClientIsMaster, Patch")]
pub struct UnknownMode(pub String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(word: &str) -> Result<Mode, UnknownMode> {
        match word {
            "ServerIsMaster" => Ok(Mode::ServerIsMaster),
            "ClientIsMaster" => Ok(Mode::ClientIsMaster),
            "Patch" => Ok(Mode::Patch),
            other => Err(UnknownMode(other.to_owned())),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Result of [`merge`](merge()).
#[derive(Debug, Clone)]
pub struct Merged {
    /// The merged document.
    pub document: Document,
    /// The verdict on every leaf.
    pub changes: Changes,
    changed: bool,
}

impl Merged {
    /// Returns `true` if the merged document differs from the stored one.
    pub fn changed(&self) -> bool {
        self.changed
    }
}

/// Merges a sent document into the stored one.
///
/// `now` matters only when the model bounds how far in the future a time may lie.
///
/// ```
/// use antumbra_shadow::{merge, Document, Mode, Model, Timestamp, Verdict};
///
/// let stored = Document::parse(r#"{"temp":{"timestamp":1700000060,"value":21}}"#)?;
/// let late = Document::parse(r#"{"temp":{"timestamp":1700000000,"value":19}}"#)?;
///
/// let merged = merge(&stored, &late, Mode::ServerIsMaster, &Model::default(), Timestamp::default());
/// assert_eq!(merged.document, stored);
/// assert_eq!(merged.changes.iter().next().unwrap().verdict, Verdict::Stale);
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
pub fn merge(
    stored: &Document,
    sent: &Document,
    mode: Mode,
    model: &Model,
    now: Timestamp,
) -> Merged {
    let (sent, clamped) = clamp(sent, model, now).unwrap_or_else(|| (sent.clone(), Vec::new()));
    let size = stored.as_str().len() + sent.as_str().len();
    let mut merging = Merging {
        mode,
        model,
        clamped,
        out: Builder::with_capacity(size, size / 12 + 1),
        changes: Changes::new(stored.clone(), sent.clone(), model.clone()),
        pointer: String::new(),
        changed: false,
    };
    let opened = merging.out.open(None, Kind::Object);
    merging.members(stored.view(), sent.view());
    merging.out.close(opened);
    Merged {
        document: merging.out.finish(),
        changes: merging.changes,
        changed: merging.changed,
    }
}

struct Merging<'m> {
    mode: Mode,
    model: &'m Model,
    /// Nodes of the sent document whose time was set to now; rising.
    clamped: Vec<u32>,
    out: Builder,
    changes: Changes,
    pointer: String,
    changed: bool,
}

impl Merging<'_> {
    fn members(&mut self, stored: View<'_>, sent: View<'_>) {
        all_pairs(stored, sent, |key, old, new| {
            let parent = self.pointer.len();
            pointer::push_key(&mut self.pointer, &text::unescape(key));
            match (old, new) {
                (Some(old), None) => self.unsent(Some(key), old, None),
                (None, Some(new)) if self.is_nothing(new) => {}
                (None, Some(new)) => self.added(Some(key), new),
                (Some(old), Some(new)) if self.is_nothing(new) && !self.has_members(old) => {
                    self.unsent(Some(key), old, Some(new));
                }
                (Some(old), Some(new)) if new.kind() == Kind::Null => {
                    self.unsent(Some(key), old, Some(new))
                }
                (Some(old), Some(new)) => self.both(Some(key), old, new),
                (None, None) => {}
            }
            self.pointer.truncate(parent);
            true
        });
    }

    /// Handles a value that is only stored, or sent without content: the mode decides whether it stays.
    fn unsent(&mut self, key: Option<&str>, old: View<'_>, nothing: Option<View<'_>>) {
        let kept = match self.mode {
            Mode::ServerIsMaster => true,
            Mode::ClientIsMaster => false,
            Mode::Patch => nothing.is_none(),
        };
        if kept {
            self.keep(key, old, nothing.map(|_| Note::NullKept));
        } else {
            self.leaves(old, &mut |merging, leaf| {
                merging.push(Verdict::Removed, None, Some(leaf), None)
            });
        }
    }

    fn keep(&mut self, key: Option<&str>, old: View<'_>, note: Option<Note>) {
        self.out.copy(key, old);
        self.leaves(old, &mut |merging, leaf| {
            merging.push(Verdict::Unsent, note, Some(leaf), None)
        });
    }

    /// Handles a value that is only sent. Members without content are left out.
    fn added(&mut self, key: Option<&str>, new: View<'_>) {
        if self.is_leaf(new) {
            self.out.copy(key, new);
            return self.push(Verdict::Added, None, None, Some(new));
        }
        let opened = self.out.open(key, new.kind());
        let mut wrote = false;
        self.each_child(new, &mut |merging, key, child| {
            if key.is_none() || !merging.is_nothing(child) {
                wrote = true;
                merging.added(key, child);
            }
        });
        self.out.close(opened);
        if !wrote {
            // An element whose members all were null: an empty object, which is a leaf.
            self.push(Verdict::Added, None, None, Some(new));
        }
    }

    fn both(&mut self, key: Option<&str>, old: View<'_>, new: View<'_>) {
        let old_time = self.model.time(old);
        // Equal texts have equal times, and most sent values equal the stored ones.
        let new_time = if unchanged(old, new) {
            old_time
        } else {
            self.model.time(new)
        };
        match (old_time, new_time) {
            (Some(old_time), Some(new_time)) => {
                let verdict = match new_time.cmp(&old_time) {
                    Ordering::Greater => Verdict::Updated,
                    Ordering::Equal => Verdict::Equal,
                    Ordering::Less => Verdict::Stale,
                };
                self.out.copy(
                    key,
                    if verdict == Verdict::Updated {
                        new
                    } else {
                        old
                    },
                );
                self.push(verdict, None, Some(old), Some(new));
            }
            (None, None) => match (old.kind(), new.kind()) {
                (Kind::Object, Kind::Object) => self.objects(key, old, new),
                (Kind::Array, Kind::Array) if !self.is_leaf(old) || !self.is_leaf(new) => {
                    self.arrays(key, old, new);
                }
                _ if self.is_leaf(old) && old.same(new) => {
                    self.out.copy(key, old);
                    self.push(Verdict::Same, None, Some(old), Some(new));
                }
                _ => self.replaced(key, old, new),
            },
            _ => self.replaced(key, old, new),
        }
    }

    fn replaced(&mut self, key: Option<&str>, old: View<'_>, new: View<'_>) {
        self.copy_without_nulls(key, new);
        let note = self.note_within(new);
        self.push(Verdict::Updated, note, Some(old), Some(new));
    }

    fn objects(&mut self, key: Option<&str>, old: View<'_>, new: View<'_>) {
        let mark = self.out.mark();
        let opened = self.out.open(key, Kind::Object);
        let inside = self.out.mark();
        self.members(old, new);
        let empty = self.out.mark() == inside;
        self.out.close(opened);
        if empty && old.is_empty_container() {
            let same = new.is_empty_container();
            let verdict = if same { Verdict::Same } else { Verdict::Unsent };
            self.push(verdict, None, Some(old), Some(new));
        } else if empty && !new.is_empty_container() && key.is_some() {
            // Nulls took the last member, so that the object goes with it.
            self.out.rewind(mark);
        }
    }

    fn arrays(&mut self, key: Option<&str>, old: View<'_>, new: View<'_>) {
        let opened = self.out.open(key, Kind::Array);
        match (self.model.ids(old), self.model.ids(new)) {
            (Some(old_ids), Some(new_ids)) => self.elements_by_id(old, &old_ids, new, &new_ids),
            (_, new_ids) => self.elements_by_position(old, new, new_ids.is_some()),
        }
        self.out.close(opened);
        if old.is_empty_container() && new.is_empty_container() {
            self.push(Verdict::Same, None, Some(old), Some(new));
        }
    }

    fn elements_by_id(
        &mut self,
        old: View<'_>,
        old_ids: &[(Kind, &str)],
        new: View<'_>,
        new_ids: &[(Kind, &str)],
    ) {
        let mut unmatched: HashMap<_, _> = new_ids.iter().copied().zip(new.children()).collect();
        let mut written = 0;
        for (index, (id, element)) in old_ids.iter().zip(old.children()).enumerate() {
            let matching = unmatched.remove(id);
            written += usize::from(matching.is_some() || self.mode != Mode::ClientIsMaster);
            self.at_index(index, |merging| match matching {
                Some(new) => merging.both(None, element, new),
                None => merging.unsent(None, element, None),
            });
        }
        for (id, element) in new_ids.iter().zip(new.children()) {
            if unmatched.contains_key(id) {
                self.at_index(written, |merging| merging.added(None, element));
                written += 1;
            }
        }
    }

    /// `named`: every sent element has an id of its own, only the stored ones have not.
    fn elements_by_position(&mut self, old: View<'_>, new: View<'_>, named: bool) {
        let (mut olds, mut news) = (old.children(), new.children());
        for index in 0.. {
            let pair = (olds.next(), news.next());
            if pair.0.is_none() && pair.1.is_none() {
                return;
            }
            self.at_index(index, |merging| match pair {
                (Some(old), None) => merging.unsent(None, old, None),
                (None, Some(new)) => merging.added(None, new),
                (Some(old), Some(new)) => merging.elements(old, new, named),
                (None, None) => {}
            });
        }
    }

    /// In an array `null` is a value, since a position cannot be taken out; but it still deletes nothing
    /// where the server is master.
    fn elements(&mut self, old: View<'_>, new: View<'_>, named: bool) {
        let null = new.kind() == Kind::Null && old.kind() != Kind::Null;
        if null && self.mode == Mode::ServerIsMaster {
            self.keep(None, old, Some(Note::NullKept));
        } else if named && self.is_another(old, new) {
            self.replaced(None, old, new);
        } else {
            self.both(None, old, new);
        }
    }

    /// Returns `true` if two timestamped elements have different ids. Their times cannot be compared, and
    /// keeping the later one would add the other behind it as soon as the array is matched by id.
    fn is_another(&self, old: View<'_>, new: View<'_>) -> bool {
        let timed = |view| self.model.time(view).is_some();
        let ids = (old.get(&self.model.id_field), new.get(&self.model.id_field));
        timed(old) && timed(new) && matches!(ids, (Some(old), Some(new)) if !old.same(new))
    }

    fn at_index(&mut self, index: usize, visit: impl FnOnce(&mut Self)) {
        let parent = self.pointer.len();
        pointer::push_index(&mut self.pointer, index);
        visit(self);
        self.pointer.truncate(parent);
    }

    /// Visits the children of a container with the pointer set to each.
    fn each_child<'v>(
        &mut self,
        view: View<'v>,
        visit: &mut dyn FnMut(&mut Self, Option<&'v str>, View<'v>),
    ) {
        let named = view.kind() == Kind::Object;
        for (index, child) in view.children().enumerate() {
            let parent = self.pointer.len();
            if named {
                pointer::push_key(&mut self.pointer, &child.key());
            } else {
                pointer::push_index(&mut self.pointer, index);
            }
            visit(self, named.then(|| child.raw_key()), child);
            self.pointer.truncate(parent);
        }
    }

    fn leaves<'v>(&mut self, view: View<'v>, visit: &mut dyn FnMut(&mut Self, View<'v>)) {
        if self.is_leaf(view) {
            return visit(self, view);
        }
        self.each_child(view, &mut |merging, _, child| merging.leaves(child, visit));
    }

    fn copy_without_nulls(&mut self, key: Option<&str>, view: View<'_>) {
        if self.is_leaf(view) {
            return self.out.copy(key, view);
        }
        let opened = self.out.open(key, view.kind());
        let named = view.kind() == Kind::Object;
        for child in view.children() {
            if !named || !self.is_nothing(child) {
                self.copy_without_nulls(named.then(|| child.raw_key()), child);
            }
        }
        self.out.close(opened);
    }

    fn is_leaf(&self, view: View<'_>) -> bool {
        !view.is_container()
            || view.is_empty_container()
            || (view.kind() == Kind::Array && self.model.arrays == Arrays::Whole)
            || self.model.time(view).is_some()
    }

    /// Returns `true` if nulls would delete members of the value rather than the value itself.
    fn has_members(&self, view: View<'_>) -> bool {
        view.kind() == Kind::Object && !self.is_leaf(view)
    }

    /// Returns `true` for members without content: `null`, or a plain object that contains only such members.
    fn is_nothing(&self, view: View<'_>) -> bool {
        match view.kind() {
            Kind::Null => true,
            Kind::Object => {
                !view.is_empty_container()
                    && view.children().all(|member| self.is_nothing(member))
                    && self.model.time(view).is_none()
            }
            _ => false,
        }
    }

    fn push(
        &mut self,
        verdict: Verdict,
        note: Option<Note>,
        old: Option<View<'_>>,
        new: Option<View<'_>>,
    ) {
        self.changed |= verdict.is_change();
        let note = note.or_else(|| self.note_on(new?));
        self.changes.push(&self.pointer, verdict, note, old, new);
    }

    /// Returns the note for a value whose leaves share one entry.
    fn note_within(&self, new: View<'_>) -> Option<Note> {
        let nodes = new.index()..new.index() + new.subtree().len() as u32;
        if self.clamped.iter().any(|at| nodes.contains(at)) {
            return Some(Note::Clamped);
        }
        self.misses_a_time(new).then_some(Note::NotATimestamp)
    }

    /// Returns `true` if a plain object in the value has a timestamp member that is not a time.
    fn misses_a_time(&self, view: View<'_>) -> bool {
        if self.is_leaf(view) {
            return false;
        }
        let member = view.get(&self.model.timestamp_field);
        member.is_some_and(|member| !member.is_container() && member.kind() != Kind::Null)
            || view.children().any(|child| self.misses_a_time(child))
    }

    fn note_on(&self, new: View<'_>) -> Option<Note> {
        if self.clamped.binary_search(&new.index()).is_ok() {
            return Some(Note::Clamped);
        }
        // The object that holds this member would have been taken whole, had the member said a time.
        let below_root = self.pointer.bytes().filter(|&b| b == b'/').count() > 1;
        let misses = !new.is_container() && below_root && new.key() == self.model.timestamp_field;
        misses.then_some(Note::NotATimestamp)
    }
}
