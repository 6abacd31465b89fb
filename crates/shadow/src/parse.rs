//! JSON text to tape, in one pass and without recursion.
//!
//! The pass also sees whether the text already is in canonical form; only when it is not is it
//! written anew.

use crate::document::DocumentError;
use crate::limits;
use crate::number;
use crate::scan::Scanner;
use crate::tape::{Kind, Node, Span};
use crate::text;

/// Result of one pass over a text.
pub(crate) struct Parsed {
    pub(crate) nodes: Vec<Node>,
    pub(crate) canonical: bool,
}

struct Open {
    node: u32,
    object: bool,
    /// The last member's name, to see whether names rise.
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
    open: Vec<Open>,
    depth: usize,
    canonical: bool,
}

#[derive(Default)]
struct Key {
    span: Span,
    escaped: bool,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), DocumentError> {
        self.space();
        let mut key = Key::default();
        loop {
            let opened = self.value(key)?;
            key = match self.after_value(opened)? {
                Some(next) => next,
                None => break,
            };
        }
        self.space();
        if self.scanner.peek().is_some() {
            return Err(self.scanner.fault("text after the end").into());
        }
        Ok(())
    }

    fn space(&mut self) {
        self.canonical &= !self.scanner.skip_space();
    }

    /// Reads a scalar, or the opening of a container; says which.
    fn value(&mut self, key: Key) -> Result<bool, DocumentError> {
        let start = self.scanner.at;
        self.depth = self.depth.max(self.open.len() + 1);
        let mut escaped = false;
        let mut value = None;
        let kind = match self.scanner.peek() {
            Some(b'"') => {
                let string = self.scanner.string()?;
                escaped = string.escaped;
                let span = Span::new(string.start, string.end);
                self.canonical &= !escaped || is_canonical_string(span.of(self.text));
                value = Some(span);
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
                    let form =
                        number::canonical(number).map_err(|source| DocumentError::Number {
                            offset: start,
                            source,
                        })?;
                    self.canonical &= form == number;
                }
                Kind::Number
            }
        };
        let container = matches!(kind, Kind::Object | Kind::Array);
        if container {
            self.scanner.at += 1;
            self.open.push(Open {
                node: self.nodes.len() as u32,
                object: kind == Kind::Object,
                last_key: None,
            });
        }
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node {
            key: key.span,
            value: value.unwrap_or(Span::new(start, self.scanner.at)),
            next,
            kind,
            key_escaped: key.escaped,
            value_escaped: escaped,
        });
        Ok(container)
    }

    /// Reads on to the next value's start: its name, or `None` when the root is complete.
    fn after_value(&mut self, mut opened: bool) -> Result<Option<Key>, DocumentError> {
        loop {
            let Some(object) = self.open.last().map(|open| open.object) else {
                return Ok(None);
            };
            self.space();
            let close = if object { b'}' } else { b']' };
            match self.scanner.peek() {
                Some(b) if b == close => {
                    self.scanner.at += 1;
                    self.close();
                    opened = false;
                    continue;
                }
                Some(b',') if !opened => {
                    self.scanner.at += 1;
                    self.space();
                }
                Some(_) if opened => {}
                Some(_) => return Err(self.scanner.fault("a comma or the end is expected").into()),
                None => {
                    return Err(self
                        .scanner
                        .fault("the text ends inside a container")
                        .into());
                }
            }
            return if object {
                self.key().map(Some)
            } else {
                Ok(Some(Key::default()))
            };
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.pop() {
            let next = self.nodes.len() as u32;
            let node = &mut self.nodes[open.node as usize];
            node.next = next;
            node.value.end = self.scanner.at as u32;
        }
    }

    fn key(&mut self) -> Result<Key, DocumentError> {
        let string = self.scanner.string()?;
        let span = Span::new(string.start, string.end);
        if let Some(open) = self.open.last_mut() {
            self.canonical &= open
                .last_key
                .is_none_or(|last| last.of(self.text) < span.of(self.text));
            open.last_key = Some(span);
        }
        self.canonical &= !string.escaped || is_canonical_string(span.of(self.text));
        self.space();
        self.scanner.expect(b':', "a colon is expected")?;
        self.space();
        Ok(Key {
            span,
            escaped: string.escaped,
        })
    }
}

fn is_canonical_string(raw: &str) -> bool {
    text::canonical(raw) == raw
}
