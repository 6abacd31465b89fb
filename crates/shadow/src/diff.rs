//! Diff: the leaves in which two documents differ.
//!
//! Walks both in step along the text they have in common, so that equal values cost next to nothing.
//! Works on any two tapes of the same kind, documents as well as stream images.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::model::Model;
use crate::pairs::join;
use crate::pointer;
use crate::stretch::{Known, Stretch};
use crate::tape::{Kind, View};
use crate::text;

/// The part of a diff that a leaf is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Part {
    Added,
    Updated,
    Removed,
}

/// A leaf that differs. With its parent and its index or name it has its pointer, which is written only on demand:
/// a pointer can be longer than the document's other bytes, and every leaf has one.
#[derive(Debug, Clone, Copy)]
struct Entry {
    part: Part,
    /// Nothing but the time of a timestamped value changed.
    only_time: bool,
    /// Position in [`DiffBuffer::parents`].
    parent: u32,
    /// Position in the array; [`NAMED`] for members.
    index: u32,
    /// Nodes on the old and the new tape; the one that does not apply is 0, the root.
    old: u32,
    new: u32,
}

/// A container on the way to a leaf. The first one is the root.
#[derive(Debug, Clone, Copy)]
struct Parent {
    parent: u32,
    /// Positions in the array, which differ where elements before it were removed; [`NAMED`] for members.
    old_index: u32,
    new_index: u32,
    old: u32,
    new: u32,
}

/// Index of a member, which has a name instead.
const NAMED: u32 = u32::MAX;

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

/// Room for a diff, kept to be used again without allocating.
#[derive(Debug, Clone, Default)]
pub struct DiffBuffer {
    entries: Chunks<Entry>,
    parents: Chunks<Parent>,
    value_changed: bool,
    /// Nodes on the old tape of the arrays that were matched by id.
    matched_by_id: Vec<u32>,
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

    /// Gives back the memory of a large diff.
    pub fn shrink(&mut self) {
        self.entries.clear();
        self.parents.clear();
        self.matched_by_id = Vec::new();
    }

