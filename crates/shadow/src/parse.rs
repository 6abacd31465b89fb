//! Parses a JSON text into a tape of nodes ([`crate::tape`]), in one pass and without recursion.
//!
//! The pass also detects whether the text is in canonical form. [`crate::document`] then uses the text as it
//! is; otherwise it writes the text again in canonical form.

use crate::document::DocumentError;
use crate::limits;
use crate::number;
use crate::scan::Scanner;
use crate::tape::{Kind, Node, Span};
use crate::text;

pub(crate) struct Parsed {
    pub(crate) nodes: Vec<Node>,
    /// `true` if the text is in canonical form.
    pub(crate) canonical: bool,
}

/// An object or array whose closing bracket was not read yet.
struct OpenContainer {
    /// Index of its node.
    node: u32,
    is_object: bool,
    /// Name of the last member. In canonical form, names are in ascending order.
    last_key: Option<Span>,
}

pub(crate) fn parse(text: &str) -> Result<Parsed, DocumentError> {
    if text.len() > limits::TEXT_BYTES {
        return Err(DocumentError::TooLong {
            bytes: text.len(),
            limit: limits::TEXT_BYTES,
        });
    }
    let mut parser = Parser {
        scanner: Scanner::new(text),
        text,
        nodes: Vec::with_capacity(text.len() / 12 + 1),
        open: Vec::new(),
        depth: 0,
        canonical: true,
    };
    parser.run()?;
    if parser.depth > limits::DEPTH {
        return Err(DocumentError::TooDeep {
            depth: parser.depth,
            limit: limits::DEPTH,
        });
    }
    Ok(Parsed {
        nodes: parser.nodes,
        canonical: parser.canonical,
    })
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    text: &'a str,
    nodes: Vec<Node>,
    open: Vec<OpenContainer>,
    /// Depth of the deepest value so far.
    depth: usize,
    /// `true` if the text is in canonical form so far.
    canonical: bool,
}

/// The name of a member; empty for elements of arrays and for the root.
#[derive(Default)]
struct Key {
    span: Span,
    escaped: bool,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), DocumentError> {
        self.skip_space();
        let mut key = Key::default();
        loop {
            let container_opened = self.read_value(key)?;
            key = match self.read_to_next_value(container_opened)? {
                Some(next) => next,
                None => break,
            };
        }
        self.skip_space();
        if self.scanner.peek().is_some() {
            return Err(self.scanner.fault("text after the end").into());
        }
        Ok(())
    }

    /// Skips white space, which canonical form does not have.
    fn skip_space(&mut self) {
        self.canonical &= !self.scanner.skip_space();
    }

    /// Reads a scalar, or the opening bracket of a container. Returns `true` for a container.
    fn read_value(&mut self, key: Key) -> Result<bool, DocumentError> {
        let start = self.scanner.at;
        self.depth = self.depth.max(self.open.len() + 1);
        let mut value_escaped = false;
        let mut string_span = None;
        let kind = match self.scanner.peek() {
            Some(b'"') => {
                let string = self.scanner.string()?;
                value_escaped = string.escaped;
                let span = Span::new(string.start, string.end);
                self.canonical &= !value_escaped || is_canonical_string(span.of(self.text));
                string_span = Some(span);
                Kind::String
            }
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b't') => self.scanner.word("true").map(|()| Kind::Bool)?,
            Some(b'f') => self.scanner.word("false").map(|()| Kind::Bool)?,
            Some(b'n') => self.scanner.word("null").map(|()| Kind::Null)?,
            _ => {
                let number = self.scanner.number()?;
                if !number::is_plainly_canonical(number.as_bytes()) {
                    let canonical =
                        number::canonical(number).map_err(|source| DocumentError::Number {
                            offset: start,
                            source,
                        })?;
                    self.canonical &= canonical == number;
                }
                Kind::Number
            }
        };
        let is_container = matches!(kind, Kind::Object | Kind::Array);
        if is_container {
            self.scanner.at += 1;
            self.open.push(OpenContainer {
                node: self.nodes.len() as u32,
                is_object: kind == Kind::Object,
                last_key: None,
            });
        }
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node {
            key: key.span,
            value: string_span.unwrap_or(Span::new(start, self.scanner.at)),
            next,
            kind,
            key_escaped: key.escaped,
            value_escaped,
        });
        Ok(is_container)
    }

    /// Reads up to the start of the next value and returns its name; `None` if the root is complete.
    ///
    /// Closes all containers that end before it. `just_opened` says that the last value opened a
    /// container: its first value follows without a comma.
    fn read_to_next_value(&mut self, mut just_opened: bool) -> Result<Option<Key>, DocumentError> {
        loop {
            let Some(is_object) = self.open.last().map(|open| open.is_object) else {
                return Ok(None);
            };
            self.skip_space();
            let closing = if is_object { b'}' } else { b']' };
            match self.scanner.peek() {
                Some(b) if b == closing => {
                    self.scanner.at += 1;
                    self.close_container();
                    just_opened = false;
                    continue;
                }
                Some(b',') if !just_opened => {
                    self.scanner.at += 1;
                    self.skip_space();
                }
                Some(_) if just_opened => {}
                Some(_) => return Err(self.scanner.fault("a comma or the end is expected").into()),
                None => {
                    return Err(self
                        .scanner
                        .fault("the text ends inside a container")
                        .into());
                }
            }
            return if is_object {
                self.read_key().map(Some)
            } else {
                Ok(Some(Key::default()))
            };
        }
    }

    /// Completes the node of the innermost container, now that its end is known.
    fn close_container(&mut self) {
        if let Some(open) = self.open.pop() {
            let next = self.nodes.len() as u32;
            let node = &mut self.nodes[open.node as usize];
            node.next = next;
            node.value.end = self.scanner.at as u32;
        }
    }

    /// Reads the name of a member and the colon after it.
    fn read_key(&mut self) -> Result<Key, DocumentError> {
        let string = self.scanner.string()?;
        let span = Span::new(string.start, string.end);
        if let Some(open) = self.open.last_mut() {
            self.canonical &= open
                .last_key
                .is_none_or(|last| last.of(self.text) < span.of(self.text));
            open.last_key = Some(span);
        }
        self.canonical &= !string.escaped || is_canonical_string(span.of(self.text));
        self.skip_space();
        self.scanner.expect(b':', "a colon is expected")?;
        self.skip_space();
        Ok(Key {
            span,
            escaped: string.escaped,
        })
    }
}

fn is_canonical_string(raw: &str) -> bool {
    text::canonical(raw) == raw
}
