//! DynamoDB JSON to tape: `{"M":{"a":{"N":"1"}}}` becomes the nodes of `{"a":1}`, on the same text.
//!
//! The way AWS writes it, without white space and with the type first, is read six bytes at a time;
//! anything else that is JSON takes a slower road to the same place. No recursion: what is open
//! lies on a stack of a fixed size.

use antumbra_shadow::scan::{ScannedString, Scanner, SyntaxError};
use antumbra_shadow::tape::{Kind, Node, Span};

use super::blocks::{LANE, no_digits, string_stops};
use crate::limits;

/// Appends the nodes of the item that opens at `at`.
pub(crate) fn decode(text: &str, at: usize, nodes: &mut Vec<Node>) -> Result<(), SyntaxError> {
    let mut decoder = Decoder {
        text,
        bytes: text.as_bytes(),
        at,
        nodes,
        open: [0; limits::IMAGE_DEPTH],
        depth: 0,
    };
    decoder.expect(b'{', "an item is expected")?;
    decoder.open(Name::default(), Kind::Object, at)?;
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

/// How far ahead the quick way looks: more than a short name, a type and a short number take.
const WINDOW: usize = 64;

/// The first six bytes of a value with its type, as AWS writes it.
const fn six(bytes: &[u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = *bytes;
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

#[inline]
fn six_of(window: &[u8; WINDOW], at: usize) -> u64 {
    u64::from_le_bytes(*part(window, at)) & 0xffff_ffff_ffff
}

const NUMBER: u64 = six(b"{\"N\":\"");
const STRING: u64 = six(b"{\"S\":\"");
const MAP: u64 = six(b"{\"M\":{");

/// A member's name; elements have none.
#[derive(Clone, Copy, Default)]
struct Name {
    span: Span,
    escaped: bool,
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
    /// The byte looked at next.
    at: usize,
    nodes: &'n mut Vec<Node>,
    /// The nodes of the containers that are open, outermost first.
    open: [u32; limits::IMAGE_DEPTH],
    depth: usize,
}

impl<'a> Decoder<'a, '_> {
    /// Reads to the end of the outermost container.
    ///
    /// The loop keeps its place to itself, where the machine can hold it in a register; what it does
    /// not read at one go it leaves, untouched, to the methods below.
    fn run(&mut self) -> Result<(), SyntaxError> {
        let bytes = self.bytes;
        let mut at = self.at;
        let mut close = b'}';
        let mut opened = true;
        loop {
            let mut byte = byte_at(bytes, at);
            if byte <= b' ' {
                (byte, at) = self.space(at);
            }
            if byte == close {
                at += 1;
                self.close(at);
                if self.depth == 0 {
                    return Ok(());
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
            let mut name = Name::default();
            let mut window = chunk::<WINDOW>(bytes, at);
            // Where in the window the value starts.
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
                        at = end + 2;
                        continue;
                    }
                }
                STRING => {
                    if let Some(end) = quick_text(bytes, start) {
                        self.push(name, Kind::String, Span::new(start, end), false);
                        at = end + 2;
                        continue;
                    }
                }
                MAP if self.depth < limits::IMAGE_DEPTH => {
                    self.open(name, Kind::Object, start - 1)?;
                    at = start;
                    close = b'}';
                    opened = true;
                    continue;
                }
                _ => {}
            }
            at += value;
            self.at = at;
            opened = self.any_value(name)?;
            at = self.at;
            close = self.closing_byte();
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

    /// Steps over white space, which AWS does not write, and looks at the next byte; 0 at the end.
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

    /// Reads a value of any type, or the opening of a container, however it is written; says which.
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
                element(self, Name::default())?;
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

#[inline]
fn byte_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// The next bytes from an offset on, if there are as many.
#[inline]
fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

/// A part of a window. All places asked for lie in its first half; the mask only shows that to the
/// compiler, which then checks nothing.
#[inline]
fn part<const N: usize>(window: &[u8; WINDOW], at: usize) -> &[u8; N] {
    let rest = &window[at & (WINDOW / 2 - 1)..];
    rest.first_chunk().unwrap_or(&[0; N])
}

/// The length of a short plain name in quotes at the start of a window, with a colon behind it.
#[inline]
fn quick_name(window: &[u8; WINDOW]) -> Option<usize> {
    let length = string_stops(part(window, 1)).trailing_zeros() as usize;
    if length >= LANE || window[0] != b'"' || part(window, length + 1) != b"\":" {
        return None;
    }
    Some(length)
}

/// The closing quote of a plain string that starts at `from`, if the value ends right behind it.
#[inline]
fn quick_text(bytes: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let stops = string_stops(chunk(bytes, from)?);
        if stops != 0 {
            let end = from + stops.trailing_zeros() as usize;
            return (chunk(bytes, end) == Some(b"\"}")).then_some(end);
        }
        from += LANE;
    }
}

/// The length of the number in the value at that place of a window, if it is digits with at most one
/// point between them, short, and the value ends right behind it.
#[inline]
fn quick_number(window: &[u8; WINDOW], value: usize) -> Option<usize> {
    let text: &[u8; LANE + 2] = part(window, value + 6);
    let sign = usize::from(text[0] == b'-');
    let stops = no_digits(text.first_chunk()?) >> sign;
    let whole = stops.trailing_zeros() as usize;
    // Digits, and no zero before others.
    if whole == 0 || (whole > 1 && text[sign] == b'0') {
        return None;
    }
    let mut length = sign + whole;
    if text[length & (LANE - 1)] == b'.' {
        let fraction = (stops >> (whole + 1)).trailing_zeros() as usize;
        if fraction == 0 {
            return None;
        }
        length += 1 + fraction;
    }
    if length >= LANE || text[length & (LANE - 1)..].first_chunk() != Some(b"\"}") {
        return None;
    }
    Some(length)
}
