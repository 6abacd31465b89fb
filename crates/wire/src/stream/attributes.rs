//! DynamoDB JSON to tape: `{"M":{"a":{"N":"1"}}}` becomes the nodes of `{"a":1}`, on the same text.
//!
//! The format that AWS writes, without white space and with the type first, is read six bytes at a time; other
//! valid JSON takes a slower path with the same result. There is no recursion: open containers are on a stack of
//! fixed size.

mod quick;
mod twin;

use antumbra_shadow::scan::{ScannedString, Scanner, SyntaxError};
use antumbra_shadow::tape::{Kind, Node, Span};

use crate::limits;
use quick::{
    MAP, NUMBER, STRING, WINDOW, byte_at, chunk, quick_name, quick_number, quick_text, six_of,
};
use twin::Twin;

/// Appends the nodes of the item that opens at `at` and returns its end. `other` is the root of the other image of the
/// same record, which is probably much the same.
pub(crate) fn decode(
    text: &str,
    at: usize,
    nodes: &mut Vec<Node>,
    other: Option<u32>,
) -> Result<usize, SyntaxError> {
    let twin = other.map(|root| Twin::new(nodes, root));
    let mut decoder = Decoder {
        twin,
        text,
        bytes: text.as_bytes(),
        at,
        nodes,
        open: [0; limits::IMAGE_DEPTH],
        depth: 0,
    };
    decoder.expect(b'{', "an item is expected")?;
    decoder.open(Name::none(at), Kind::Object, at)?;
    decoder.run()
}

/// The type of an attribute value.
#[derive(Clone, Copy)]
enum Tag {
    String,
    Number,
    Binary,
    Bool,
    Null,
    Map,
    List,
    StringSet,
    NumberSet,
    BinarySet,
}

/// A member's name; elements have none.
#[derive(Clone, Copy)]
struct Name {
    span: Span,
    escaped: bool,
}

impl Name {
    /// For a value at this position that has no name.
    fn none(at: usize) -> Name {
        Name {
            span: Span::new(at, at),
            escaped: false,
        }
    }
}

impl From<ScannedString> for Name {
    fn from(string: ScannedString) -> Name {
        Name {
            span: Span::new(string.start, string.end),
            escaped: string.escaped,
        }
    }
}

struct Decoder<'a, 'n> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    nodes: &'n mut Vec<Node>,
    /// Place in the other image, as long as it is known.
    twin: Option<Twin>,
    /// Nodes of the open containers, outermost first.
    open: [u32; limits::IMAGE_DEPTH],
    depth: usize,
}

