//! Merges the stored and the sent document into one, value by value.
//!
//! Pure and total: every pair of documents merges. Paths are walked in document order and the result is written as
//! it goes. The same walk, run again, reports the verdict on each leaf.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::build::Builder;
use crate::changes::{Change, Changes, Note, Verdict};
use crate::diff::unchanged;
use crate::document::Document;
use crate::model::{Arrays, Model};
use crate::order::Order;
use crate::pairs::all_twins;
use crate::pointer;
use crate::tape::{Kind, Node, View};
use crate::text;
use crate::times::LeafTimes;
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
    /// The times of the merged document's leaves, from [`merge_in_order`].
    pub times: Option<LeafTimes>,
    changed: bool,
    times_changed: bool,
}

impl Merged {
    /// Returns `true` if the merged document differs from the stored one.
    pub fn changed(&self) -> bool {
        self.changed
    }

    /// Returns `true` if what was sent is newer than the recorded times, be the values the same.
    pub fn times_changed(&self) -> bool {
        self.times_changed
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
/// merged.changes.for_each(|change| assert_eq!(change.verdict, Verdict::Stale));
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
pub fn merge(
    stored: &Document,
    sent: &Document,
    mode: Mode,
    model: &Model,
    now: Timestamp,
) -> Merged {
    Input {
        stored: stored.clone(),
        sent: sent.clone(),
        mode,
        model: model.clone(),
        now,
        order: None,
    }
    .merge()
}

/// Merges a sent document into the stored one, of whose leaves the times are known.
///
/// With `at`, the time of the message, plain values and `null`s are ordered by it: one that is older than what is
/// recorded at, above or below its place is stale. Without, they win. Timestamped values go by their own times.
/// An array is one value here: it is taken or left by the time of its newest leaf.
///
/// ```
/// use antumbra_shadow::{merge_in_order, Document, LeafTimes, Mode, Model, Timestamp};
///
/// let at = |seconds: i128| Timestamp::from_nanoseconds(seconds * 1_000_000_000);
/// let stored = Document::parse(r#"{"led":"on"}"#)?;
/// let late = Document::parse(r#"{"led":"off","fan":1}"#)?;
/// let times = LeafTimes::all(&stored, at(60));
/// let merged = merge_in_order(&stored, &times, &late, Some(at(59)), Mode::Patch, &Model::default(), at(61));
/// assert_eq!(merged.document.as_str(), r#"{"fan":1,"led":"on"}"#);
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
pub fn merge_in_order(
    stored: &Document,
    times: &LeafTimes,
    sent: &Document,
    at: Option<Timestamp>,
    mode: Mode,
    model: &Model,
    now: Timestamp,
) -> Merged {
    Input {
        stored: stored.clone(),
        sent: sent.clone(),
        mode,
        model: model.clone(),
        now,
        order: Some((times.clone(), at)),
    }
    .merge()
}

/// Arguments of a merge, kept to run it again for the verdicts.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    stored: Document,
    sent: Document,
    mode: Mode,
    model: Model,
    now: Timestamp,
    order: Option<(LeafTimes, Option<Timestamp>)>,
}

/// Receives the verdicts.
pub(crate) type Report<'r> = &'r mut dyn FnMut(Change<'_>);

impl Input {
    fn merge(self) -> Merged {
        let Merging {
            out,
            order,
            changed,
            ..
        } = self.run(None);
        Merged {
            document: out.finish(),
            changed,
            times_changed: order.as_ref().is_some_and(|order| order.changed),
            times: order.map(Order::finish),
            changes: Changes(self),
        }
    }

    pub(crate) fn run<'m>(&'m self, report: Option<Report<'m>>) -> Merging<'m> {
        let (stored, sent) = (self.stored.view(), self.sent.view());
        // Both bounds are met where the documents have nothing in common. Growing would take more.
        let text = self.stored.as_str().len() + self.sent.as_str().len();
        let nodes = stored.subtree().len() + sent.subtree().len();
        let order = self.order.as_ref();
        let mut merging = Merging {
            mode: self.mode,
            model: &self.model,
            latest: self.model.max_future.map(|bound| self.now.after(bound)),
            out: Builder::with_capacity(text, nodes),
            order: order.map(|(times, at)| Order::new(times, *at, self.now, &self.model)),
            report,
            pointer: String::new(),
            depth: 0,
            changed: false,
        };
        let opened = merging.out.open(None, Kind::Object);
        merging.members(stored, sent);
        merging.out.close(opened);
        merging
    }
}

pub(crate) struct Merging<'m> {
    mode: Mode,
    model: &'m Model,
    /// Times after this one lie too far in the future.
    latest: Option<Timestamp>,
    out: Builder,
    order: Option<Order<'m>>,
    report: Option<Report<'m>>,
    /// Place of the value; written only for the report.
    pointer: String,
    depth: usize,
    changed: bool,
}

impl<'m> Merging<'m> {
    fn members(&mut self, stored: View<'m>, sent: View<'m>) {
        self.record_replacement(sent);
        all_twins(stored, sent, |old, new| {
            let Some(key) = new.or(old).map(View::raw_key) else {
                return true;
            };
            self.at_key(key, |merging| match (old, new) {
                (Some(old), None) => merging.unsent(Some(key), old, None),
                (None, Some(new)) if merging.is_nothing(new) => merging.record_nulls(new),
                (None, Some(new)) => merging.added(Some(key), new),
                (Some(old), Some(new))
                    if new.kind() == Kind::Null
                        || (merging.is_nothing(new) && !merging.has_members(old)) =>
                {
                    merging.unsent(Some(key), old, Some(new));
                }
                (Some(old), Some(new)) => merging.both(Some(key), old, new),
                (None, None) => {}
            });
            true
        });
    }

