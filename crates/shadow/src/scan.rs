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

/// Where and why a text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not JSON at byte {offset}: {reason}")]
pub struct SyntaxError {
    /// Bytes before the fault.
    pub offset: usize,
    /// What was expected or found.
    pub reason: &'static str,
}

/// Where a string's inside ends, and whether it holds escapes.
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
            while let Some(b) = self.peek()
                && !STOPS[b as usize]
            {
                self.at += 1;
            }
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
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
    }
}
