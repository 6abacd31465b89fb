//! The tape: the position of each value in a JSON text, flat and in document order.
//!
//! One node per value, children right behind their parent, no allocation per value. A [`View`] is
//! a cursor on a tape. The same shape serves canonical documents and DynamoDB stream images, so
//! that diff and rules are written once.

use std::borrow::Cow;
use std::fmt;

use crate::text;

/// Kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// A range of bytes in the text a tape describes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// From byte offsets. Texts are bounded far below 4 GiB before a tape is made.
    pub fn new(start: usize, end: usize) -> Span {
        Span {
            start: start as u32,
            end: end as u32,
        }
    }

    /// Number of bytes.
    pub(crate) fn length(self) -> usize {
        (self.end - self.start) as usize
    }

    /// The text of this range.
    pub fn of(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }

    /// The text of this range of a string, with the quotes around it.
    fn quoted(self, text: &str) -> &str {
        &text[self.start as usize - 1..self.end as usize + 1]
    }

    /// The text as bytes, which need not be checked for where characters start.
    pub(crate) fn bytes_of(self, text: &str) -> &[u8] {
        &text.as_bytes()[self.start as usize..self.end as usize]
    }
}

/// One value on the tape.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// The member's name as written, between its quotes; empty and where the value is for elements and the root.
    pub key: Span,
    /// Strings: what is between the quotes. Other scalars: their text. Containers: with brackets.
    pub value: Span,
    /// The index of the node that follows this one's subtree.
    pub next: u32,
    /// Kind of the value.
    pub kind: Kind,
    /// `true` if the name contains escapes.
    pub key_escaped: bool,
    /// `true` if the string contains escapes.
    pub value_escaped: bool,
}

/// Adjusts copies of consecutive nodes to their new place: their text was copied to `bytes` further on, and they are
/// `nodes` further on the tape.
#[inline]
pub fn move_nodes(copies: &mut [Node], bytes: u32, nodes: u32) {
    for node in copies {
        for span in [&mut node.key, &mut node.value] {
            span.start = span.start.wrapping_add(bytes);
            span.end = span.end.wrapping_add(bytes);
        }
        node.next = node.next.wrapping_add(nodes);
    }
}

/// A value on a tape: a cursor, cheap to copy.
#[derive(Clone, Copy)]
pub struct View<'a> {
    text: &'a str,
    nodes: &'a [Node],
    at: u32,
}

