//! Apply: the inverse of diff.

use std::collections::BTreeMap;

use crate::diff::Diff;
use crate::document::{Document, DocumentError};
use crate::pointer;
use crate::tape::{Kind, View};
use crate::text;

/// Why a diff does not fit a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The document has nothing where the diff expects something.
    #[error("the document does not fit the diff at {pointer:?}")]
    Misfit {
        /// JSON Pointer of the value.
        pointer: String,
    },
    /// The result would not be a document.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// Applies a diff to the document that it was computed from.
///
/// ```
/// use antumbra_shadow::{apply, diff, Document, Model};
///
/// let old = Document::parse(r#"{"a":[1,2,3],"b":{"c":1}}"#).unwrap();
/// let new = Document::parse(r#"{"a":[1,5]}"#).unwrap();
/// let diff = diff(old.view(), new.view(), &Model::default());
/// assert_eq!(apply(&old, &diff).unwrap(), new);
/// ```
pub fn apply(old: &Document, diff: &Diff<'_>) -> Result<Document, ApplyError> {
    let mut root = Tree::of(old.view());
    // The root stays a container even when it is empty.
    if let Tree::Leaf(_) = root {
        root = Tree::Object(BTreeMap::new());
    }
    for (pointer, _) in diff.removed() {
        let pointer = pointer.to_string();
        let place = root.place(&pointer).ok_or_else(|| misfit(&pointer))?;
        *place = Tree::Gone;
    }
    root.close_up(diff.old, Some(diff.new), diff);
    if let Tree::Gone = root {
        root = Tree::Object(BTreeMap::new());
    }
    for (pointer, value) in diff.added() {
        let pointer = pointer.to_string();
        root.add(&pointer, diff.new, value)
            .ok_or_else(|| misfit(&pointer))?;
    }
    for (pointer, _, value) in diff.updated() {
        let pointer = pointer.to_string();
        let place = root.place(&pointer).ok_or_else(|| misfit(&pointer))?;
        *place = Tree::of(value);
    }
    let mut json = String::new();
    root.write(&mut json);
    Ok(Document::parse(&json)?)
}

fn misfit(pointer: &str) -> ApplyError {
    ApplyError::Misfit {
        pointer: pointer.to_owned(),
    }
}

/// A document that can be changed in place.
enum Tree {
    Gone,
    /// A scalar or an empty container, as JSON text.
    Leaf(String),
    Array(Vec<Tree>),
    Object(BTreeMap<String, Tree>),
}

impl Tree {
    fn of(view: View<'_>) -> Tree {
        match view.kind() {
            _ if !view.is_container() || view.is_empty_container() => Tree::Leaf(view.to_json()),
            Kind::Array => Tree::Array(view.children().map(Tree::of).collect()),
            _ => Tree::Object(
                view.children()
                    .map(|child| (child.key().into_owned(), Tree::of(child)))
                    .collect(),
            ),
        }
    }

    fn place(&mut self, pointer: &str) -> Option<&mut Tree> {
        pointer
            .split('/')
            .skip(1)
            .try_fold(self, |tree, token| match tree {
                Tree::Object(members) => members.get_mut(pointer::unescape(token).as_ref()),
                Tree::Array(elements) => elements.get_mut(pointer::index(token)?),
                _ => None,
            })
    }

    /// Removes values that are gone and containers that became empty. An element that became empty keeps its position.
    fn close_up(&mut self, old: View<'_>, new: Option<View<'_>>, diff: &Diff<'_>) {
        match self {
            Tree::Array(elements) if diff.is_matched_by_id(old) => {
                // The elements that stayed have the same order in the new array.
                let (mut index, mut stayed) = (0, 0);
                elements.retain_mut(|element| {
                    if let Some(old) = old.element(index) {
                        element.close_up(old, new.and_then(|new| new.element(stayed)), diff);
                    }
                    let stays = !matches!(element, Tree::Gone);
                    index += 1;
                    stayed += usize::from(stays);
                    stays
                });
            }
            Tree::Array(elements) => {
                let room = new.map_or(0, |new| new.children().count());
                for (index, element) in elements.iter_mut().enumerate() {
                    if let Some(old) = old.element(index) {
                        element.close_up(old, new.and_then(|new| new.element(index)), diff);
                    }
                }
                let mut index = 0;
                elements.retain(|element| {
                    index += 1;
                    index <= room || !matches!(element, Tree::Gone)
                });
            }
            Tree::Object(members) => members.retain(|key, member| {
                if let Some(old) = old.get(key) {
                    member.close_up(old, new.and_then(|new| new.get(key)), diff);
                }
                !matches!(member, Tree::Gone)
            }),
            Tree::Leaf(_) | Tree::Gone => return,
        }
        let left = match self {
            Tree::Array(elements) => elements
                .iter()
                .any(|element| !matches!(element, Tree::Gone)),
            Tree::Object(members) => !members.is_empty(),
            _ => true,
        };
        if !left {
            *self = Tree::Gone;
        }
    }

    /// Adds a leaf; `shape` says which containers on its path are arrays.
    fn add(&mut self, pointer: &str, shape: View<'_>, value: View<'_>) -> Option<()> {
        let mut tree = self;
        let mut shape = shape;
        for token in pointer.split('/').skip(1) {
            let key = pointer::unescape(token);
            if matches!(tree, Tree::Leaf(_) | Tree::Gone) {
                *tree = match shape.kind() {
                    Kind::Array => Tree::Array(Vec::new()),
                    _ => Tree::Object(BTreeMap::new()),
                };
            }
            tree = match tree {
                Tree::Object(members) => {
                    shape = shape.get(&key)?;
                    members.entry(key.into_owned()).or_insert(Tree::Gone)
                }
                Tree::Array(elements) => {
                    let index = pointer::index(token)?;
                    shape = shape.element(index)?;
                    if index == elements.len() {
                        elements.push(Tree::Gone);
                    }
                    elements.get_mut(index)?
                }
                _ => return None,
            };
        }
        *tree = Tree::of(value);
        Some(())
    }

    fn write(&self, out: &mut String) {
        match self {
            Tree::Gone => out.push_str("null"),
            Tree::Leaf(text) => out.push_str(text),
            Tree::Array(elements) => {
                out.push('[');
                for (position, element) in elements.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Tree::Object(members) => {
                out.push('{');
                for (position, (key, member)) in members.iter().enumerate() {
                    out.push_str(if position > 0 { ",\"" } else { "\"" });
                    text::escape_into(out, key);
                    out.push_str("\":");
                    member.write(out);
                }
                out.push('}');
            }
        }
    }
}
