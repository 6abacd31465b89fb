//! JSON Pointers (RFC 6901).

use std::borrow::Cow;

/// Appends one more member name to a pointer.
pub fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    if !key.bytes().any(|b| matches!(b, b'~' | b'/')) {
        return pointer.push_str(key);
    }
    for c in key.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// Appends one more array position to a pointer.
pub fn push_index(pointer: &mut String, index: usize) {
    use std::fmt::Write;
    // Writing to a String cannot fail.
    let _ = write!(pointer, "/{index}");
}

/// Unescapes one token of a JSON Pointer.
pub fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') {
        Cow::Owned(token.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(token)
    }
}

/// The array position one part of a pointer names: digits without a leading zero.
pub fn index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|b| b.is_ascii_digit());
    if !digits || token.is_empty() || (token.len() > 1 && token.starts_with('0')) {
        return None;
    }
    token.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        let mut pointer = String::new();
        push_key(&mut pointer, "a/b");
        push_key(&mut pointer, "m~n");
        push_key(&mut pointer, "");
        push_index(&mut pointer, 10);
        assert_eq!(pointer, "/a~1b/m~0n//10");
        assert_eq!(unescape("~01"), "~1");
        assert_eq!(index("0"), Some(0));
        assert_eq!(index("01"), None);
        assert_eq!(index("-"), None);
    }
}
