//! Pages and cursors of listings. A cursor holds a few texts and a checksum, encoded for URLs.
//!
//! The checksum detects damage and is not a secret. A store still has to check that a cursor belongs to the listing
//! it is used with.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::fnv::fnv1a;
use crate::store::StoreError;

/// Start of the next page. Opaque: only the store creates and reads it; a malformed cursor is rejected.
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

impl<T> Page<T> {
    /// Converts the rows, or fails with the first that cannot be converted.
    pub fn try_map<U, E>(self, row: impl FnMut(T) -> Result<U, E>) -> Result<Page<U>, E> {
        Ok(Page {
            rows: self.rows.into_iter().map(row).collect::<Result<_, E>>()?,
            next: self.next,
        })
    }

    /// Converts the rows and leaves out those that cannot be converted.
    pub fn filter_map<U>(self, row: impl FnMut(T) -> Option<U>) -> Page<U> {
        Page {
            rows: self.rows.into_iter().filter_map(row).collect(),
            next: self.next,
        }
    }
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

/// Error of a malformed cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor is malformed")]
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

/// Encodes texts as a cursor.
pub fn seal_cursor(parts: &[&str]) -> Cursor {
    let mut bytes = serde_json::json!(parts).to_string().into_bytes();
    bytes.extend(fnv1a(&bytes).to_be_bytes());
    Cursor(URL_SAFE_NO_PAD.encode(bytes))
}

/// Decodes a cursor. Each content has one spelling.
pub fn open_cursor(cursor: &Cursor) -> Result<Vec<String>, InvalidCursor> {
    let bytes = match cursor.0.len() {
        ..=CURSOR_CHARS => URL_SAFE_NO_PAD.decode(&cursor.0).unwrap_or_default(),
        _ => Vec::new(),
    };
    let parts = &bytes[..bytes.len().saturating_sub(SEAL_BYTES)];
    let parts: Vec<String> = serde_json::from_slice(parts).map_err(|_| InvalidCursor)?;
    let texts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match seal_cursor(&texts) == *cursor {
        true => Ok(parts),
        false => Err(InvalidCursor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(seal_cursor(&["a", "bc"]), seal_cursor(&["ab", "c"]));
        for parts in [&[][..], &[""], &["", "#", "å/ä?&=\n\""]] {
            assert_eq!(open_cursor(&seal_cursor(parts)).unwrap(), parts);
        }
    }

    #[test]
    fn a_changed_cursor_is_malformed() {
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
