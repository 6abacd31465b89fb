//! Diff: what one document has that another has not, leaf by leaf.
//!
//! Walks both in step along what their texts have in common, so that what is equal costs next to nothing.
//! Works on any two tapes of the same kind, documents as well as stream images.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::model::Model;
use crate::pairs::join;
use crate::pointer;
use crate::stretch::{Known, Stretch};
use crate::tape::{Kind, Span, View};
use crate::text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Added,
    Updated,
    Removed,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    part: Part,
    pointer: Span,
    /// Nodes on the old and the new tape; the one that does not apply is 0, the root.
    old: u32,
    new: u32,
}

/// Room for a diff, kept to be used again without allocating.
#[derive(Debug, Clone, Default)]
pub struct DiffBuffer {
    entries: Vec<Entry>,
    pointers: String,
    value_changed: bool,
    /// Nodes on the old tape of the arrays that were matched by id.
    matched_by_id: Vec<u32>,
    pointer: String,
    /// The same place in the old document, while inside elements that changed their position.
    old_pointer: Option<String>,
    stretch: Stretch,
}

/// The difference of two documents.
#[derive(Debug, Clone)]
pub struct Diff<'a> {
    pub(crate) old: View<'a>,
    pub(crate) new: View<'a>,
    found: Cow<'a, DiffBuffer>,
}

/// Computes the difference that turns `old` into `new`.
///
/// Leaves are scalars, timestamped values and empty containers. `removed` names places in the old
/// document, `added` and `updated` places in the new one.
///
/// ```
/// use antumbra_shadow::{diff, Document, Model};
///
/// let old = Document::parse(r#"{"led":"off","fan":1}"#)?;
/// let new = Document::parse(r#"{"led":"on","door":{"open":true}}"#)?;
/// let diff = diff(old.view(), new.view(), &Model::default());
/// assert_eq!(
///     serde_json::to_string(&diff).unwrap(),
///     r#"{"added":{"/door/open":true},"updated":{"/led":{"old":"off","new":"on"}},"removed":{"/fan":1}}"#,
/// );
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
pub fn diff<'a>(old: View<'a>, new: View<'a>, model: &Model) -> Diff<'a> {
    let mut buffer = DiffBuffer::default();
    buffer.compute(old, new, model);
    Diff {
        old,
        new,
        found: Cow::Owned(buffer),
    }
}

