//! Writes canonical documents: text and tape in step.

use crate::document::{Document, DocumentError};
use crate::number;
use crate::tape::{Kind, Node, Span, View, move_nodes};
use crate::text;

/// A document being written. Members must come in rising order of their written names.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    text: String,
    nodes: Vec<Node>,
}

impl Builder {
    pub(crate) fn with_capacity(text: usize, nodes: usize) -> Builder {
        Builder {
            text: String::with_capacity(text),
            nodes: Vec::with_capacity(nodes),
        }
    }

    pub(crate) fn finish(mut self) -> Document {
        // Room is reserved for the longest result there can be. Giving a little of it back is not worth a copy.
        if self.nodes.capacity() > self.nodes.len() / 2 * 3 {
            self.text.shrink_to_fit();
            self.nodes.shrink_to_fit();
        }
        Document::from_parts(self.text, self.nodes)
    }

    /// A position to return to with [`Builder::rewind`].
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.text.len(), self.nodes.len())
    }

    /// The nodes written since.
    pub(crate) fn written(&self, first: usize) -> &[Node] {
        &self.nodes[first..]
    }

    /// Discards everything written since the mark.
    pub(crate) fn rewind(&mut self, mark: (usize, usize)) {
        self.text.truncate(mark.0);
        self.nodes.truncate(mark.1);
    }

    /// Opens a container; the result is for [`Builder::close`].
    pub(crate) fn open(&mut self, key: Option<&str>, kind: Kind) -> usize {
        let key = self.key(key);
        let start = self.text.len();
        self.text.push(if kind == Kind::Object { '{' } else { '[' });
        self.push(key, Span::new(start, start), kind, false);
        self.nodes.len() - 1
    }

    pub(crate) fn close(&mut self, opened: usize) {
        self.text.push(if self.nodes[opened].kind == Kind::Object {
            '}'
        } else {
            ']'
        });
        self.nodes[opened].next = self.nodes.len() as u32;
        self.nodes[opened].value.end = self.text.len() as u32;
    }

    /// Writes a scalar. `raw` is in canonical form, strings without their quotes.
    pub(crate) fn scalar(&mut self, key: Option<&str>, kind: Kind, raw: &str) {
        let key = self.key(key);
        let quoted = kind == Kind::String;
        if quoted {
            self.text.push('"');
        }
        let start = self.text.len();
        self.text.push_str(raw);
        let span = Span::new(start, self.text.len());
        if quoted {
            self.text.push('"');
        }
        self.push(key, span, kind, quoted && raw.contains('\\'));
    }

    /// Copies a value of a canonical document with all below it, and with its name if it has one.
    pub(crate) fn copy(&mut self, view: View<'_>) {
        self.copy_all(view, view);
    }

    /// Copies siblings in a canonical document, from the first to the last.
    pub(crate) fn copy_all(&mut self, first: View<'_>, last: View<'_>) {
        self.separate();
        let whole = first.written().start as usize..last.written().end as usize;
        let text_shift = (self.text.len() as u32).wrapping_sub(whole.start as u32);
        let node_shift = (self.nodes.len() as u32).wrapping_sub(first.index());
        self.text.push_str(&first.source()[whole]);
        let copies = self.nodes.len();
        self.nodes.extend_from_slice(first.nodes_to(last));
        move_nodes(&mut self.nodes[copies..], text_shift, node_shift);
    }

    /// Writes the comma between two values.
    fn separate(&mut self) {
        // Only a container just opened ends in a bracket: strings end in their quote.
        if !matches!(self.text.as_bytes().last(), None | Some(b'{' | b'[')) {
            self.text.push(',');
        }
    }

    fn key(&mut self, key: Option<&str>) -> Span {
        self.separate();
        let Some(key) = key else {
            return Span::new(self.text.len(), self.text.len());
        };
        self.text.push('"');
        let start = self.text.len();
        self.text.push_str(key);
        let end = self.text.len();
        self.text.push_str("\":");
        Span::new(start, end)
    }

    fn push(&mut self, key: Span, value: Span, kind: Kind, value_escaped: bool) {
        let next = self.nodes.len() as u32 + 1;
        let key_escaped = key.of(&self.text).contains('\\');
        self.nodes.push(Node {
            key,
            value,
            next,
            kind,
            key_escaped,
            value_escaped,
        });
    }
}

/// Form in which numbers are written.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    Canonical,
    AsTheyStand,
}

/// Writes any parsed text anew in canonical form.
pub(crate) fn canonicalise(root: View<'_>) -> Result<Document, DocumentError> {
    let mut builder = Builder::with_capacity(root.source().len(), root.subtree().len());
    write(&mut builder, None, root, Numbers::Canonical)?;
    Ok(builder.finish())
}

/// The same with numbers as they were written.
pub(crate) fn sorted(root: View<'_>) -> Result<String, DocumentError> {
    let mut builder = Builder::with_capacity(root.source().len(), root.subtree().len());
    write(&mut builder, None, root, Numbers::AsTheyStand)?;
    Ok(builder.text)
}

fn write(
    builder: &mut Builder,
    key: Option<&str>,
    view: View<'_>,
    numbers: Numbers,
) -> Result<(), DocumentError> {
    match view.kind() {
        Kind::Null | Kind::Bool => builder.scalar(key, view.kind(), view.raw()),
        Kind::String if view.is_verbatim() => builder.scalar(key, Kind::String, view.raw()),
        Kind::String => builder.scalar(key, Kind::String, &text::canonical(view.raw())),
        Kind::Number
            if numbers == Numbers::AsTheyStand
                || number::is_plainly_canonical(view.raw().as_bytes()) =>
        {
            builder.scalar(key, Kind::Number, view.raw());
        }
        Kind::Number => {
            let form = number::canonical(view.raw()).map_err(|source| DocumentError::Number {
                offset: view.node().value.start as usize,
                source,
            })?;
            builder.scalar(key, Kind::Number, &form);
        }
        Kind::Array => {
            let opened = builder.open(key, Kind::Array);
            for element in view.children() {
                write(builder, None, element, numbers)?;
            }
            builder.close(opened);
        }
        Kind::Object => {
            let mut members: Vec<_> = view
                .children()
                .map(|member| (canonical_key(member), member))
                .collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            if let Some(twice) = members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(DocumentError::DuplicateKey {
                    key: twice[0].1.key().into_owned(),
                });
            }
            let opened = builder.open(key, Kind::Object);
            for (key, member) in &members {
                write(builder, Some(key), *member, numbers)?;
            }
            builder.close(opened);
        }
    }
    Ok(())
}

fn canonical_key(member: View<'_>) -> std::borrow::Cow<'_, str> {
    if member.node().key_escaped {
        text::canonical(member.raw_key()).into()
    } else {
        member.raw_key().into()
    }
}
