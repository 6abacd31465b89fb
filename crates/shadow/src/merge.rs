//! Merges the stored and the sent document into one, value by value.
//!
//! Pure and total: every pair of documents merges. Paths are walked in document order and the result is written as
//! it goes. The same walk, run again, reports the verdict on each leaf. This file decides about values and objects;
//! [`arrays`] about elements, [`values`] which values count as what, [`times`] records the times of messages, and
//! [`walk`] goes through the documents.

mod arrays;
#[cfg(test)]
mod tests;
mod times;
mod values;
mod walk;

use std::cmp::Ordering;

use crate::build::Builder;
use crate::changes::{Change, Changes, Note, Verdict};
use crate::diff::unchanged;
use crate::document::Document;
use crate::model::Model;
use crate::order::{MessageTime, Order};
use crate::pairs::join;
use crate::stretch::{Known, Stretch};
use crate::tape::{Kind, View};
use crate::times::LeafTimes;
use crate::timestamp::Timestamp;
use crate::word_enum;

word_enum! {
    /// Rule for values that only one side has.
    #[derive(Default)]
    pub enum Mode as "merge mode" {
        /// The sender adds and updates, and cannot delete.
        #[default]
        ServerIsMaster = "ServerIsMaster",
        /// Values that the sender leaves out are removed.
        ClientIsMaster = "ClientIsMaster",
        /// Values that the sender leaves out are kept; `null` deletes.
        Patch = "Patch",
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

    /// Returns `true` if the sent values are newer than the recorded times, even if they are equal.
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
    Input::new(stored, sent, mode, model, now, None).merge()
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
    let at = at.map(|time| MessageTime {
        time,
        yields: false,
    });
    let order = Some((times.clone(), at));
    Input::new(stored, sent, mode, model, now, order).merge()
}

/// Merges values that another system has held since `at` into the stored document: those that are newer than the
/// stored ones. Nothing is removed.
///
/// As [`merge_in_order`] by that time, but a stored value of the same time stays. Times of long ago are kept in whole
/// seconds, so that there the same time is the same second.
///
/// ```
/// use antumbra_shadow::{merge_older, Document, LeafTimes, Model, Timestamp};
///
/// let at = |seconds: i128| Timestamp::from_nanoseconds(seconds * 1_000_000_000);
/// let stored = Document::parse(r#"{"led":"on"}"#)?;
/// let held = Document::parse(r#"{"led":"off","fan":1}"#)?;
/// let times = LeafTimes::all(&stored, at(60));
/// let merged = merge_older(&stored, &times, &held, at(60), &Model::default(), at(1000));
/// assert_eq!(merged.document.as_str(), r#"{"fan":1,"led":"on"}"#);
/// let merged = merge_older(&stored, &times, &held, at(61), &Model::default(), at(1000));
/// assert_eq!(merged.document.as_str(), r#"{"fan":1,"led":"off"}"#);
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
pub fn merge_older(
    stored: &Document,
    times: &LeafTimes,
    held: &Document,
    at: Timestamp,
    model: &Model,
    now: Timestamp,
) -> Merged {
    let at = MessageTime {
        time: at,
        yields: true,
    };
    let order = Some((times.clone(), Some(at)));
    Input::new(stored, held, Mode::ServerIsMaster, model, now, order).merge()
}

/// Arguments of a merge, kept to run it again for the verdicts.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    stored: Document,
    sent: Document,
    mode: Mode,
    model: Model,
    now: Timestamp,
    order: Option<(LeafTimes, Option<MessageTime>)>,
}

/// Receives the verdicts.
pub(crate) type Report<'r> = &'r mut dyn FnMut(Change<'_>);

impl Input {
    fn new(
        stored: &Document,
        sent: &Document,
        mode: Mode,
        model: &Model,
        now: Timestamp,
        order: Option<(LeafTimes, Option<MessageTime>)>,
    ) -> Input {
        Input {
            stored: stored.clone(),
            sent: sent.clone(),
            mode,
            model: model.clone(),
            now,
            order,
        }
    }

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
            stretch: Stretch::of(stored, sent),
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
    stretch: Stretch,
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
        let (mut olds, mut news) = (stored.children(), sent.children());
        // The first and the last of the members that are the same on both sides and not copied yet.
        let mut same: Option<(View<'m>, View<'m>)> = None;
        while let (Some(old), Some(new)) = (olds.peek(), news.peek()) {
            let known = self.stretch.members(old, new);
            if known == Known::Same && self.is_copied(old) {
                if let Some(order) = &mut self.order {
                    order.confirm_leaves(old);
                }
                same = Some((same.map_or(old, |(first, _)| first), old));
            } else if old.raw_key_bytes() != new.raw_key_bytes() {
                break;
            } else {
                self.copy_all(same.take());
                self.member(Some(old), Some(new));
            }
            olds.step_over(old);
            news.step_over(new);
            if let Some((_, last)) = &mut same
                && self.copies_what_is_equal()
            {
                let further = self.stretch.step_over_same(&mut olds, &mut news);
                *last = further.unwrap_or(*last);
            }
        }
        self.copy_all(same);
        if olds.peek().is_some() || news.peek().is_some() {
            join(olds, news, |old, new| {
                self.member(old, new);
                true
            });
        }
    }

    fn copy_all(&mut self, same: Option<(View<'m>, View<'m>)>) {
        if let Some((first, last)) = same {
            self.out.copy_all(first, last);
        }
    }

    fn member(&mut self, old: Option<View<'m>>, new: Option<View<'m>>) {
        let Some(key) = new.or(old).map(View::raw_key) else {
            return;
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
    }

    /// Handles a value that is only stored, or sent without content: the mode decides whether it stays.
    fn unsent(&mut self, key: Option<&str>, old: View<'m>, nothing: Option<View<'m>>) {
        let kept = match self.mode {
            Mode::ServerIsMaster => true,
            Mode::ClientIsMaster => false,
            Mode::Patch => nothing.is_none(),
        };
        if kept {
            return self.keep(old, Verdict::Unsent, nothing.map(|_| Note::NullKept));
        }
        match self.is_late(None, Some(old)) {
            Some(Verdict::Future) => return self.keep(old, Verdict::Future, None),
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
                return self.keep(old, Verdict::Stale, None);
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

    fn keep(&mut self, old: View<'m>, verdict: Verdict, note: Option<Note>) {
        self.out.copy(old);
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
    fn keep_against(&mut self, old: View<'m>, new: View<'m>, verdict: Verdict) {
        self.out.copy(old);
        if let Some(order) = &mut self.order {
            order.keep(old);
        }
        self.push(verdict, None, Some(old), Some(new));
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
            self.out.copy(new);
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
                    return self.keep_against(old, new, verdict);
                }
                self.out.copy(new);
                self.stamp(new.subtree(), Some(old));
                self.push(verdict, None, Some(old), Some(new));
            }
            (None, None) => match (old.kind(), new.kind()) {
                (Kind::Object, Kind::Object) => self.objects(key, old, new),
                (Kind::Array, Kind::Array) if !self.is_leaf(old) || !self.is_leaf(new) => {
                    self.arrays(key, old, new);
                }
                _ if self.is_leaf(old) && old.same(new) => {
                    self.out.copy(old);
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
            return self.keep_against(old, new, Verdict::Future);
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
                return self.keep_against(old, new, verdict);
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
}
