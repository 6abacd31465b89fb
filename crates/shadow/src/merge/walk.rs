//! Steps from value to value, and reports the verdict on each leaf.

use super::Merging;
use crate::changes::{Change, Note, Verdict};
use crate::pointer;
use crate::tape::{Kind, View};
use crate::text;

impl<'m> Merging<'m> {
    pub(super) fn at_key(&mut self, key: &'m str, visit: impl FnOnce(&mut Self)) {
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

    pub(super) fn at_index(&mut self, index: usize, visit: impl FnOnce(&mut Self)) {
        let parent = self.pointer.len();
        if self.report.is_some() {
            pointer::push_index(&mut self.pointer, index);
        }
        self.depth += 1;
        visit(self);
        self.depth -= 1;
        self.pointer.truncate(parent);
    }

    pub(super) fn leaves(&mut self, view: View<'m>, visit: &mut dyn FnMut(&mut Self, View<'m>)) {
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

    pub(super) fn copy_without_nulls(&mut self, key: Option<&str>, view: View<'m>) {
        if self.is_leaf(view) {
            return self.out.copy(view);
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

    pub(super) fn push(
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
}
