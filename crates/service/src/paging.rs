//! Pages and cursors of listings. A cursor holds a few texts and a checksum, encoded for URLs.
//!
//! The checksum detects damage and is not a secret. A store still has to check that a cursor belongs to the listing
//! it is used with.

use crate::fnv::fnv1a;
use crate::store::StoreError;

/// Start of the next page. Opaque: only the store creates and reads it; a damaged cursor is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cursor(pub String);

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// May be short or even empty before the last page.
    pub rows: Vec<T>,
    /// Cursor of the next page; `None` after the last.
    pub next: Option<Cursor>,
}

/// Largest page.
pub const PAGE_LIMIT: usize = 1000;

/// Checks the size of a page.
pub fn page_limit(limit: usize) -> Result<usize, StoreError> {
    match limit {
        1..=PAGE_LIMIT => Ok(limit),
        _ => Err(StoreError::Invalid(format!(
            "a page holds 1 to {PAGE_LIMIT} entries, not {limit}"
        ))),
    }
}

/// Error of a text that is not a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of a listing")]
pub struct InvalidCursor;

impl From<InvalidCursor> for StoreError {
    fn from(invalid: InvalidCursor) -> StoreError {
        StoreError::Invalid(invalid.to_string())
    }
}

/// Bytes of the checksum.
const SEAL_BYTES: usize = 8;
/// Longest cursor: two keys of full length and some more.
const CURSOR_CHARS: usize = 16 * 1024;

/// Encodes texts, of at most 65,535 bytes each, as a cursor.
///
/// ```
/// use antumbra_service::paging::{open_cursor, seal_cursor};
/// let cursor = seal_cursor(&["lamps", "DS#lamp-7"]);
/// assert_eq!(open_cursor(&cursor).unwrap(), ["lamps", "DS#lamp-7"]);
/// ```
pub fn seal_cursor(parts: &[&str]) -> Cursor {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u16).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    let seal = fnv1a(&bytes).to_be_bytes();
    bytes.extend_from_slice(&seal);
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    Cursor(text)
}

/// Decodes a cursor.
pub fn open_cursor(cursor: &Cursor) -> Result<Vec<String>, InvalidCursor> {
    open(&cursor.0).ok_or(InvalidCursor)
}

fn open(text: &str) -> Option<Vec<String>> {
    if text.len() > CURSOR_CHARS || !text.len().is_multiple_of(2) {
        return None;
    }
    let bytes: Vec<u8> = text
        .as_bytes()
        .chunks_exact(2)
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect::<Option<_>>()?;
    let (mut rest, seal) = bytes.split_at_checked(bytes.len().checked_sub(SEAL_BYTES)?)?;
    if fnv1a(rest).to_be_bytes() != seal {
        return None;
    }
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let (length, behind) = rest.split_at_checked(2)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let (part, behind) = behind.split_at_checked(length)?;
        parts.push(std::str::from_utf8(part).ok()?.to_owned());
        rest = behind;
    }
    Some(parts)
}

/// Parses a lower-case hexadecimal digit, so that a cursor has one spelling.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(seal_cursor(&["a", "bc"]), seal_cursor(&["ab", "c"]));
        for parts in [&[][..], &[""], &["", "#", "å/ä?&="]] {
            assert_eq!(open_cursor(&seal_cursor(parts)).unwrap(), parts);
        }
    }

    #[test]
    fn a_changed_cursor_is_no_cursor() {
        let Cursor(text) = seal_cursor(&["lamps", "DS#lamp-7"]);
        for at in 0..text.len() {
            for other in ["0", "f", "A", "g", "", "00"] {
                let mut changed = text.clone();
                changed.replace_range(at..=at, other);
                let opened = open_cursor(&Cursor(changed.clone()));
                assert_eq!(opened.is_ok(), changed == text, "{changed}");
            }
            assert!(open_cursor(&Cursor(text[..at].to_owned())).is_err());
        }
    }
}