    /// Handles a value that is only stored, or sent without content: the mode decides whether it stays.
    fn unsent(&mut self, key: Option<&str>, old: View<'m>, nothing: Option<View<'m>>) {
        let kept = match self.mode {
            Mode::ServerIsMaster => true,
            Mode::ClientIsMaster => false,
            Mode::Patch => nothing.is_none(),
        };
        if kept {
            return self.keep(key, old, Verdict::Unsent, nothing.map(|_| Note::NullKept));
        }
        match self.is_late(None, Some(old)) {
            Some(Verdict::Future) => return self.keep(key, old, Verdict::Future, None),
            Some(_) => self.keep_newer(key, old),
            None => {
                if let (Some(order), true) = (&mut self.order, nothing.is_some()) {
                    let newest = order.newest_of(old);
                    // An object of nulls takes back its members only, and with them what stood in its place.
                    if nothing.is_some_and(|nothing| nothing.kind() == Kind::Null) {
                        order.record_removal();
                    } else {
                        order.record(newest);
                    }
                }
                self.drop(old);
                self.leaves(old, &mut |merging, leaf| {
                    merging.push(Verdict::Removed, None, Some(leaf), None)
                });
            }
        }
        if let Some(nothing) = nothing {
            self.record_nulls(nothing);
        }
    }

    /// Keeps those leaves of a value that are newer than the message.
    fn keep_newer(&mut self, key: Option<&str>, old: View<'m>) {
        if self.is_leaf(old) || old.kind() == Kind::Array {
            let newer = self.order.as_ref().is_some_and(|order| order.is_newer(old));
            if newer {
                return self.keep(key, old, Verdict::Stale, None);
            }
            self.drop(old);
            return self.leaves(old, &mut |merging, leaf| {
                merging.push(Verdict::Removed, None, Some(leaf), None)
            });
        }
        let mark = self.out.mark();
        let opened = self.out.open(key, Kind::Object);
        let inside = self.out.mark();
        for child in old.children() {
            let key = child.raw_key();
            self.at_key(key, |merging| merging.keep_newer(Some(key), child));
        }
        if self.out.mark() == inside {
            self.out.rewind(mark);
        } else {
            self.out.close(opened);
        }
    }

    fn keep(&mut self, key: Option<&str>, old: View<'m>, verdict: Verdict, note: Option<Note>) {
        self.out.copy(key, old);
        if let Some(order) = &mut self.order {
            order.keep(old);
        }
        if self.report.is_some() {
            self.leaves(old, &mut |merging, leaf| {
                merging.push(verdict, note, Some(leaf), None)
            });
        }
    }

