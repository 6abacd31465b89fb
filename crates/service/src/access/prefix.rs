//! Prefixes of ids in grants.

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Characters that are percent-encoded. The others are allowed in the scopes of every identity provider.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'#')
    .remove(b':')
    .remove(b'.')
    .remove(b'_')
    .remove(b'-');

/// Ids that a grant is limited to: those below a text that ends with `#` or `:`, or one whole id.
///
/// ```
/// use antumbra_service::access::Prefix;
/// let house: Prefix = "House%20A#".parse()?;
/// assert!(house.covers("House A#Basement") && !house.covers("House AB#Basement"));
/// let one: Prefix = "a#1".parse()?;
/// assert!(one.covers("a#1") && !one.covers("a#10"));
/// # Ok::<(), antumbra_service::access::InvalidPrefix>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPrefix {
    #[error("the prefix is empty; leave out its colon for a grant without a prefix")]
    Empty,
    #[error("the prefix may not hold {0:?}; percent-encode it")]
    Character(char),
    #[error("a % in the prefix is not followed by two hexadecimal digits")]
    Escape,
    #[error("the prefix is not UTF-8")]
    NotUtf8,
}

impl Prefix {
    /// Takes a text that is not encoded; `None` if it is empty.
    pub fn new(text: impl Into<String>) -> Option<Prefix> {
        Some(Prefix(text.into())).filter(|prefix| !prefix.0.is_empty())
    }

    /// Returns the text, not encoded.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the prefix covers ids below it, and not only the id that it is.
    pub fn is_open(&self) -> bool {
        self.0.ends_with(['#', ':'])
    }

    pub fn covers(&self, id: &str) -> bool {
        match self.is_open() {
            true => id.starts_with(&self.0),
            false => id == self.0,
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        utf8_percent_encode(&self.0, ENCODED).fmt(f)
    }
}

impl FromStr for Prefix {
    type Err = InvalidPrefix;

    fn from_str(text: &str) -> Result<Prefix, InvalidPrefix> {
        let bytes = text.as_bytes();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "#:._-%".contains(c);
        if let Some(character) = text.chars().find(|c| !is_plain(*c)) {
            return Err(InvalidPrefix::Character(character));
        }
        let escaped = |at: usize| {
            let digits = bytes.get(at + 1..at + 3);
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        };
        if (0..bytes.len()).any(|at| bytes[at] == b'%' && !escaped(at)) {
            return Err(InvalidPrefix::Escape);
        }
        let decoded = percent_decode_str(text).decode_utf8();
        let decoded = decoded.map_err(|_| InvalidPrefix::NotUtf8)?;
        Prefix::new(decoded).ok_or(InvalidPrefix::Empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_encoded_as_scopes_allow() {
        for (encoded, text) in [
            ("a#1", "a#1"),
            ("House%20A#", "House A#"),
            ("Pozna%C5%84:A._-", "Poznań:A._-"),
            ("a%2Fb%25c%22", "a/b%c\""),
            ("%2A", "*"),
        ] {
            let prefix: Prefix = encoded.parse().unwrap();
            assert_eq!(prefix.as_str(), text);
            assert_eq!(prefix.to_string(), encoded);
        }
        // Any spelling of the same text is the same prefix.
        assert_eq!("%61%23".parse::<Prefix>(), "a#".parse());
        assert_eq!("%c5%84".parse::<Prefix>(), "%C5%84".parse());
        // It is decoded once.
        assert_eq!("a%2523".parse::<Prefix>().unwrap().as_str(), "a%23");
    }

    #[test]
    fn other_texts_are_not_prefixes() {
        for (text, error) in [
            ("", InvalidPrefix::Empty),
            ("a b", InvalidPrefix::Character(' ')),
            ("a*", InvalidPrefix::Character('*')),
            ("ń", InvalidPrefix::Character('ń')),
            ("a/b", InvalidPrefix::Character('/')),
            ("%", InvalidPrefix::Escape),
            ("a%2", InvalidPrefix::Escape),
            ("%zz", InvalidPrefix::Escape),
            ("%+1", InvalidPrefix::Character('+')),
            ("%C5", InvalidPrefix::NotUtf8),
            ("%C0%A3", InvalidPrefix::NotUtf8),
        ] {
            assert_eq!(text.parse::<Prefix>(), Err(error), "{text}");
        }
    }

    #[test]
    fn a_prefix_ends_at_a_separator_or_is_a_whole_id() {
        let covers = |prefix: &str, id: &str| prefix.parse::<Prefix>().unwrap().covers(id);
        assert!(covers("a#", "a#1") && covers("a#", "a#") && covers("a:", "a:b:c"));
        assert!(!covers("a#", "a") && !covers("a#", "a:1") && !covers("a#", "b#a#"));
        assert!(covers("a", "a") && !covers("a", "a#1") && !covers("a", "ab") && !covers("a", ""));
        assert!(!covers("a", "A"));
    }
}