impl<'a> Decoder<'a, '_> {
    /// Reads to the end of the outermost container, and returns it.
    ///
    /// The loop keeps its position in a local variable, so that it stays in a register; the methods below handle
    /// what it cannot read in one step.
    fn run(&mut self) -> Result<usize, SyntaxError> {
        let bytes = self.bytes;
        let mut at = self.at;
        let mut close = b'}';
        let mut opened = true;
        loop {
            if self.twin.is_some()
                && let Some(behind) = self.copy_common(at)
            {
                at = behind;
                close = self.closing_byte();
                opened = false;
            }
            let mut byte = byte_at(bytes, at);
            if byte <= b' ' {
                (byte, at) = self.space(at);
            }
            if byte == close {
                at += 1;
                self.close(at);
                if self.depth == 0 {
                    return Ok(at);
                }
                if self.twin.is_some() {
                    self.leave();
                }
                if byte_at(bytes, at) == b'}' {
                    at += 1;
                } else {
                    self.at = at;
                    self.end_of_wrapper()?;
                    at = self.at;
                }
                opened = false;
                close = self.closing_byte();
                continue;
            }
            if byte == b',' && !opened {
                at += 1;
            } else if !opened {
                return Err(fault(at, "a comma or the end is expected"));
            }
            let mut name = Name::none(at);
            let mut window = chunk::<WINDOW>(bytes, at);
            // Start of the value in the window.
            let mut value = 0;
            if close == b'}' {
                match window.and_then(quick_name) {
                    Some(length) => {
                        name.span = Span::new(at + 1, at + 1 + length);
                        value = length + 3;
                    }
                    None => {
                        self.at = at;
                        name = self.name()?;
                        at = self.at;
                        window = chunk(bytes, at);
                    }
                }
            }
            opened = false;
            let start = at + value + 6;
            match window.map_or(0, |window| six_of(window, value)) {
                NUMBER => {
                    if let Some(length) = window.and_then(|window| quick_number(window, value)) {
                        let end = start + length;
                        self.push(name, Kind::Number, Span::new(start, end), false);
                        self.follow_scalar();
                        at = end + 2;
                        continue;
                    }
                }
                STRING => {
                    if let Some(end) = quick_text(bytes, start) {
                        self.push(name, Kind::String, Span::new(start, end), false);
                        self.follow_scalar();
                        at = end + 2;
                        continue;
                    }
                }
                MAP if self.depth < limits::IMAGE_DEPTH => {
                    self.open(name, Kind::Object, start - 1)?;
                    if self.twin.is_some() {
                        self.follow(self.nodes.len() - 1, true);
                    }
                    at = start;
                    close = b'}';
                    opened = true;
                    continue;
                }
                _ => {}
            }
            at += value;
            self.at = at;
            let node = self.nodes.len();
            opened = self.any_value(name)?;
            self.follow(node, opened);
            at = self.at;
            close = self.closing_byte();
        }
    }

    #[inline]
    fn follow_scalar(&mut self) {
        if self.twin.is_some() {
            self.follow(self.nodes.len() - 1, false);
        }
    }

    #[inline]
    fn closing_byte(&self) -> u8 {
        let node = self.open[self.depth - 1] as usize;
        match self.nodes[node].kind {
            Kind::Object => b'}',
            _ => b']',
        }
    }

    #[cold]
    fn fault(&self, reason: &'static str) -> SyntaxError {
        fault(self.at, reason)
    }

    /// Skips white space, which AWS does not write, and returns the next byte; 0 at the end.
    #[cold]
    fn space(&self, mut at: usize) -> (u8, usize) {
        while let b' ' | b'\n' | b'\r' | b'\t' = byte_at(self.bytes, at) {
            at += 1;
        }
        (byte_at(self.bytes, at), at)
    }

    fn after_space(&mut self) -> u8 {
        let (byte, at) = self.space(self.at);
        self.at = at;
        byte
    }

    fn expect(&mut self, byte: u8, reason: &'static str) -> Result<(), SyntaxError> {
        if self.after_space() != byte {
            return Err(self.fault(reason));
        }
        self.at += 1;
        Ok(())
    }

    #[inline(never)]
    fn name(&mut self) -> Result<Name, SyntaxError> {
        self.after_space();
        let name = self.text()?;
        self.expect(b':', "a colon is expected")?;
        Ok(name)
    }

    fn text(&mut self) -> Result<Name, SyntaxError> {
        let mut scanner = self.scanner();
        let string = scanner.string()?;
        self.at = scanner.at;
        Ok(string.into())
    }

    fn scanner(&self) -> Scanner<'a> {
        let mut scanner = Scanner::new(self.text);
        scanner.at = self.at;
        scanner
    }

    /// Reads a value of any type, or the start of a container, in any valid format; returns which.
    #[inline(never)]
    fn any_value(&mut self, name: Name) -> Result<bool, SyntaxError> {
        let start = self.at;
        self.expect(b'{', "an attribute value is expected")?;
        self.after_space();
        let tag = self.tag()?;
        self.expect(b':', "a colon is expected")?;
        self.after_space();
        let at = self.at;
        match tag {
            Tag::String | Tag::Binary => self.string(name)?,
            Tag::Number => self.number(name)?,
            Tag::Bool => {
                self.boolean()?;
                self.push(name, Kind::Bool, Span::new(at, self.at), false);
            }
            Tag::Null => {
                self.boolean()?;
                self.push(name, Kind::Null, Span::new(at, at), false);
            }
            Tag::Map => {
                self.expect(b'{', "an object is expected")?;
                self.open(name, Kind::Object, at)?;
                return Ok(true);
            }
            Tag::List => {
                self.expect(b'[', "an array is expected")?;
                self.open(name, Kind::Array, at)?;
                return Ok(true);
            }
            Tag::StringSet | Tag::BinarySet => self.set(name, start, Self::string)?,
            Tag::NumberSet => self.set(name, start, Self::number)?,
        }
        self.end_of_wrapper()?;
        Ok(false)
    }

    fn tag(&mut self) -> Result<Tag, SyntaxError> {
        let at = self.at;
        let tag = self.text()?;
        Ok(match tag.span.of(self.text) {
            "S" => Tag::String,
            "N" => Tag::Number,
            "B" => Tag::Binary,
            "BOOL" => Tag::Bool,
            "NULL" => Tag::Null,
            "M" => Tag::Map,
            "L" => Tag::List,
            "SS" => Tag::StringSet,
            "NS" => Tag::NumberSet,
            "BS" => Tag::BinarySet,
            _ => {
                self.at = at;
                return Err(self.fault("unknown attribute type"));
            }
        })
    }

    fn string(&mut self, name: Name) -> Result<(), SyntaxError> {
        let text = self.text()?;
        self.push(name, Kind::String, text.span, text.escaped);
        Ok(())
    }

    fn number(&mut self, name: Name) -> Result<(), SyntaxError> {
        let mut scanner = self.scanner();
        scanner.expect(b'"', "a number is expected")?;
        let start = scanner.at;
        scanner.number()?;
        let span = Span::new(start, scanner.at);
        scanner.expect(b'"', "a number is expected")?;
        self.at = scanner.at;
        self.push(name, Kind::Number, span, false);
        Ok(())
    }

    fn boolean(&mut self) -> Result<(), SyntaxError> {
        let mut scanner = self.scanner();
        match scanner.peek() {
            Some(b't') => scanner.word("true")?,
            _ => scanner.word("false")?,
        }
        self.at = scanner.at;
        Ok(())
    }

    /// A set's node spans its type too: `["1"]` alone does not say whether it holds numbers, and
    /// equal texts must be equal values.
    fn set(
        &mut self,
        name: Name,
        start: usize,
        element: fn(&mut Self, Name) -> Result<(), SyntaxError>,
    ) -> Result<(), SyntaxError> {
        self.expect(b'[', "an array is expected")?;
        self.open(name, Kind::Array, start)?;
        if self.after_space() == b']' {
            self.at += 1;
        } else {
            loop {
                self.after_space();
                element(self, Name::none(self.at))?;
                match self.after_space() {
                    b',' => self.at += 1,
                    _ => break self.expect(b']', "a comma or the end is expected")?,
                }
            }
        }
        self.close(self.at);
        Ok(())
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
    fn open(&mut self, name: Name, kind: Kind, at: usize) -> Result<(), SyntaxError> {
        let Some(slot) = self.open.get_mut(self.depth) else {
            return Err(self.fault("nested too deeply"));
        };
        *slot = self.nodes.len() as u32;
        self.depth += 1;
        self.push(name, kind, Span::new(at, at), false);
        Ok(())
    }

    #[inline]
    fn close(&mut self, end: usize) {
        self.depth -= 1;
        let next = self.nodes.len() as u32;
        let node = &mut self.nodes[self.open[self.depth] as usize];
        node.next = next;
        node.value.end = end as u32;
    }

    fn end_of_wrapper(&mut self) -> Result<(), SyntaxError> {
        self.expect(b'}', "one type per attribute value is expected")
    }
}

#[cold]
fn fault(offset: usize, reason: &'static str) -> SyntaxError {
    SyntaxError { offset, reason }
}
