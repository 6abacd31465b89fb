//! One alternative of a pattern: fields that must match together.
//!
//! The semantics are those of AWS's event-ruler. A field matches if a value at its path passes one of its tests. Arrays
//! are not part of paths, but two fields must not match in different elements of the same array.
//! `{"exists": false}` applies only to the elements that earlier fields (in the order of their paths) matched in; if
//! there are none, to all elements.
//!
//! A path leads through each array once, so choosing an element decides it for all fields below and for no others.
//! The fields form a tree that is walked along the document, without backtracking: the work is bounded by the size of
//! the document times the size of the pattern.

use std::sync::Arc;

use antumbra_shadow::{Kind, View};

use super::root::Root;
use super::test::{Scalar, Test};
use crate::change::Change;

/// The condition on the values at a path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wanted {
    /// There must be none.
    Absent,
    /// One of them must pass one of these tests. `text` is the list of the file.
    Any { tests: Arc<[Test]>, text: Arc<str> },
}

impl Wanted {
    /// The list of the file.
    pub(crate) fn text(&self) -> &str {
        match self {
            Wanted::Absent => "[{\"exists\":false}]",
            Wanted::Any { text, .. } => text,
        }
    }
}

/// A path and the condition on its values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) path: Arc<[Box<str>]>,
    pub(crate) wanted: Wanted,
}

impl Field {
    /// The order in which event-ruler evaluates fields: by their dotted names, in UTF-16.
    fn order(&self) -> Vec<u16> {
        self.path.join(".").encode_utf16().collect()
    }
}

/// Fields that must all match.
#[derive(Debug, Clone)]
pub(crate) struct Alternative {
    roots: Box<[(Root, Node)]>,
}

/// The fields at and below one step of their paths.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    name: Box<str>,
    wanted: Option<Wanted>,
    children: Box<[Node]>,
    /// `true` if a value is required here or below.
    wants_value: bool,
    /// `true` if a value is required below.
    wants_value_below: bool,
    /// If there is an array here: paths at which no element may have a value, because no earlier field chooses an
    /// element.
    absent_throughout: Box<[Box<[Box<str>]>]>,
}

impl Alternative {
    pub(crate) fn new(mut fields: Vec<Field>) -> Alternative {
        fields.sort_by_cached_key(Field::order);
        let fields: Vec<&Field> = fields.iter().collect();
        let roots = groups(&fields, 0)
            .into_iter()
            .filter_map(|(name, fields)| Some((Root::parse(name)?, Node::new(name, &fields, 1))))
            .collect();
        Alternative { roots }
    }

    pub(crate) fn matches(&self, change: &Change<'_>) -> bool {
        self.roots
            .iter()
            .all(|(root, node)| node.holds_at_root(*root, change))
    }

    /// Returns `true` if the fields of every root match in this value.
    pub(crate) fn matches_value(&self, value: Option<View<'_>>) -> bool {
        self.roots.iter().all(|(_, node)| node.holds_in(value))
    }

    /// Returns `true` if it has conditions on the diff.
    pub(crate) fn needs_diff(&self) -> bool {
        self.roots.iter().any(|(root, _)| *root == Root::Diff)
    }

    /// Calls `visit` with each field, in any order.
    pub(crate) fn each_field(&self, then: &mut dyn FnMut(Field)) {
        for (_, node) in &self.roots {
            node.each_field(&mut Vec::new(), then);
        }
    }

    /// The fields in the order of evaluation.
    pub(crate) fn fields(&self) -> Vec<Field> {
        let mut fields = Vec::new();
        self.each_field(&mut |field| fields.push(field));
        fields.sort_by_cached_key(Field::order);
        fields
    }
}

/// Groups fields by the name at one step of their paths; the order within a group is kept.
fn groups<'a>(fields: &[&'a Field], step: usize) -> Vec<(&'a str, Vec<&'a Field>)> {
    let mut groups: Vec<(&str, Vec<&Field>)> = Vec::new();
    for field in fields {
        let Some(name) = field.path.get(step) else {
            continue;
        };
        match groups.iter_mut().find(|(known, _)| **known == **name) {
            Some((_, members)) => members.push(field),
            None => groups.push((name, vec![field])),
        }
    }
    groups
}

impl Node {
    /// `fields` are those whose path has `name` at step `depth`, in order.
    fn new(name: &str, fields: &[&Field], depth: usize) -> Node {
        let wanted = fields
            .iter()
            .find(|field| field.path.len() == depth)
            .map(|field| field.wanted.clone());
        let children: Box<[Node]> = groups(fields, depth)
            .into_iter()
            .map(|(name, fields)| Node::new(name, &fields, depth + 1))
            .collect();
        let wants_value_below = children.iter().any(|child| child.wants_value);
        let wants_value = wants_value_below || matches!(wanted, Some(Wanted::Any { .. }));
        let settles = |field: &&&Field| field.path.len() == depth || field.wanted == Wanted::Absent;
        let absent_throughout = fields
            .iter()
            .take_while(settles)
            .filter(|field| field.wanted == Wanted::Absent)
            .map(|field| field.path[depth..].into())
            .collect();
        Node {
            name: name.into(),
            wanted,
            children,
            wants_value,
            wants_value_below,
            absent_throughout,
        }
    }