impl DiffBuffer {
    /// As [`diff`](crate::diff()), without allocating once the buffer is warm.
    pub fn diff<'a>(&'a mut self, old: View<'a>, new: View<'a>, model: &Model) -> Diff<'a> {
        self.compute(old, new, model);
        Diff {
            old,
            new,
            found: Cow::Borrowed(self),
        }
    }

    fn compute(&mut self, old: View<'_>, new: View<'_>, model: &Model) {
        self.entries.clear();
        self.pointers.clear();
        self.pointer.clear();
        self.matched_by_id.clear();
        self.value_changed = false;
        self.stretch = Stretch::of(old, new);
        if !self.stretch.is_whole() {
            self.members(old, new, model);
        }
    }

    /// As far as the names on both sides are the same the members are twins; the rest is put in pairs.
    fn members(&mut self, old: View<'_>, new: View<'_>, model: &Model) {
        let (mut olds, mut news) = (old.children(), new.children());
        while let (Some(old), Some(new)) = (olds.peek(), news.peek()) {
            let known = self.stretch.members(old, new);
            if known != Known::Same {
                if old.raw_key_bytes() != new.raw_key_bytes() {
                    break;
                }
                if known == Known::Different || !unchanged(old, new) {
                    let place = self.enter_key(new.raw_key());
                    self.changed(old, new, model);
                    self.leave(place);
                }
            }
            olds.step_over(old);
            news.step_over(new);
        }
        if olds.peek().is_none() && news.peek().is_none() {
            return;
        }
        join(olds, news, |old, new| {
            let same = matches!((old, new), (Some(old), Some(new)) if unchanged(old, new));
            if let Some(either) = new.or(old).filter(|_| !same) {
                let place = self.enter_key(either.raw_key());
                self.pair(old, new, model);
                self.leave(place);
            }
            true
        });
    }

    fn pair(&mut self, old: Option<View<'_>>, new: Option<View<'_>>, model: &Model) {
        match (old, new) {
            (Some(old), Some(new)) if unchanged(old, new) => {}
            (Some(old), Some(new)) => self.changed(old, new, model),
            (Some(old), None) => self.whole(old, Part::Removed, model),
            (None, Some(new)) => self.whole(new, Part::Added, model),
            (None, None) => {}
        }
    }

    /// Two values of which the texts differ.
    fn changed(&mut self, old: View<'_>, new: View<'_>, model: &Model) {
        let timestamped = match (model.time(old), model.time(new)) {
            (Some(_), Some(_)) => true,
            (None, None) if old.kind() == new.kind() && old.is_container() => {
                if new.is_empty_container() {
                    false
                } else if old.kind() == Kind::Object {
                    return self.members(old, new, model);
                } else {
                    return self.elements(old, new, model);
                }
            }
            _ => false,
        };
        let only_time = timestamped && model.same_but_time(old, new);
        // What differs in more than its time is not the same; the rest may only be written otherwise.
        if timestamped == only_time && old.same(new) {
            return;
        }
        self.value_changed |= !only_time;
        self.push(Part::Updated, old.index(), new.index());
    }

    /// Everything below a value that came or went.
    fn whole(&mut self, view: View<'_>, part: Part, model: &Model) {
        self.value_changed = true;
        if !view.is_container() || view.is_empty_container() || model.time(view).is_some() {
            let at = view.index();
            return match part {
                Part::Removed => self.push(part, at, 0),
                _ => self.push(part, 0, at),
            };
        }
        for (index, child) in view.children().enumerate() {
            let place = if view.kind() == Kind::Object {
                self.enter_key(child.raw_key())
            } else {
                self.enter_index(index, index)
            };
            self.whole(child, part, model);
            self.leave(place);
        }
    }

    fn elements(&mut self, old: View<'_>, new: View<'_>, model: &Model) {
        if let (Some(old_ids), Some(new_ids)) = (model.ids(old), model.ids(new))
            && let Some(kept) = kept_in_order(&old_ids, &new_ids)
        {
            self.matched_by_id.push(old.index());
            return self.elements_by_id(old, new, &kept, model);
        }
        let (mut olds, mut news) = (old.children(), new.children());
        for index in 0.. {
            let (old, new) = (olds.next(), news.next());
            if old.is_none() && new.is_none() {
                return;
            }
            let place = self.enter_index(index, index);
            self.pair(old, new, model);
            self.leave(place);
        }
    }

    /// `kept[new index]` is the old index; the new elements stand behind the kept ones.
    fn elements_by_id(&mut self, old: View<'_>, new: View<'_>, kept: &[usize], model: &Model) {
        let mut news = new.children();
        let mut next_kept = 0;
        for (old_index, element) in old.children().enumerate() {
            let place = if kept.get(next_kept) == Some(&old_index) {
                let place = self.enter_index(old_index, next_kept);
                next_kept += 1;
                self.pair(Some(element), news.next(), model);
                place
            } else {
                let place = self.enter_index(old_index, old_index);
                self.whole(element, Part::Removed, model);
                place
            };
            self.leave(place);
        }
        for (position, element) in news.enumerate() {
            let place = self.enter_index(next_kept + position, next_kept + position);
            self.whole(element, Part::Added, model);
            self.leave(place);
        }
    }

    fn push(&mut self, part: Part, old: u32, new: u32) {
        let start = self.pointers.len();
        match (&self.old_pointer, part) {
            (Some(old_pointer), Part::Removed) => self.pointers.push_str(old_pointer),
            _ => self.pointers.push_str(&self.pointer),
        }
        self.entries.push(Entry {
            part,
            pointer: Span::new(start, self.pointers.len()),
            old,
            new,
        });
    }
}

/// Lengths of the pointers before a step down.
struct Place {
    pointer: usize,
    old_pointer: Option<usize>,
}

impl DiffBuffer {
    fn place(&self) -> Place {
        Place {
            pointer: self.pointer.len(),
            old_pointer: self.old_pointer.as_ref().map(String::len),
        }
    }

    fn enter_key(&mut self, raw_key: &str) -> Place {
        let place = self.place();
        let key = text::unescape(raw_key);
        pointer::push_key(&mut self.pointer, &key);
        if let Some(old_pointer) = &mut self.old_pointer {
            pointer::push_key(old_pointer, &key);
        }
        place
    }

    fn enter_index(&mut self, old: usize, new: usize) -> Place {
        let place = self.place();
        if old != new && self.old_pointer.is_none() {
            self.old_pointer = Some(self.pointer.clone());
        }
        pointer::push_index(&mut self.pointer, new);
        if let Some(old_pointer) = &mut self.old_pointer {
            pointer::push_index(old_pointer, old);
        }
        place
    }

