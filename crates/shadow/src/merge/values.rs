//! Tests of single values: leaf, without content, too old, too far in the future.

use super::{Merging, Mode};
use crate::changes::{Note, Verdict};
use crate::model::Arrays;
use crate::order::Order;
use crate::tape::{Kind, View};
use crate::timestamp::Timestamp;

impl<'m> Merging<'m> {
    pub(super) fn is_leaf(&self, view: View<'_>) -> bool {
        !view.is_container()
            || view.is_empty_container()
            || (view.kind() == Kind::Array && self.model.arrays == Arrays::Whole)
            || self.model.is_timestamped(view)
    }

    /// Returns `true` if nulls would delete members of the value rather than the value itself.
    pub(super) fn has_members(&self, view: View<'_>) -> bool {
        view.kind() == Kind::Object && !self.is_leaf(view)
    }

    /// Returns `true` for members without content: `null`, or a plain object that contains only such members.
    pub(super) fn is_nothing(&self, view: View<'_>) -> bool {
        match view.kind() {
            Kind::Null => true,
            Kind::Object => {
                !view.is_empty_container()
                    && view.children().all(|member| self.is_nothing(member))
                    && !self.model.is_timestamped(view)
            }
            _ => false,
        }
    }

    /// Returns `true` if every stored value that is sent again is copied as a whole.
    pub(super) fn copies_what_is_equal(&self) -> bool {
        self.report.is_none() && self.order.is_none() && self.mode == Mode::ServerIsMaster
    }

    /// Returns `true` if a stored value that is sent again is copied as a whole: nobody asks for verdicts, nothing in
    /// it removes anything, and its leaves have times of their own.
    pub(super) fn is_copied(&self, old: View<'_>) -> bool {
        let has = |kinds: &[Kind]| old.subtree().iter().any(|node| kinds.contains(&node.kind));
        match (&self.order, self.mode) {
            _ if self.report.is_some() => false,
            _ if self.copies_what_is_equal() => true,
            (None, _) => !has(&[Kind::Null]),
            (Some(_), Mode::ClientIsMaster) => false,
            (Some(_), _) => !has(&[Kind::Null, Kind::Array]),
        }
    }

    /// Returns `true` for timestamped values too far in the future, and for containers of which nothing else would be
    /// taken.
    pub(super) fn is_future(&self, view: View<'_>) -> bool {
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
    pub(super) fn is_late(
        &self,
        own_time: Option<Timestamp>,
        old: Option<View<'m>>,
    ) -> Option<Verdict> {
        let at = self.order.as_ref().and_then(Order::at);
        let time = own_time.or(at)?;
        if self.latest.is_some_and(|latest| time > latest) {
            return Some(Verdict::Future);
        }
        // Without a time of the message, plain values win and take every other.
        let order = self.order.as_ref().filter(|_| at.is_some())?;
        order.is_stale(time, old).then_some(Verdict::Stale)
    }

    /// Returns `true` if a plain object in the value has a timestamp member that is not a time.
    pub(super) fn misses_a_time(&self, view: View<'_>) -> bool {
        if self.report.is_none() || self.is_leaf(view) {
            return false;
        }
        let fields = self.model.timestamp_fields.iter();
        let mut members = fields.filter_map(|field| view.get(field));
        members.any(|member| !member.is_container() && member.kind() != Kind::Null)
            || view.children().any(|child| self.misses_a_time(child))
    }

    pub(super) fn note_on(&self, new: View<'_>) -> Option<Note> {
        // The object that holds this member would have been taken whole, had the member been a time.
        let below_root = self.report.is_some() && self.depth > 1;
        let misses = below_root && !new.is_container() && self.model.is_timestamp_field(&new.key());
        misses.then_some(Note::NotATimestamp)
    }
}