    fn holds_at_root(&self, root: Root, change: &Change<'_>) -> bool {
        match root {
            Root::Old => self.holds_in(change.old),
            Root::New => self.holds_in(change.new),
            Root::Diff => self.holds_in_diff(change),
            _ => root.with_scalar(change, |scalar| match scalar {
                Some(scalar) => self.holds_for_scalar(scalar),
                None => !self.wants_value,
            }),
        }
    }

    fn holds_in(&self, view: Option<View<'_>>) -> bool {
        match view {
            Some(view) => self.holds(view),
            None => !self.wants_value,
        }
    }

    fn holds(&self, view: View<'_>) -> bool {
        match view.kind() {
            Kind::Object => {
                !matches!(self.wanted, Some(Wanted::Any { .. }))
                    && self
                        .children
                        .iter()
                        .all(|child| child.holds_in(view.get(&child.name)))
            }
            Kind::Array => self.holds_in_array(view),
            _ => Scalar::of(view).is_some_and(|scalar| self.holds_for_scalar(&scalar)),
        }
    }

    fn holds_for_scalar(&self, scalar: &Scalar<'_>) -> bool {
        let here = match &self.wanted {
            None => true,
            Some(Wanted::Absent) => false,
            Some(Wanted::Any { tests, .. }) => tests.iter().any(|test| test.passes(scalar)),
        };
        here && !self.wants_value_below
    }

    fn holds_in_array(&self, array: View<'_>) -> bool {
        if self
            .absent_throughout
            .iter()
            .any(|path| has_value(array, path))
        {
            return false;
        }
        if !self.wants_value {
            return true;
        }
        if !self.wants_value_below {
            return any_scalar(array, &|scalar| self.holds_for_scalar(scalar));
        }
        // A scalar in this array chooses no element, so the fields below are free.
        let here_is_free = match &self.wanted {
            Some(Wanted::Any { tests, .. }) => array
                .children()
                .filter_map(Scalar::of)
                .any(|scalar| tests.iter().any(|test| test.passes(&scalar))),
            _ => true,
        };
        array.children().any(|element| match element.kind() {
            Kind::Object => {
                here_is_free
                    && self
                        .children
                        .iter()
                        .all(|child| child.holds_in(element.get(&child.name)))
            }
            Kind::Array => {
                self.holds_in_array(element)
                    || (here_is_free && self.wanted.is_some() && self.holds_below(element))
            }
            _ => false,
        })
    }

    /// Returns `true` if the fields below match within an array; the condition here is already decided.
    fn holds_below(&self, array: View<'_>) -> bool {
        array.children().any(|element| match element.kind() {
            Kind::Object => self
                .children
                .iter()
                .all(|child| child.holds_in(element.get(&child.name))),
            Kind::Array => self.holds_below(element),
            _ => false,
        })
    }

    fn each_field(&self, path: &mut Vec<Box<str>>, then: &mut dyn FnMut(Field)) {
        path.push(self.name.clone());
        if let Some(wanted) = &self.wanted {
            then(Field {
                path: path.as_slice().into(),
                wanted: wanted.clone(),
            });
        }
        for child in &self.children {
            child.each_field(path, then);
        }
        path.pop();
    }

    /// Walks the diff, an object of objects by pointer, without serializing it.
    fn holds_in_diff(&self, change: &Change<'_>) -> bool {
        let diff = change.diff.diff();
        self.children.iter().all(|part| {
            part.children.iter().all(|entry| match &*part.name {
                "added" => entry.holds_in(
                    diff.added()
                        .find(|(pointer, _)| pointer.is(&entry.name))
                        .map(|(_, new)| new),
                ),
                "removed" => entry.holds_in(
                    diff.removed()
                        .find(|(pointer, _)| pointer.is(&entry.name))
                        .map(|(_, old)| old),
                ),
                _ => {
                    let found = diff.updated().find(|(pointer, ..)| pointer.is(&entry.name));
                    entry.children.iter().all(|side| {
                        side.holds_in(
                            found.map(|(_, old, new)| if &*side.name == "old" { old } else { new }),
                        )
                    })
                }
            })
        })
    }
}

fn any_scalar(array: View<'_>, test: &dyn Fn(&Scalar<'_>) -> bool) -> bool {
    array.children().any(|element| match Scalar::of(element) {
        Some(scalar) => test(&scalar),
        None => element.kind() == Kind::Array && any_scalar(element, test),
    })
}

/// Returns `true` if there is a scalar at a path, in any element of any array along it.
fn has_value(view: View<'_>, path: &[Box<str>]) -> bool {
    match (view.kind(), path) {
        (Kind::Array, _) => view.children().any(|element| has_value(element, path)),
        (Kind::Object, [name, rest @ ..]) => {
            view.get(name).is_some_and(|member| has_value(member, rest))
        }
        (Kind::Object, []) => false,
        (_, path) => path.is_empty(),
    }
}

/// Every scalar at a path, through all arrays along it.
pub(crate) fn each_value<'v>(view: View<'v>, path: &[Box<str>], each: &mut dyn FnMut(Scalar<'v>)) {
    match (view.kind(), path) {
        (Kind::Array, _) => view
            .children()
            .for_each(|element| each_value(element, path, each)),
        (Kind::Object, [name, rest @ ..]) => {
            if let Some(member) = view.get(name) {
                each_value(member, rest, each);
            }
        }
        (Kind::Object, []) => {}
        (_, path) => {
            if path.is_empty()
                && let Some(scalar) = Scalar::of(view)
            {
                each(scalar);
            }
        }
    }
}