    /// Keeps a stored value for which another was sent.
    fn keep_against(&mut self, key: Option<&str>, old: View<'m>, new: View<'m>, verdict: Verdict) {
        self.out.copy(key, old);
        if let Some(order) = &mut self.order {
            order.keep(old);
        }
        self.push(verdict, None, Some(old), Some(new));
    }

    /// Passes over the times of a stored value that goes.
    fn drop(&mut self, old: View<'m>) {
        if let Some(order) = &mut self.order {
            order.skip(old);
        }
    }

    /// Handles a value that is only sent. Members without content are left out.
    fn added(&mut self, key: Option<&str>, new: View<'m>) {
        self.record_replacement(new);
        if self.is_leaf(new) {
            let own_time = self.model.time(new);
            if let Some(verdict) = self.is_late(own_time, None) {
                self.record_stale(verdict, own_time);
                return self.push(verdict, None, None, Some(new));
            }
            self.out.copy(key, new);
            self.stamp(new.subtree(), None);
            return self.push(Verdict::Added, None, None, Some(new));
        }
        if new.kind() == Kind::Array {
            let future = self.is_future(new).then_some(Verdict::Future);
            if let Some(verdict) = future.or_else(|| self.is_late(None, None)) {
                self.record_stale(verdict, None);
                return self.push(verdict, None, None, Some(new));
            }
            let named = self.model.ids(new).is_some();
            let first = self.out.mark().1;
            let opened = self.out.open(key, Kind::Array);
            self.pause(true);
            let (mut refused, mut written) = (false, 0);
            for element in new.children() {
                refused = self.is_future(element) || refused && !named;
                self.at_index(written, |merging| merging.added_element(element, refused));
                written += usize::from(!refused || !named);
            }
            self.pause(false);
            self.out.close(opened);
            return self.stamp_written(first, None);
        }
        let mark = self.out.mark();
        let opened = self.out.open(key, Kind::Object);
        let inside = self.out.mark();
        for child in new.children() {
            let key = child.raw_key();
            self.at_key(key, |merging| match merging.is_nothing(child) {
                true => merging.record_nulls(child),
                false => merging.added(Some(key), child),
            });
        }
        if self.out.mark() != inside || key.is_none() {
            self.out.close(opened);
        } else {
            self.out.rewind(mark);
        }
        if self.out.mark() == (inside.0 + 1, inside.1) {
            // An element whose members all were null: an empty object, which is a leaf.
            self.push(Verdict::Added, None, None, Some(new));
        }
    }

    /// An element behind one that was refused is refused with it, unless elements have ids: it would take its position.
    fn added_element(&mut self, element: View<'m>, refused: bool) {
        match refused {
            true => self.push(Verdict::Future, None, None, Some(element)),
            false => self.added(None, element),
        }
    }

