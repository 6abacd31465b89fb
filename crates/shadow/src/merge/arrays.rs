//! Merges two arrays, by the ids of their elements or else by position.

use std::collections::HashMap;

use super::{Merging, Mode};
use crate::changes::{Note, Verdict};
use crate::tape::{Kind, View};

impl<'m> Merging<'m> {
    pub(super) fn arrays(&mut self, key: Option<&str>, old: View<'m>, new: View<'m>) {
        if let Some(verdict) = self.is_late(None, Some(old)) {
            return self.keep_against(old, new, verdict);
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

    pub(super) fn elements_by_id(
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
    pub(super) fn elements_by_position(&mut self, old: View<'m>, new: View<'m>, named: bool) {
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
    pub(super) fn elements(&mut self, old: View<'m>, new: View<'m>, named: bool) {
        let null = new.kind() == Kind::Null && old.kind() != Kind::Null;
        if null && self.mode == Mode::ServerIsMaster {
            self.keep(old, Verdict::Unsent, Some(Note::NullKept));
        } else if named && self.is_another(old, new) {
            self.replaced(None, old, new);
        } else {
            self.both(None, old, new);
        }
    }

    /// Returns `true` if two timestamped elements have different ids. Their times cannot be compared, and
    /// keeping the later one would add the other behind it as soon as the array is matched by id.
    pub(super) fn is_another(&self, old: View<'m>, new: View<'m>) -> bool {
        let timed = |view| self.model.time(view).is_some();
        let ids = (old.get(&self.model.id_field), new.get(&self.model.id_field));
        timed(old) && timed(new) && matches!(ids, (Some(old), Some(new)) if !old.same(new))
    }

    /// An element behind one that was refused is refused with it, unless elements have ids: it would take its position.
    pub(super) fn added_element(&mut self, element: View<'m>, refused: bool) {
        match refused {
            true => self.push(Verdict::Future, None, None, Some(element)),
            false => self.added(None, element),
        }
    }
}
