//! The leaves of a diff and their JSON Pointers, which are written only on demand.

use std::borrow::Cow;
use std::fmt;

use super::{Diff, Entry, Part};
use crate::tape::View;
use crate::{pointer, text};

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
    pub(super) diff: &'d Diff<'a>,
    pub(super) entry: &'d Entry,
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