    fn compute(&mut self, old: View<'_>, new: View<'_>, model: &Model) {
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
        let timestamped = match (model.time(old), model.time(new)) {
            (Some(_), Some(_)) => true,
            (None, None) if old.kind() == new.kind() && old.is_container() => {
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
        if !view.is_container() || view.is_empty_container() || model.time(view).is_some() {
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

/// A list that grows without copying: while a vector grows, it takes three times the memory of its items.
#[derive(Debug, Clone)]
struct Chunks<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Chunks<T> {
    const ITEMS: usize = 256;
    /// Chunks that are kept for the next diff.
    const KEPT: usize = 16;

    fn clear(&mut self) {
        self.chunks.truncate(Self::KEPT);
        self.chunks.iter_mut().for_each(Vec::clear);
        self.len = 0;
    }

    fn push(&mut self, item: T) {
        let chunk = self.len / Self::ITEMS;
        if chunk == self.chunks.len() {
            self.chunks.push(Vec::with_capacity(Self::ITEMS));
        }
        self.chunks[chunk].push(item);
        self.len += 1;
    }

    fn get(&self, at: u32) -> &T {
        &self.chunks[at as usize / Self::ITEMS][at as usize % Self::ITEMS]
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

impl<T> Default for Chunks<T> {
    fn default() -> Chunks<T> {
        Chunks {
            chunks: Vec::new(),
            len: 0,
        }
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

impl<'a> Diff<'a> {
    /// Returns `true` if nothing changed.
    pub fn is_empty(&self) -> bool {
        self.found.entries.len == 0
    }

    /// Returns `true` if anything besides timestamps changed.
    pub fn value_changed(&self) -> bool {
        self.found.value_changed
    }

    /// Added values, by their pointer in the new document.
    pub fn added(&self) -> impl Iterator<Item = (Pointer<'_, 'a>, View<'a>)> {
        self.part(Part::Added)
            .map(|(pointer, _, new)| (pointer, new))
    }

    /// Updated values, by their pointer in the new document: old, then new.
    pub fn updated(&self) -> impl Iterator<Item = (Pointer<'_, 'a>, View<'a>, View<'a>)> {
        self.part(Part::Updated)
    }

    /// Removed values, by their pointer in the old document.
    pub fn removed(&self) -> impl Iterator<Item = (Pointer<'_, 'a>, View<'a>)> {
        self.part(Part::Removed)
            .map(|(pointer, old, _)| (pointer, old))
    }

    /// All leaves, in the order of the documents.
    pub fn leaves(&self) -> impl Iterator<Item = Leaf<'_, 'a>> {
        self.found.entries.iter().map(|entry| Leaf {
            part: entry.part,
            old: (entry.part != Part::Added).then(|| self.old.at(entry.old)),
            new: (entry.part != Part::Removed).then(|| self.new.at(entry.new)),
            only_time: entry.only_time,
            pointer: Pointer { diff: self, entry },
        })
    }

    /// The containers on the way to the leaves, each after the one that holds it. The first is the root, with an
    /// empty name.
    pub fn containers(&self) -> impl Iterator<Item = Container<'_>> {
        let parents = self.found.parents.iter().enumerate();
        parents.map(|(at, step)| Container {
            parent: step.parent as usize,
            old: match at {
                0 => Token::Name(""),
                _ => self.token(step.old_index, step.old, step.new),
            },
            new: match at {
                0 => Token::Name(""),
                _ => self.token(step.new_index, step.old, step.new),
            },
        })
    }

    fn token(&self, index: u32, old: u32, new: u32) -> Token<'_> {
        match (index, new) {
            (NAMED, 0) => Token::Name(self.old.at(old).raw_key()),
            (NAMED, new) => Token::Name(self.new.at(new).raw_key()),
            (index, _) => Token::Index(index),
        }
    }

    fn part(&self, part: Part) -> impl Iterator<Item = (Pointer<'_, 'a>, View<'a>, View<'a>)> {
        let entries = self.found.entries.iter();
        let entries = entries.filter(move |entry| entry.part == part);
        entries.map(|entry| {
            let (old, new) = (self.old.at(entry.old), self.new.at(entry.new));
            (Pointer { diff: self, entry }, old, new)
        })
    }

    /// Returns `true` if the elements of this array of the old document were matched by id.
    pub(crate) fn is_matched_by_id(&self, old: View<'_>) -> bool {
        self.found.matched_by_id.contains(&old.index())
    }

    /// Appends the diff as JSON text, if it has at most `limit` bytes; otherwise appends nothing and returns `false`.
    pub fn write_json(&self, out: &mut String, limit: usize) -> bool {
        let start = out.len();
        for (part, name) in [
            (Part::Added, "{\"added\":{"),
            (Part::Updated, "},\"updated\":{"),
            (Part::Removed, "},\"removed\":{"),
        ] {
            out.push_str(name);
            for (position, (pointer, old, new)) in self.part(part).enumerate() {
                out.push_str(if position > 0 { ",\"" } else { "\"" });
                pointer.write_escaped(out);
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
                if out.len() - start > limit {
                    out.truncate(start);
                    return false;
                }
            }
        }
        out.push_str("}}");
        let fits = out.len() - start <= limit;
        if !fits {
            out.truncate(start);
        }
        fits
    }
}

/// One leaf of a diff.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Leaf<'d, 'a> {
    pub part: Part,
    /// The value before; `None` for an added leaf.
    pub old: Option<View<'a>>,
    /// The value after; `None` for a removed leaf.
    pub new: Option<View<'a>>,
    /// `true` if nothing but the time of a timestamped value changed.
    pub only_time: bool,
    pub pointer: Pointer<'d, 'a>,
}

impl<'d> Leaf<'d, '_> {
    /// Position of the container that holds the leaf, in [`Diff::containers`].
    pub fn container(&self) -> usize {
        self.pointer.entry.parent as usize
    }

    /// The last token of the pointer.
    pub fn token(&self) -> Token<'d> {
        let Entry {
            index, old, new, ..
        } = *self.pointer.entry;
        self.pointer.diff.token(index, old, new)
    }
}

/// A container on the way to leaves of a diff.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Container<'d> {
    /// Position of the container that holds this one.
    pub parent: usize,
    /// Its place in the pointers of removed leaves.
    pub old: Token<'d>,
    /// Its place in the pointers of other leaves.
    pub new: Token<'d>,
}

/// One token of a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'d> {
    /// The name of a member, as written in JSON.
    Name(&'d str),
    /// A position in an array.
    Index(u32),
}

impl<'d> Token<'d> {
    /// Returns the name or the decimal position.
    pub fn text(self) -> Cow<'d, str> {
        match self {
            Token::Name(name) => text::unescape(name),
            Token::Index(index) => Cow::Owned(index.to_string()),
        }
    }
}

/// JSON Pointer of a leaf of a diff, in the old document for removed values, in the new one for others.
#[derive(Clone, Copy)]
pub struct Pointer<'d, 'a> {
    diff: &'d Diff<'a>,
    entry: &'d Entry,
}

impl Pointer<'_, '_> {
    /// Calls `visit` with each token from the root to the leaf: a member's name as written, or an index.
    fn each_token<'t>(&'t self, visit: &mut dyn FnMut(Token<'t>)) {
        let Entry { parent, index, .. } = *self.entry;
        self.parents(parent, visit);
        visit(self.diff.token(index, self.entry.old, self.entry.new));
    }

    fn parents<'t>(&'t self, at: u32, visit: &mut dyn FnMut(Token<'t>)) {
        if at == 0 {
            return;
        }
        let step = *self.diff.found.parents.get(at);
        self.parents(step.parent, visit);
        let index = match self.entry.part {
            Part::Removed => step.old_index,
            _ => step.new_index,
        };
        visit(self.diff.token(index, step.old, step.new));
    }

    /// Appends the pointer.
    pub fn write(&self, out: &mut String) {
        self.each_token(&mut |token| match token {
            Token::Name(name) => pointer::push_key(out, &text::unescape(name)),
            Token::Index(index) => pointer::push_index(out, index as usize),
        });
    }

    /// Appends the pointer, escaped for a JSON string.
    pub fn write_escaped(&self, out: &mut String) {
        self.each_token(&mut |token| match token {
            Token::Name(name) if !name.contains('\\') => pointer::push_key(out, name),
            Token::Name(name) => {
                let mut token = String::new();
                pointer::push_key(&mut token, &text::unescape(name));
                text::escape_into(out, &token);
            }
            Token::Index(index) => pointer::push_index(out, index as usize),
        });
    }

    /// Returns `true` if this is the pointer, without writing it.
    pub fn is(&self, wanted: &str) -> bool {
        let mut rest = Some(wanted);
        let mut buffer = String::new();
        self.each_token(&mut |token| {
            let Some(left) = rest else { return };
            rest = match token {
                Token::Name(name) if !name.contains(['\\', '~', '/']) => left
                    .strip_prefix('/')
                    .and_then(|left| left.strip_prefix(name)),
                token => {
                    buffer.clear();
                    match token {
                        Token::Name(name) => pointer::push_key(&mut buffer, &text::unescape(name)),
                        Token::Index(index) => pointer::push_index(&mut buffer, index as usize),
                    }
                    left.strip_prefix(&*buffer)
                }
            };
        });
        rest == Some("")
    }
}

impl fmt::Display for Pointer<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        f.write_str(&text)
    }
}

impl Serialize for Diff<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut json = String::new();
        self.write_json(&mut json, usize::MAX);
        let raw = RawValue::from_string(json).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}
