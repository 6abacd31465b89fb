//! The scanner: finds where tokens of a JSON text end, and nothing else.
//!
//! Works on bytes of a text that is known to be UTF-8; every token ends at an ASCII byte.

use crate::text;

/// A cursor over a JSON text.
#[derive(Debug, Clone)]
pub struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// The byte looked at next.
    pub at: usize,
}

/// Position and reason of a syntax error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not JSON at byte {offset}: {reason}")]
pub struct SyntaxError {
    /// Bytes before the fault.
    pub offset: usize,
    /// The expectation, or the unexpected text.
    pub reason: &'static str,
}

/// End of a string's content, and whether it contains escapes.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct ScannedString {
    pub start: usize,
    pub end: usize,
    pub escaped: bool,
}

/// Bytes that end the plain run inside a string: the quote, the backslash, control characters.
const STOPS: [bool; 256] = {
    let mut stops = [false; 256];
    let mut b = 0;
    while b < 32 {
        stops[b] = true;
        b += 1;
    }
    stops[b'"' as usize] = true;
    stops[b'\\' as usize] = true;
    stops
};

impl<'a> Scanner<'a> {
    /// At the start of a text.
    pub fn new(text: &'a str) -> Scanner<'a> {
        Scanner {
            text,
            bytes: text.as_bytes(),
            at: 0,
        }
    }

    /// The byte looked at, if any is left.
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// A fault at the byte looked at.
    pub fn fault(&self, reason: &'static str) -> SyntaxError {
        SyntaxError {
            offset: self.at,
            reason,
        }
    }

    /// Steps over white space and says whether there was any.
    pub fn skip_space(&mut self) -> bool {
        let from = self.at;
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
        self.at > from
    }

    /// Steps over one given byte.
    pub fn expect(&mut self, byte: u8, reason: &'static str) -> Result<(), SyntaxError> {
        if self.peek() != Some(byte) {
            return Err(self.fault(reason));
        }
        self.at += 1;
        Ok(())
    }

    /// Steps over a word such as `true`.
    pub fn word(&mut self, word: &str) -> Result<(), SyntaxError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.fault("unknown word"));
        }
        self.at += word.len();
        Ok(())
    }

    /// Steps over a string, quotes included.
    pub fn string(&mut self) -> Result<ScannedString, SyntaxError> {
        self.expect(b'"', "a string is expected")?;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at = plain_end(self.bytes, self.at);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(ScannedString {
                        start,
                        end: self.at - 1,
                        escaped,
                    });
                }
                Some(b'\\') => {
                    escaped = true;
                    let (_, used) = text::escape_sequence(&self.text[self.at..])
                        .ok_or_else(|| self.fault("bad escape sequence"))?;
                    self.at += used;
                }
                Some(_) => return Err(self.fault("control character in a string")),
                None => return Err(self.fault("the text ends inside a string")),
            }
        }
    }

    /// Steps over a number by JSON's grammar and returns its text.
    pub fn number(&mut self) -> Result<&'a str, SyntaxError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.fault("a value is expected")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Ok(&self.text[start..self.at])
    }

    fn some_digits(&mut self) -> Result<(), SyntaxError> {
        if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.fault("a digit is expected"));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        self.at = digits_end(self.bytes, self.at);
    }
}

/// One byte eight times.
const fn spread(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

const LOW: u64 = spread(0x01);
const HIGH: u64 = spread(0x80);

/// Eight bytes, the first of them lowest; `None` near the end of the text.
#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let chunk = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*chunk))
}

/// Returns the end of the plain run of a string that starts at `at`: a quote, a backslash, a control
/// character, or the end of the text. Eight bytes a step.
#[inline]
pub(crate) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = word(bytes, at) {
        // A byte below n, or equal to one: subtracting borrows from its high bit. A borrow can also
        // mark the byte above a true match, never one below it, and only the lowest mark counts.
        let control = word.wrapping_sub(spread(0x20));
        let quote = (word ^ spread(b'"')).wrapping_sub(LOW);
        let backslash = (word ^ spread(b'\\')).wrapping_sub(LOW);
        // Each xor leaves the high bit of its byte as it was, so one mask serves all three.
        let marks = (control | quote | backslash) & !word & HIGH;
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(b) = bytes.get(at)
        && !STOPS[*b as usize]
    {
        at += 1;
    }
    at
}

/// Returns the end of the digits that start at `at`, eight bytes a step.
#[inline]
fn digits_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = word(bytes, at) {
        // Digits become 0 to 9; adding 0x76 carries everything else into the high bit. Bytes below
        // the first such byte are digits and carry nothing into it.
        let offset = word ^ spread(b'0');
        let marks = (offset.wrapping_add(spread(0x76)) | offset) & HIGH;
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte at every place of a word, between bytes that could borrow from or carry into it.
    #[test]
    fn words_agree_with_bytes() {
        let around = [
            b'a', b'"', b'\\', b'0', b'9', b'/', b':', b'!', 0x1f, 0x20, 0x7f, 0x80, 0xff,
        ];
        for byte in 0..=255 {
            for place in 0..8 {
                for before in [b'a', b'5', b'!', 0x80, 0xff] {
                    for after in around {
                        let mut bytes = [before; 24];
                        bytes[place] = byte;
                        bytes[place + 1..].fill(after);
                        let plain = bytes.iter().position(|b| STOPS[*b as usize]).unwrap_or(24);
                        assert_eq!(plain_end(&bytes, 0), plain, "{bytes:?}");
                        let digits = bytes.iter().position(|b| !b.is_ascii_digit()).unwrap_or(24);
                        assert_eq!(digits_end(&bytes, 0), digits, "{bytes:?}");
                    }
                }
            }
        }
    }
}