    fn both(&mut self, key: Option<&str>, old: View<'m>, new: View<'m>) {
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
                    Ordering::Greater if self.latest.is_some_and(|latest| new_time > latest) => {
                        Verdict::Future
                    }
                    Ordering::Greater => Verdict::Updated,
                    Ordering::Equal => Verdict::Equal,
                    Ordering::Less => Verdict::Stale,
                };
                if verdict != Verdict::Updated {
                    return self.keep_against(key, old, new, verdict);
                }
                self.out.copy(key, new);
                self.stamp(new.subtree(), Some(old));
                self.push(verdict, None, Some(old), Some(new));
            }
            (None, None) => match (old.kind(), new.kind()) {
                (Kind::Object, Kind::Object) => self.objects(key, old, new),
                (Kind::Array, Kind::Array) if !self.is_leaf(old) || !self.is_leaf(new) => {
                    self.arrays(key, old, new);
                }
                _ if self.is_leaf(old) && old.same(new) => {
                    self.out.copy(key, old);
                    if let Some(order) = &mut self.order {
                        order.confirm(old);
                    }
                    self.push(Verdict::Same, None, Some(old), Some(new));
                }
                _ => self.replaced(key, old, new),
            },
            _ => self.replaced(key, old, new),
        }
    }

    fn replaced(&mut self, key: Option<&str>, old: View<'m>, new: View<'m>) {
        if self.is_future(new) {
            return self.keep_against(key, old, new, Verdict::Future);
        }
        let own_time = self.model.time(new);
        match self.is_late(own_time, Some(old)) {
            Some(Verdict::Stale) if own_time.is_none() && self.has_members(old) => {
                self.keep_newer(key, old);
                return self.record_removal();
            }
            Some(verdict) => {
                if !self.has_members(new) {
                    self.record_stale(verdict, own_time);
                }
                return self.keep_against(key, old, new, verdict);
            }
            None => {}
        }
        if let Some(order) = &mut self.order
            && new.is_container()
        {
            let newest = order.newest_of(old);
            order.record(newest);
        }
        self.record_replacement(new);
        let first = self.out.mark().1;
        self.copy_without_nulls(key, new);
        self.stamp_written(first, Some(old));
        self.record_nulls(new);
        let note = self.misses_a_time(new).then_some(Note::NotATimestamp);
        self.push(Verdict::Updated, note, Some(old), Some(new));
    }

    fn objects(&mut self, key: Option<&str>, old: View<'m>, new: View<'m>) {
        let mark = self.out.mark();
        let opened = self.out.open(key, Kind::Object);
        let inside = self.out.mark();
        self.members(old, new);
        let empty = self.out.mark() == inside;
        self.out.close(opened);
        if empty && old.is_empty_container() {
            let same = new.is_empty_container();
            let verdict = if same { Verdict::Same } else { Verdict::Unsent };
            if let Some(order) = &mut self.order {
                match same {
                    true => order.confirm(old),
                    false => order.keep(old),
                }
            }
            return self.push(verdict, None, Some(old), Some(new));
        }
        if old.is_empty_container() {
            self.drop(old);
        }
        if empty && !new.is_empty_container() && key.is_some() {
            // Nulls took the last member, so that the object goes with it.
            self.out.rewind(mark);
        } else if empty {
            self.stamp_written(mark.1, None);
        }
    }

    fn arrays(&mut self, key: Option<&str>, old: View<'m>, new: View<'m>) {
        if let Some(verdict) = self.is_late(None, Some(old)) {
            return self.keep_against(key, old, new, verdict);
        }
        let first = self.out.mark().1;
        let changed_before = std::mem::take(&mut self.changed);
        let opened = self.out.open(key, Kind::Array);
        self.pause(true);
        match (self.model.ids(old), self.model.ids(new)) {
            (Some(old_ids), Some(new_ids)) => self.elements_by_id(old, old_ids, new, new_ids),
            (_, new_ids) => self.elements_by_position(old, new, new_ids.is_some()),
        }
        self.pause(false);
        self.out.close(opened);
        match (self.changed, &mut self.order) {
            (true, _) => self.stamp_written(first, Some(old)),
            (false, Some(order)) => order.confirm(old),
            (false, None) => {}
        }
        self.changed |= changed_before;
        if old.is_empty_container() && new.is_empty_container() {
            self.push(Verdict::Same, None, Some(old), Some(new));
        }
    }

    fn elements_by_id(
        &mut self,
        old: View<'m>,
        old_ids: Vec<(Kind, &'m str)>,
        new: View<'m>,
        new_ids: Vec<(Kind, &'m str)>,
    ) {
        let nodes = new_ids.into_iter().zip(new.children().map(View::index));
        let mut unmatched: HashMap<(Kind, &str), u32> = nodes.collect();
        let mut written = 0;
        for (index, (id, element)) in old_ids.into_iter().zip(old.children()).enumerate() {
            let matching = unmatched.remove(&id);
            written += usize::from(matching.is_some() || self.mode != Mode::ClientIsMaster);
            self.at_index(index, |merging| match matching {
                Some(node) => merging.both(None, element, new.at(node)),
                None => merging.unsent(None, element, None),
            });
        }
        for element in new.children() {
            let id = element.get(&self.model.id_field);
            if id.is_some_and(|id| unmatched.contains_key(&(id.kind(), id.raw()))) {
                let future = self.is_future(element);
                self.at_index(written, |merging| merging.added_element(element, future));
                written += usize::from(!future);
            }
        }
    }

    /// `named`: every sent element has an id of its own, only the stored ones have not.
    fn elements_by_position(&mut self, old: View<'m>, new: View<'m>, named: bool) {
        let (mut olds, mut news) = (old.children(), new.children());
        let mut refused = false;
        for index in 0.. {
            let pair = (olds.next(), news.next());
            if pair.0.is_none() && pair.1.is_none() {
                return;
            }
            let future = pair.0.is_none() && pair.1.is_some_and(|new| self.is_future(new));
            refused = future || refused && !named;
            self.at_index(index, |merging| match pair {
                (Some(old), None) => merging.unsent(None, old, None),
                (None, Some(new)) => merging.added_element(new, refused),
                (Some(old), Some(new)) => merging.elements(old, new, named),
                (None, None) => {}
            });
        }
    }

    /// In an array `null` is a value, since a position cannot be taken out; but it still deletes nothing
    /// where the server is master.
    fn elements(&mut self, old: View<'m>, new: View<'m>, named: bool) {
        let null = new.kind() == Kind::Null && old.kind() != Kind::Null;
        if null && self.mode == Mode::ServerIsMaster {
            self.keep(None, old, Verdict::Unsent, Some(Note::NullKept));
        } else if named && self.is_another(old, new) {
            self.replaced(None, old, new);
        } else {
            self.both(None, old, new);
        }
    }

    /// Returns `true` if two timestamped elements have different ids. Their times cannot be compared, and
    /// keeping the later one would add the other behind it as soon as the array is matched by id.
    fn is_another(&self, old: View<'m>, new: View<'m>) -> bool {
        let timed = |view| self.model.time(view).is_some();
        let ids = (old.get(&self.model.id_field), new.get(&self.model.id_field));
        timed(old) && timed(new) && matches!(ids, (Some(old), Some(new)) if !old.same(new))
    }

    fn at_key(&mut self, key: &'m str, visit: impl FnOnce(&mut Self)) {
        let parent = self.pointer.len();
        if self.report.is_some() {
            pointer::push_key(&mut self.pointer, &text::unescape(key));
        }
        let place = self.order.as_mut().map(|order| order.enter(key));
        self.depth += 1;
        visit(self);
        self.depth -= 1;
        if let (Some(order), Some(place)) = (&mut self.order, place) {
            order.leave(place);
        }
        self.pointer.truncate(parent);
    }

    fn at_index(&mut self, index: usize, visit: impl FnOnce(&mut Self)) {
        let parent = self.pointer.len();
        if self.report.is_some() {
            pointer::push_index(&mut self.pointer, index);
        }
        self.depth += 1;
        visit(self);
        self.depth -= 1;
        self.pointer.truncate(parent);
    }

    fn leaves(&mut self, view: View<'m>, visit: &mut dyn FnMut(&mut Self, View<'m>)) {
        if self.is_leaf(view) {
            return visit(self, view);
        }
        let named = view.kind() == Kind::Object;
        for (index, child) in view.children().enumerate() {
            match named {
                true => self.at_key(child.raw_key(), |merging| merging.leaves(child, visit)),
                false => self.at_index(index, |merging| merging.leaves(child, visit)),
            }
        }
    }

    fn copy_without_nulls(&mut self, key: Option<&str>, view: View<'m>) {
        if self.is_leaf(view) {
            return self.out.copy(key, view);
        }
        let opened = self.out.open(key, view.kind());
        let named = view.kind() == Kind::Object;
        for child in view.children() {
            let future = self.is_future(child);
            if future && view.kind() == Kind::Array && self.model.ids(view).is_none() {
                break;
            }
            if future || (named && self.is_nothing(child)) {
                continue;
            }
            self.copy_without_nulls(named.then(|| child.raw_key()), child);
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

    /// Returns `true` for timestamped values too far in the future, and for containers of which nothing else would be
    /// taken.
    fn is_future(&self, view: View<'_>) -> bool {
        let Some(latest) = self.latest.filter(|_| view.is_container()) else {
            return false;
        };
        match (self.model.time(view), view.kind()) {
            (Some(time), _) => time > latest,
            (None, Kind::Array) => {
                let mut elements = view.children();
                self.model.arrays == Arrays::Matched
                    && elements.next().is_some_and(|first| self.is_future(first))
                    && (self.model.ids(view).is_none()
                        || elements.all(|element| self.is_future(element)))
            }
            (None, _) => {
                let mut members = view.children();
                let mut any = false;
                members.all(|member| {
                    let future = self.is_future(member);
                    any |= future;
                    future || self.is_nothing(member)
                }) && any
            }
        }
    }

    /// Returns the verdict on a sent value that is too old or too far in the future to take the place of `old`.
    fn is_late(&self, own_time: Option<Timestamp>, old: Option<View<'m>>) -> Option<Verdict> {
        let at = self.order.as_ref().and_then(Order::at);
        let time = own_time.or(at)?;
        if self.latest.is_some_and(|latest| time > latest) {
            return Some(Verdict::Future);
        }
        // Without a time of the message, plain values win and take every other.
        let order = self.order.as_ref().filter(|_| at.is_some())?;
        order.is_stale(time, old).then_some(Verdict::Stale)
    }

    /// Notes the time of the leaves among the nodes that take the place of `old`.
    fn stamp(&mut self, nodes: &[Node], old: Option<View<'m>>) {
        if let Some(order) = &mut self.order {
            order.stamp(leaves_among(nodes), old);
        }
    }

    /// The same for all nodes written since.
    fn stamp_written(&mut self, first: usize, old: Option<View<'m>>) {
        if let Some(order) = &mut self.order {
            order.stamp(leaves_among(self.out.written(first)), old);
        }
    }

    /// Leaves the times of elements to their array.
    fn pause(&mut self, pause: bool) {
        if let Some(order) = &mut self.order {
            order.pause(pause);
        }
    }

    /// Notes that everything here was removed, apart from what is newer.
    fn record_removal(&mut self) {
        if let Some(order) = &mut self.order
            && !matches!((self.latest, order.at()), (Some(latest), Some(at)) if at > latest)
        {
            order.record_removal();
        }
    }

    /// Notes that a stale plain value took the place of what was older.
    fn record_stale(&mut self, verdict: Verdict, own_time: Option<Timestamp>) {
        if verdict == Verdict::Stale && own_time.is_none() {
            self.record_removal();
        }
    }

    /// Notes that a sent object takes the place of everything that was here.
    fn record_replacement(&mut self, sent: View<'m>) {
        let replaces = self.mode == Mode::ClientIsMaster && sent.kind() == Kind::Object;
        if replaces && (self.depth == 0 || self.model.time(sent).is_none()) {
            self.record_removal();
        }
    }

    /// Notes the nulls of a value where they remove members.
    fn record_nulls(&mut self, view: View<'m>) {
        if self.order.is_none() || self.mode == Mode::ServerIsMaster {
            return;
        }
        match view.kind() {
            Kind::Null => self.record_removal(),
            Kind::Object if self.model.time(view).is_none() => {
                for child in view.children() {
                    self.at_key(child.raw_key(), |merging| merging.record_nulls(child));
                }
            }
            _ => {}
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
        let noted = note.or_else(|| self.note_on(new?));
        if let Some(report) = &mut self.report {
            report(Change {
                pointer: &self.pointer,
                verdict,
                note: noted,
                old,
                new,
                model: self.model,
            });
        }
    }

    /// Returns `true` if a plain object in the value has a timestamp member that is not a time.
    fn misses_a_time(&self, view: View<'_>) -> bool {
        if self.report.is_none() || self.is_leaf(view) {
            return false;
        }
        let member = view.get(&self.model.timestamp_field);
        member.is_some_and(|member| !member.is_container() && member.kind() != Kind::Null)
            || view.children().any(|child| self.misses_a_time(child))
    }

    fn note_on(&self, new: View<'_>) -> Option<Note> {
        // The object that holds this member would have been taken whole, had the member been a time.
        let below_root = self.report.is_some() && self.depth > 1;
        let misses = below_root && !new.is_container() && new.key() == self.model.timestamp_field;
        misses.then_some(Note::NotATimestamp)
    }
}

/// Leaves in the sense of leaf times: scalars, and containers that are `{}` or `[]`.
fn leaves_among(nodes: &[Node]) -> u32 {
    let is_leaf = |node: &&Node| {
        let container = matches!(node.kind, Kind::Object | Kind::Array);
        !container || node.value.end - node.value.start == 2
    };
    nodes.iter().filter(is_leaf).count() as u32
}