    fn leave(&mut self, place: Place) {
        self.pointer.truncate(place.pointer);
        match (place.old_pointer, &mut self.old_pointer) {
            (Some(length), Some(old_pointer)) => old_pointer.truncate(length),
            (None, old_pointer) => *old_pointer = None,
            _ => {}
        }
    }
}

/// Returns `true` if the bytes are equal, which decides most pairs.
#[inline]
pub(crate) fn unchanged(old: View<'_>, new: View<'_>) -> bool {
    old.kind() == new.kind() && (old.kind() == Kind::Null || old.raw_bytes() == new.raw_bytes())
}

/// The old positions of the elements that stayed, if they kept their order and the new ones follow them.
fn kept_in_order(old_ids: &[(Kind, &str)], new_ids: &[(Kind, &str)]) -> Option<Vec<usize>> {
    let positions: HashMap<_, _> = old_ids.iter().copied().zip(0..).collect();
    let mut kept = Vec::with_capacity(old_ids.len());
    let mut came = false;
    for id in new_ids {
        match positions.get(id) {
            Some(&at) if !came && kept.last().is_none_or(|&last| last < at) => kept.push(at),
            Some(_) => return None,
            None => came = true,
        }
    }
    Some(kept)
}

impl<'a> Diff<'a> {
    /// Returns `true` if nothing changed.
    pub fn is_empty(&self) -> bool {
        self.found.entries.is_empty()
    }

    /// Returns `true` if anything besides timestamps changed.
    pub fn value_changed(&self) -> bool {
        self.found.value_changed
    }

    /// Added values, by their pointer in the new document.
    pub fn added(&self) -> impl Iterator<Item = (&str, View<'a>)> {
        self.part(Part::Added)
            .map(|(pointer, _, new)| (pointer, new))
    }

    /// Updated values, by their pointer in the new document: old, then new.
    pub fn updated(&self) -> impl Iterator<Item = (&str, View<'a>, View<'a>)> {
        self.part(Part::Updated)
    }

    /// Removed values, by their pointer in the old document.
    pub fn removed(&self) -> impl Iterator<Item = (&str, View<'a>)> {
        self.part(Part::Removed)
            .map(|(pointer, old, _)| (pointer, old))
    }

    fn part(&self, part: Part) -> impl Iterator<Item = (&str, View<'a>, View<'a>)> {
        self.found
            .entries
            .iter()
            .filter(move |entry| entry.part == part)
            .map(|entry| {
                (
                    entry.pointer.of(&self.found.pointers),
                    self.old.at(entry.old),
                    self.new.at(entry.new),
                )
            })
    }

    /// Returns `true` if the elements of this array of the old document were matched by id.
    pub(crate) fn is_matched_by_id(&self, old: View<'_>) -> bool {
        self.found.matched_by_id.contains(&old.index())
    }

    /// Appends the diff as JSON text.
    pub fn write_json(&self, out: &mut String) {
        for (part, name) in [
            (Part::Added, "{\"added\":{"),
            (Part::Updated, "},\"updated\":{"),
            (Part::Removed, "},\"removed\":{"),
        ] {
            out.push_str(name);
            for (position, (pointer, old, new)) in self.part(part).enumerate() {
                out.push_str(if position > 0 { ",\"" } else { "\"" });
                text::escape_into(out, pointer);
                out.push_str("\":");
                match part {
                    Part::Added => new.write_json(out),
                    Part::Removed => old.write_json(out),
                    Part::Updated => {
                        out.push_str("{\"old\":");
                        old.write_json(out);
                        out.push_str(",\"new\":");
                        new.write_json(out);
                        out.push('}');
                    }
                }
            }
        }
        out.push_str("}}");
    }
}

struct Members<'d, 'a>(&'d Diff<'a>, Part);

impl Serialize for Members<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Updated<'a> {
            old: View<'a>,
            new: View<'a>,
        }
        let mut map = serializer.serialize_map(None)?;
        for (pointer, old, new) in self.0.part(self.1) {
            match self.1 {
                Part::Added => map.serialize_entry(pointer, &new)?,
                Part::Updated => map.serialize_entry(pointer, &Updated { old, new })?,
                Part::Removed => map.serialize_entry(pointer, &old)?,
            }
        }
        map.end()
    }
}

impl Serialize for Diff<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("added", &Members(self, Part::Added))?;
        map.serialize_entry("updated", &Members(self, Part::Updated))?;
        map.serialize_entry("removed", &Members(self, Part::Removed))?;
        map.end()
    }
}
