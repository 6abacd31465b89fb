//! The walk through two documents that finds the leaves in which they differ.

use std::collections::HashMap;

use super::{DiffBuffer, Entry, NAMED, Parent, Part};
use crate::model::Model;
use crate::pairs::join;
use crate::stretch::{Known, Stretch};
use crate::tape::{Kind, View};

/// Place of a value in its parent, in the old and in the new document.
#[derive(Clone, Copy)]
struct Place {
    parent: u32,
    old_index: u32,
    new_index: u32,
}

impl Place {
    fn named(parent: u32) -> Place {
        Place::moved(parent, NAMED, NAMED)
    }

    fn at(parent: u32, index: usize) -> Place {
        Place::moved(parent, index as u32, index as u32)
    }

    fn moved(parent: u32, old_index: u32, new_index: u32) -> Place {
        Place {
            parent,
            old_index,
            new_index,
        }
    }
}

impl DiffBuffer {
    pub(super) fn compute(&mut self, old: View<'_>, new: View<'_>, model: &Model) {
        self.entries.clear();
        self.parents.clear();
        self.matched_by_id.clear();
        self.value_changed = false;
        self.stretch = Stretch::of(old, new);
        if !self.stretch.is_whole() {
            let root = self.enter(Place::named(0), old.index(), new.index());
            self.members(root, old, new, model);
        }
    }

    /// Members are compared in order as long as both sides have the same names; the rest is put in pairs.
    fn members(&mut self, parent: u32, old: View<'_>, new: View<'_>, model: &Model) {
        let place = Place::named(parent);
        let (mut olds, mut news) = (old.children(), new.children());
        while let (Some(old), Some(new)) = (olds.peek(), news.peek()) {
            let known = self.stretch.members(old, new);
            if known != Known::Same {
                if old.raw_key_bytes() != new.raw_key_bytes() {
                    break;
                }
                if known == Known::Different || !unchanged(old, new) {
                    self.changed(place, old, new, model);
                }
            }
            olds.step_over(old);
            news.step_over(new);
            if known == Known::Same {
                self.stretch.step_over_same(&mut olds, &mut news);
            }
        }
        if olds.peek().is_none() && news.peek().is_none() {
            return;
        }
        join(olds, news, |old, new| {
            self.pair(place, old, new, model);
            true
        });
    }

    fn pair(&mut self, place: Place, old: Option<View<'_>>, new: Option<View<'_>>, model: &Model) {
        match (old, new) {
            (Some(old), Some(new)) if unchanged(old, new) => {}
            (Some(old), Some(new)) => self.changed(place, old, new, model),
            (Some(old), None) => self.whole(place, old, Part::Removed, model),
            (None, Some(new)) => self.whole(place, new, Part::Added, model),
            (None, None) => {}
        }
    }

    /// Two values of which the texts differ.
    fn changed(&mut self, place: Place, old: View<'_>, new: View<'_>, model: &Model) {
        let timestamped = match (model.is_timestamped(old), model.is_timestamped(new)) {
            (true, true) => true,
            (false, false) if old.kind() == new.kind() && old.is_container() => {
                if new.is_empty_container() {
                    false
                } else {
                    let inside = self.enter(place, old.index(), new.index());
                    return match old.kind() {
                        Kind::Object => self.members(inside, old, new, model),
                        _ => self.elements(inside, old, new, model),
                    };
                }
            }
            _ => false,
        };
        let only_time = timestamped && model.same_but_time(old, new);
        // Values that differ in more than their time are not the same; others may only be written differently.
        if timestamped == only_time && old.same(new) {
            return;
        }
        self.value_changed |= !only_time;
        self.push(Part::Updated, place, old.index(), new.index(), only_time);
    }

    /// Everything below a value that was added or removed.
    fn whole(&mut self, place: Place, view: View<'_>, part: Part, model: &Model) {
        self.value_changed = true;
        let (old, new) = match part {
            Part::Removed => (view.index(), 0),
            _ => (0, view.index()),
        };
        if !view.is_container() || view.is_empty_container() || model.is_timestamped(view) {
            return self.push(part, place, old, new, false);
        }
        let inside = self.enter(place, old, new);
        for (index, child) in view.children().enumerate() {
            let place = match view.kind() {
                Kind::Object => Place::named(inside),
                _ => Place::at(inside, index),
            };
            self.whole(place, child, part, model);
        }
    }

    fn elements(&mut self, parent: u32, old: View<'_>, new: View<'_>, model: &Model) {
        if let Some(kept) = kept_in_order(old, new, model) {
            self.matched_by_id.push(old.index());
            return self.elements_by_id(parent, old, new, &kept, model);
        }
        let (mut olds, mut news) = (old.children(), new.children());
        for index in 0.. {
            let (old, new) = (olds.next(), news.next());
            if old.is_none() && new.is_none() {
                return;
            }
            self.pair(Place::at(parent, index), old, new, model);
        }
    }

    /// `kept[new index]` is the old index; the new elements stand behind the kept ones.
    fn elements_by_id(
        &mut self,
        parent: u32,
        old: View<'_>,
        new: View<'_>,
        kept: &[u32],
        model: &Model,
    ) {
        let mut news = new.children();
        let mut next_kept = 0;
        for (old_index, element) in old.children().enumerate() {
            if kept.get(next_kept) == Some(&(old_index as u32)) {
                let place = Place::moved(parent, old_index as u32, next_kept as u32);
                next_kept += 1;
                self.pair(place, Some(element), news.next(), model);
            } else {
                self.whole(Place::at(parent, old_index), element, Part::Removed, model);
            }
        }
        for (position, element) in news.enumerate() {
            let place = Place::at(parent, next_kept + position);
            self.whole(place, element, Part::Added, model);
        }
    }

    /// Goes into a container; returns its position in the list of parents.
    fn enter(&mut self, place: Place, old: u32, new: u32) -> u32 {
        let parent = Parent {
            parent: place.parent,
            old_index: place.old_index,
            new_index: place.new_index,
            old,
            new,
        };
        self.parents.push(parent);
        self.parents.len as u32 - 1
    }

    fn push(&mut self, part: Part, place: Place, old: u32, new: u32, only_time: bool) {
        let entry = Entry {
            part,
            only_time,
            parent: place.parent,
            index: match part {
                Part::Removed => place.old_index,
                _ => place.new_index,
            },
            old,
            new,
        };
        self.entries.push(entry);
    }
}

/// Returns `true` if the bytes are equal, which decides most pairs.
#[inline]
pub(crate) fn unchanged(old: View<'_>, new: View<'_>) -> bool {
    old.kind() == new.kind() && (old.kind() == Kind::Null || old.raw_bytes() == new.raw_bytes())
}

/// The old positions of the elements that stayed, if all elements have ids, those that stayed kept their order, and
/// the new ones follow them.
fn kept_in_order(old: View<'_>, new: View<'_>, model: &Model) -> Option<Vec<u32>> {
    let (old_ids, new_ids) = (model.ids(old)?, model.ids(new)?);
    let positions: HashMap<_, u32> = old_ids.into_iter().zip(0..).collect();
    let mut kept = Vec::new();
    let mut came = false;
    for id in &new_ids {
        match positions.get(id) {
            Some(&at) if !came && kept.last().is_none_or(|&last| last < at) => kept.push(at),
            Some(_) => return None,
            None => came = true,
        }
    }
    Some(kept)
}