impl<'a> View<'a> {
    /// The first value of a tape that holds at least one node.
    pub fn new(text: &'a str, nodes: &'a [Node]) -> View<'a> {
        View { text, nodes, at: 0 }
    }

    /// The value at a node's index.
    pub fn at(self, index: u32) -> View<'a> {
        View { at: index, ..self }
    }

    /// This value's index on its tape.
    pub fn index(self) -> u32 {
        self.at
    }

    pub(crate) fn node(self) -> &'a Node {
        &self.nodes[self.at as usize]
    }

    pub(crate) fn source(self) -> &'a str {
        self.text
    }

    /// The nodes of this value and all below it.
    pub(crate) fn subtree(self) -> &'a [Node] {
        &self.nodes[self.at as usize..self.node().next as usize]
    }

    /// The nodes of this value, of those up to another one, and of all below them.
    pub(crate) fn nodes_to(self, last: View<'a>) -> &'a [Node] {
        &self.nodes[self.at as usize..last.node().next as usize]
    }

    /// The range of the text from the name, if the value has one, to the end of the value, both with their quotes. For
    /// canonical documents.
    pub(crate) fn written(self) -> Span {
        let node = self.node();
        let quotes = u32::from(node.kind == Kind::String);
        let start = node.value.start - quotes;
        let is_named = start > 0 && self.text.as_bytes()[start as usize - 1] == b':';
        Span {
            start: if is_named { node.key.start - 1 } else { start },
            end: node.value.end + quotes,
        }
    }

    /// Returns the kind of the value.
    pub fn kind(self) -> Kind {
        self.node().kind
    }

    /// Returns `true` for objects and arrays.
    pub fn is_container(self) -> bool {
        matches!(self.kind(), Kind::Array | Kind::Object)
    }

    /// Returns `true` for `{}` and `[]`.
    pub fn is_empty_container(self) -> bool {
        self.is_container() && self.node().next == self.at + 1
    }

    /// The name this value has in its object, as written in the text.
    pub fn raw_key(self) -> &'a str {
        self.node().key.of(self.text)
    }

    pub(crate) fn raw_key_bytes(self) -> &'a [u8] {
        self.node().key.bytes_of(self.text)
    }

    /// The name this value has in its object.
    pub fn key(self) -> Cow<'a, str> {
        if self.node().key_escaped {
            text::unescape(self.raw_key())
        } else {
            Cow::Borrowed(self.raw_key())
        }
    }

    /// The value as written: strings without quotes, containers with brackets.
    pub fn raw(self) -> &'a str {
        self.node().value.of(self.text)
    }

    pub(crate) fn raw_bytes(self) -> &'a [u8] {
        self.node().value.bytes_of(self.text)
    }

    /// Returns `true` if a string contains no escapes.
    pub fn is_verbatim(self) -> bool {
        !self.node().value_escaped
    }

    /// The string, if it is one.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        match self.node() {
            Node {
                kind: Kind::String,
                value_escaped: false,
                ..
            } => Some(Cow::Borrowed(self.raw())),
            Node {
                kind: Kind::String, ..
            } => Some(text::unescape(self.raw())),
            _ => None,
        }
    }

    /// The boolean, if it is one.
    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == "true")
    }

    /// The number's decimal text, if it is one.
    pub fn as_number(self) -> Option<&'a str> {
        (self.kind() == Kind::Number).then(|| self.raw())
    }

    /// Members of an object or elements of an array, in order; nothing for scalars.
    pub fn children(self) -> Children<'a> {
        let end = if self.is_container() {
            self.node().next
        } else {
            self.at + 1
        };
        Children {
            view: self,
            next: self.at + 1,
            end,
        }
    }

    /// The member of that name.
    pub fn get(self, key: &str) -> Option<View<'a>> {
        if self.kind() != Kind::Object {
            return None;
        }
        let (nodes, bytes) = (self.nodes, self.text.as_bytes());
        let (wanted, first) = (key.as_bytes(), key.as_bytes().first());
        let (mut at, end) = (self.at + 1, self.node().next);
        while at < end {
            let node = &nodes[at as usize];
            let found = if node.key_escaped {
                text::unescape(node.key.of(self.text)) == key
            } else {
                // Most names differ in their length or their first byte, which needs no call to compare memory.
                node.key.length() == wanted.len()
                    && (first.is_none() || bytes.get(node.key.start as usize) == first)
                    && node.key.bytes_of(self.text) == wanted
            };
            if found {
                return Some(self.at(at));
            }
            at = node.next;
        }
        None
    }

    /// The element at that position.
    pub fn element(self, index: usize) -> Option<View<'a>> {
        if self.kind() != Kind::Array {
            return None;
        }
        self.children().nth(index)
    }

    /// The value at a JSON Pointer (RFC 6901) below this one.
    pub fn pointer(self, pointer: &str) -> Option<View<'a>> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer
            .strip_prefix('/')?
            .split('/')
            .try_fold(self, |view, token| match view.kind() {
                Kind::Object => view.get(&crate::pointer::unescape(token)),
                Kind::Array => view.element(crate::pointer::index(token)?),
                _ => None,
            })
    }

    /// Returns `true` if both are the same JSON value. Members may stand in another order and strings may be
    /// escaped otherwise; numbers are compared as written, which on one kind of tape is by value.
    pub fn same(self, other: View<'_>) -> bool {
        if self.kind() != other.kind() {
            return false;
        }
        match self.kind() {
            Kind::Null => true,
            Kind::Bool | Kind::Number => self.raw_bytes() == other.raw_bytes(),
            _ if self.raw_bytes() == other.raw_bytes() => true,
            Kind::String => {
                let verbatim = self.is_verbatim() && other.is_verbatim();
                !verbatim && self.as_str() == other.as_str()
            }
            Kind::Array => {
                let (mut a, mut b) = (self.children(), other.children());
                loop {
                    match (a.next(), b.next()) {
                        (None, None) => return true,
                        (Some(x), Some(y)) if x.same(y) => {}
                        _ => return false,
                    }
                }
            }
            Kind::Object => {
                self.children().count() == other.children().count()
                    && crate::pairs::all_twins(
                        self,
                        other,
                        |a, b| matches!((a, b), (Some(a), Some(b)) if a.same(b)),
                    )
            }
        }
    }

    /// Appends the value as JSON text without white space.
    pub fn write_json(self, out: &mut String) {
        match self.kind() {
            Kind::Null => out.push_str("null"),
            Kind::Bool | Kind::Number => out.push_str(self.raw()),
            Kind::String => out.push_str(self.node().value.quoted(self.text)),
            Kind::Array => self.write_members(out, '[', ']', false),
            Kind::Object => self.write_members(out, '{', '}', true),
        }
    }

    fn write_members(self, out: &mut String, open: char, close: char, keys: bool) {
        out.push(open);
        for (position, child) in self.children().enumerate() {
            if position > 0 {
                out.push(',');
            }
            if keys {
                out.push_str(child.node().key.quoted(self.text));
                out.push(':');
            }
            child.write_json(out);
        }
        out.push(close);
    }

    /// The value as JSON text without white space.
    pub fn to_json(self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

/// The children of a container, in the order they stand in the text.
#[derive(Debug, Clone)]
pub struct Children<'a> {
    view: View<'a>,
    next: u32,
    end: u32,
}

impl<'a> Children<'a> {
    /// The next child, without taking it.
    pub(crate) fn peek(&self) -> Option<View<'a>> {
        (self.next < self.end).then(|| self.view.at(self.next))
    }

    /// Continues after a child that was peeked at.
    pub(crate) fn step_over(&mut self, child: View<'a>) {
        self.next = child.node().next;
    }

    /// Continues after the last child that ends before this position of the text. Returns this child, and by how many
    /// nodes the iterator moved on.
    pub(crate) fn step_to(&mut self, position: u32) -> (Option<View<'a>>, u32) {
        let (start, mut last) = (self.next, None);
        while let Some(child) = self.peek()
            && child.node().value.end < position
        {
            last = Some(child);
            self.next = child.node().next;
        }
        (last, self.next - start)
    }

    /// Moves on by so many nodes, to the start of another child or the end.
    pub(crate) fn advance(&mut self, nodes: u32) {
        self.next += nodes;
    }
}

impl<'a> Iterator for Children<'a> {
    type Item = View<'a>;

    fn next(&mut self) -> Option<View<'a>> {
        if self.next >= self.end {
            return None;
        }
        let child = self.view.at(self.next);
        self.next = child.node().next;
        Some(child)
    }
}
