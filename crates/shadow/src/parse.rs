//! Parses a JSON text into a tape of nodes ([`crate::tape`]), in one pass and without recursion.
//!
//! The pass also detects whether the text is in canonical form. [`crate::document`] then uses the text as it
//! is; otherwise it writes the text again in canonical form. Short names, strings and numbers take one step each
//! ([`quick`]); the scanner reads everything else, and finds all errors.

mod quick;

use crate::blocks::Windows;
use crate::document::DocumentError;
use crate::limits;
use crate::number;
use crate::scan::Scanner;
use crate::tape::{Kind, Node, Span};
use crate::text;
use quick::{quick_name, quick_number, quick_string};

pub(crate) struct Parsed {
    pub(crate) nodes: Vec<Node>,
    /// `true` if the text is in canonical form.
    pub(crate) canonical: bool,
}

pub(crate) fn parse(text: &str) -> Result<Parsed, DocumentError> {
    if text.len() > limits::TEXT_BYTES {
        return Err(DocumentError::TooLong {
            bytes: text.len(),
            limit: limits::TEXT_BYTES,
        });
    }
    let mut parser = Parser {
        text,
        nodes: Vec::with_capacity(text.len() / TEXT_PER_NODE + 1),
        parents: Vec::new(),
        depth: 1,
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

/// Bytes of text that a node takes in documents of short names and values.
const TEXT_PER_NODE: usize = 8;

struct Parser<'a> {
    text: &'a str,
    nodes: Vec<Node>,
    /// The containers around the innermost one, and [`OUTSIDE`] around them.
    parents: Vec<Container>,
    /// Depth of the deepest value so far.
    depth: usize,
    /// `true` if the text is in canonical form so far.
    canonical: bool,
}

/// An object or array whose closing bracket was not read yet.
#[derive(Clone, Copy)]
struct Container {
    /// Index of its node.
    node: u32,
    closing: u8,
    /// Name of the last member, and its [`quick::head`]. In canonical form, names are in ascending order.
    last_name: Span,
    last_head: u64,
}

/// Place of the root.
const OUTSIDE: Container = Container {
    node: 0,
    closing: 0,
    last_name: Span { start: 0, end: 0 },
    last_head: 0,
};

/// The name of a member; empty for elements of arrays and for the root.
#[derive(Clone, Copy)]
struct Name {
    span: Span,
    escaped: bool,
}

impl<'a> Parser<'a> {
    /// The loop keeps its position in a local variable, so that it stays in a register; the methods below handle what
    /// it cannot read in one step.
    fn run(&mut self) -> Result<(), DocumentError> {
        let windows = Windows::new(self.text.as_bytes());
        let mut at = self.space(0);
        let mut inner = OUTSIDE;
        loop {
            let mut name = Name {
                span: Span::new(at, at),
                escaped: false,
            };
            if inner.closing == b'}' {
                let window = windows.at(at);
                let head;
                if let Some(length) = quick_name(window) {
                    name.span = Span::new(at + 1, at + 1 + length);
                    head = quick::head(window, length);
                    at += length + 3;
                } else {
                    (name, at) = self.any_name(at)?;
                    head = quick::head(window, name.span.length());
                }
                if inner.last_head >= head {
                    self.check_order(inner, name.span, head);
                }
                inner.last_name = name.span;
                inner.last_head = head;
                if windows.byte(at) <= b' ' {
                    at = self.space(at);
                }
            }
            // A scalar, or the start of a container.
            let window = windows.at(at);
            match window[0] {
                opening @ (b'{' | b'[') => {
                    self.parents.push(inner);
                    inner = self.open(name, opening, at);
                    at += 1;
                    let mut byte = windows.byte(at);
                    if byte <= b' ' {
                        (byte, at) = self.next_byte(at)?;
                    }
                    if byte != inner.closing {
                        self.depth = self.depth.max(self.parents.len() + 1);
                        continue;
                    }
                }
                b'"' => match quick_string(&windows, at + 1) {
                    Some(end) => {
                        self.push(name, Kind::String, Span::new(at + 1, end), false);
                        at = end + 1;
                    }
                    None => at = self.scalar(name, at)?,
                },
                _ => match quick_number(window) {
                    Some(length) => {
                        self.push(name, Kind::Number, Span::new(at, at + length), false);
                        at += length;
                    }
                    None => at = self.scalar(name, at)?,
                },
            }
            // The ends of containers, and a comma.
            loop {
                if inner.closing == OUTSIDE.closing {
                    return self.end(at);
                }
                let mut byte = windows.byte(at);
                if byte <= b' ' {
                    (byte, at) = self.next_byte(at)?;
                }
                at += 1;
                if byte == b',' {
                    break;
                }
                if byte != inner.closing {
                    return Err(self.fault(at - 1, "a comma or the end is expected"));
                }
                self.close(inner, at);
                inner = self.parents.pop().unwrap_or(OUTSIDE);
            }
            if windows.byte(at) <= b' ' {
                at = self.space(at);
            }
        }
    }

    #[inline]
    fn push(&mut self, name: Name, kind: Kind, value: Span, value_escaped: bool) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node {
            key: name.span,
            value,
            next,
            kind,
            key_escaped: name.escaped,
            value_escaped,
        });
    }

    #[inline]
    fn open(&mut self, name: Name, opening: u8, at: usize) -> Container {
        let node = self.nodes.len() as u32;
        let (kind, closing) = match opening {
            b'{' => (Kind::Object, b'}'),
            _ => (Kind::Array, b']'),
        };
        self.push(name, kind, Span::new(at, at), false);
        Container {
            node,
            closing,
            ..OUTSIDE
        }
    }

    /// Completes the node of a container, now that its end is known.
    #[inline]
    fn close(&mut self, container: Container, end: usize) {
        let next = self.nodes.len() as u32;
        let node = &mut self.nodes[container.node as usize];
        node.next = next;
        node.value.end = end as u32;
    }

    /// Compares a name with the one before it, unless their first bytes have shown the order.
    #[inline(never)]
    fn check_order(&mut self, container: Container, name: Span, head: u64) {
        let first = self.nodes.len() as u32 == container.node + 1;
        let in_order = container.last_head == head
            && container.last_name.bytes_of(self.text) < name.bytes_of(self.text);
        self.canonical &= first || in_order;
    }

    /// Reads any name, and the colon after it. Returns it with the position after the colon.
    #[inline(never)]
    fn any_name(&mut self, at: usize) -> Result<(Name, usize), DocumentError> {
        let mut scanner = self.scanner(at);
        let string = scanner.string()?;
        let span = Span::new(string.start, string.end);
        self.canonical &= !string.escaped || is_canonical_string(span.of(self.text));
        self.canonical &= !scanner.skip_space();
        scanner.expect(b':', "a colon is expected")?;
        let name = Name {
            span,
            escaped: string.escaped,
        };
        Ok((name, scanner.at))
    }

    /// Reads any scalar. Returns its end.
    #[inline(never)]
    fn scalar(&mut self, name: Name, at: usize) -> Result<usize, DocumentError> {
        let mut scanner = self.scanner(at);
        let mut value_escaped = false;
        let mut string_span = None;
        let kind = match scanner.peek() {
            Some(b'"') => {
                let string = scanner.string()?;
                value_escaped = string.escaped;
                let span = Span::new(string.start, string.end);
                self.canonical &= !value_escaped || is_canonical_string(span.of(self.text));
                string_span = Some(span);
                Kind::String
            }
            Some(b't') => scanner.word("true").map(|()| Kind::Bool)?,
            Some(b'f') => scanner.word("false").map(|()| Kind::Bool)?,
            Some(b'n') => scanner.word("null").map(|()| Kind::Null)?,
            _ => {
                let number = scanner.number()?;
                if !number::is_plainly_canonical(number.as_bytes()) {
                    let canonical = number::canonical(number)
                        .map_err(|source| DocumentError::Number { offset: at, source })?;
                    self.canonical &= canonical == number;
                }
                Kind::Number
            }
        };
        let value = string_span.unwrap_or(Span::new(at, scanner.at));
        self.push(name, kind, value, value_escaped);
        Ok(scanner.at)
    }

    /// Skips white space, which canonical form does not have.
    #[inline(never)]
    fn space(&mut self, at: usize) -> usize {
        let mut scanner = self.scanner(at);
        self.canonical &= !scanner.skip_space();
        scanner.at
    }

    /// Skips white space in a container, and returns the byte after it with its position.
    #[inline(never)]
    fn next_byte(&mut self, at: usize) -> Result<(u8, usize), DocumentError> {
        let at = self.space(at);
        match self.text.as_bytes().get(at) {
            Some(byte) => Ok((*byte, at)),
            None => Err(self.fault(at, "the text ends inside a container")),
        }
    }

    /// Checks that nothing follows the root.
    fn end(&mut self, at: usize) -> Result<(), DocumentError> {
        let at = self.space(at);
        match at == self.text.len() {
            true => Ok(()),
            false => Err(self.fault(at, "text after the end")),
        }
    }

    fn scanner(&self, at: usize) -> Scanner<'a> {
        let mut scanner = Scanner::new(self.text);
        scanner.at = at;
        scanner
    }

    #[cold]
    fn fault(&self, at: usize, reason: &'static str) -> DocumentError {
        self.scanner(at).fault(reason).into()
    }
}

fn is_canonical_string(raw: &str) -> bool {
    text::canonical(raw) == raw
}
