//! Cursors: sealed cursors open, changed ones do not, and each content has one encoding.
//!
//! The input is used as a cursor, and as a list of texts to seal, one per line.

use antumbra_service::paging::{Cursor, open_cursor, seal_cursor};

/// Maximum size of the texts to seal.
const TEXTS_BYTES: usize = 4 * 1024;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    foreign(text);
    let parts: Vec<&str> = text.split('\n').collect();
    if text.len() <= TEXTS_BYTES && parts.len() <= TEXTS_BYTES / 4 {
        sealed(&parts);
    }
}

/// A cursor that opens is the only encoding of its content.
fn foreign(text: &str) {
    let cursor = Cursor(text.to_owned());
    if let Ok(parts) = open_cursor(&cursor) {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        assert_eq!(seal_cursor(&parts), cursor);
    }
}

fn sealed(parts: &[&str]) {
    let cursor = seal_cursor(parts);
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    assert!(
        cursor.0.bytes().all(safe),
        "{} would need escapes in a URL",
        cursor.0
    );
    assert_eq!(open_cursor(&cursor).unwrap(), parts);
    // One digit changed, removed or inserted, at a position derived from the texts.
    let at = parts.iter().map(|part| part.len() * 7 + 3).sum::<usize>() % cursor.0.len();
    let digit = if cursor.0.as_bytes()[at] == b'0' {
        "1"
    } else {
        "0"
    };
    for other in [digit, "", "00", "A", "é"] {
        let mut changed = cursor.0.clone();
        changed.replace_range(at..=at, other);
        let opened = open_cursor(&Cursor(changed.clone()));
        assert_eq!(opened.is_ok(), changed == cursor.0, "{at} {other}");
    }
}
