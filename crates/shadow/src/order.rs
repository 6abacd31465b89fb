//! The order of plain values by the times of messages, while documents are merged.
//!
//! Every place has a newest time: of the leaves at and below it, and of removals at, above and below it. A message
//! that is older changes nothing there. What a message removes is noted with its time, so that an older one that
//! comes later does not bring it back.

use crate::model::Model;
use crate::tape::{Kind, View};
use crate::times::{LeafTimes, Reader, Removed, Times, leaves, microseconds, recorded};
use crate::timestamp::Timestamp;

/// Time of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageTime {
    pub(crate) time: Timestamp,
    /// A stored value of the same time stays.
    pub(crate) yields: bool,
}

/// Times of the stored and the merged document, at one place of the walk over both.
pub(crate) struct Order<'m> {
    model: &'m Model,
    /// Time of the message, if its values are ordered by it.
    at: Option<Timestamp>,
    /// Stored values of the same time stay.
    yields: bool,
    now: i64,
    /// Times of the stored leaves from here on.
    stored: Reader<'m>,
    /// Stored removals here and below.
    here: Option<&'m Removed>,
    /// Newest removal here and above.
    above: i64,
    path: Vec<&'m str>,
    /// Depth of arrays, whose elements have no times of their own.
    paused: u32,
    out: Times,
    pub(crate) changed: bool,
}

/// The place that a step down leads away from.
pub(crate) struct Place<'m> {
    here: Option<&'m Removed>,
    above: i64,
}

impl<'m> Order<'m> {
    pub(crate) fn new(
        times: &'m LeafTimes,
        at: Option<MessageTime>,
        now: Timestamp,
        model: &'m Model,
    ) -> Order<'m> {
        let (times, now) = (times.times(), microseconds(now));
        let mut out = Times::default();
        out.removed = times.recent_removals(now);
        Order {
            model,
            at: at.map(|at| at.time),
            yields: at.is_some_and(|at| at.yields),
            now,
            stored: times.reader(),
            here: Some(&times.removed),
            above: times.removed.time.unwrap_or(i64::MIN),
            path: Vec::new(),
            paused: 0,
            out,
            changed: false,
        }
    }

    pub(crate) fn finish(self) -> LeafTimes {
        self.out.settled(self.now)
    }

    pub(crate) fn at(&self) -> Option<Timestamp> {
        self.at.filter(|_| self.paused == 0)
    }

    pub(crate) fn enter(&mut self, key: &'m str) -> Place<'m> {
        let place = Place {
            here: self.here,
            above: self.above,
        };
        self.path.push(key);
        self.here = self.here.and_then(|here| here.child(key));
        let time = self.here.and_then(|here| here.time);
        self.above = self.above.max(time.unwrap_or(i64::MIN));
        place
    }

    pub(crate) fn leave(&mut self, place: Place<'m>) {
        self.path.pop();
        self.here = place.here;
        self.above = place.above;
    }

    pub(crate) fn pause(&mut self, pause: bool) {
        match pause {
            true => self.paused += 1,
            false => self.paused -= 1,
        }
    }

    /// Newest time of a stored value that comes next; that of a timestamped value is its own.
    pub(crate) fn newest_of(&self, old: View<'m>) -> i64 {
        self.newest(old, &mut self.stored.clone())
    }

    fn newest(&self, old: View<'m>, stored: &mut Reader<'m>) -> i64 {
        if let Some(time) = self.model.time(old) {
            stored.newest(leaves(old));
            return microseconds(time);
        }
        match old.kind() {
            Kind::Object if !old.is_empty_container() => {
                let members = old.children().map(|member| self.newest(member, stored));
                members.fold(i64::MIN, i64::max)
            }
            _ => stored.newest(leaves(old)),
        }
    }

    /// Returns `true` if a stored value that comes next is newer than the message.
    pub(crate) fn is_newer(&self, old: View<'m>) -> bool {
        self.at
            .is_some_and(|at| self.newest_of(old) > self.replaceable(at))
    }

    /// Returns `true` if there is something newer here, above or below.
    pub(crate) fn is_stale(&self, time: Timestamp, old: Option<View<'m>>) -> bool {
        let stored = old.map_or(i64::MIN, |old| self.newest_of(old));
        let removed = self.here.map_or(i64::MIN, Removed::newest);
        self.replaceable(time) < stored.max(removed).max(self.above)
    }

    /// Takes over the times of a stored value.
    pub(crate) fn keep(&mut self, old: View<'m>) {
        if self.paused == 0 {
            let out = &mut self.out;
            let push = |time, count| out.push(time, count);
            self.stored.take(leaves(old), push);
        }
    }

    /// Takes over a stored value that was sent again: as new as the message.
    pub(crate) fn confirm(&mut self, old: View<'m>) {
        let newest = self.newest_of(old);
        match self.at().map(microseconds).filter(|at| *at > newest) {
            Some(at) => {
                self.skip(old);
                self.out.push(at, leaves(old));
                self.changed = true;
            }
            None => self.keep(old),
        }
    }

    /// Takes over a stored value without arrays, all of whose leaves were sent again.
    pub(crate) fn confirm_leaves(&mut self, old: View<'m>) {
        if self.model.is_timestamped(old) {
            self.keep(old);
        } else if old.kind() == Kind::Object && !old.is_empty_container() {
            old.children().for_each(|child| self.confirm_leaves(child));
        } else {
            self.confirm(old);
        }
    }

    /// Passes over the times of a stored value.
    pub(crate) fn skip(&mut self, old: View<'m>) {
        if self.paused == 0 {
            self.stored.newest(leaves(old));
        }
    }

    /// Notes the time of new leaves that take the place of a stored value.
    pub(crate) fn stamp(&mut self, leaves: u32, old: Option<View<'m>>) {
        if self.paused > 0 {
            return;
        }
        let mut time = self.time().max(self.above);
        if let Some(old) = old {
            time = time.max(self.newest_of(old));
            self.skip(old);
        }
        self.out.push(time, leaves);
        self.changed = true;
    }

    /// Time of the message, or now.
    fn time(&self) -> i64 {
        self.at.map_or(self.now, microseconds)
    }

    /// Latest time of stored values that a value of this time replaces.
    fn replaceable(&self, time: Timestamp) -> i64 {
        let time = microseconds(time);
        match self.yields {
            true => recorded(time, self.now).saturating_sub(1),
            false => time,
        }
    }

    /// Notes that what is here, and not newer, was removed by the message.
    pub(crate) fn record_removal(&mut self) {
        self.record(self.time());
    }

    pub(crate) fn record(&mut self, time: i64) {
        if self.paused == 0 && time > i64::MIN {
            self.changed |= self.out.removed.record(&self.path, time);
        }
    }
}
