//! JSON strings: what is between the quotes.

use std::borrow::Cow;

use crate::scan::plain_end;

/// Unescapes a string. The text must have passed the scanner.
pub fn unescape(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (c, used) =
            escape_sequence(&rest[at..]).unwrap_or(('\u{fffd}', 2.min(rest.len() - at)));
        out.push(c);
        rest = &rest[at + used..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The character an escape sequence at the start of `text` stands for, and the sequence's length.
/// `None` if it is invalid: an unknown letter, bad hex digits, or half of a surrogate pair.
pub(crate) fn escape_sequence(text: &str) -> Option<(char, usize)> {
    let bytes = text.as_bytes();
    let c = match bytes.get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode_sequence(bytes),
        _ => return None,
    };
    Some((c, 2))
}

fn unicode_sequence(bytes: &[u8]) -> Option<(char, usize)> {
    let first = hex4(bytes.get(2..6)?)?;
    if !(0xd800..0xe000).contains(&first) {
        return Some((char::from_u32(first)?, 6));
    }
    if first >= 0xdc00 || bytes.get(6..8)? != b"\\u" {
        return None;
    }
    let second = hex4(bytes.get(8..12)?)?;
    if !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    Some((
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))?,
        12,
    ))
}

fn hex4(digits: &[u8]) -> Option<u32> {
    digits
        .iter()
        .try_fold(0, |value, &d| Some(value << 4 | (d as char).to_digit(16)?))
}

/// Appends a string escaped in the one written form, without quotes: only what JSON demands.
pub fn escape_into(out: &mut String, plain: &str) {
    let mut from = 0;
    loop {
        let at = plain_end(plain.as_bytes(), from);
        out.push_str(&plain[from..at]);
        let Some(&b) = plain.as_bytes().get(at) else {
            return;
        };
        match b {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            _ => {
                out.push_str("\\u00");
                out.extend(
                    [b >> 4, b & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')),
                );
            }
        }
        from = at + 1;
    }
}

/// The one written form of an escaped string.
pub(crate) fn canonical(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    escape_into(&mut out, &unescape(raw));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_agree_with_serde_json() {
        let odd = "a\"b\\c/\u{0}\u{1f}\n\r\t\u{8}\u{c}é\u{2028}\u{1f600}\u{7f}";
        let mut ours = String::from("\"");
        escape_into(&mut ours, odd);
        ours.push('"');
        assert_eq!(ours, serde_json::to_string(odd).unwrap());
        assert_eq!(unescape(&ours[1..ours.len() - 1]), odd);
    }

    #[test]
    fn surrogates_come_in_pairs() {
        assert_eq!(unescape("\\ud83d\\ude00"), "\u{1f600}");
        for half in [
            "\\ud83d",
            "\\ud83dx",
            "\\ude00",
            "\\ud83d\\u0041",
            "\\ud83d\\n",
        ] {
            assert_eq!(escape_sequence(half), None, "{half}");
        }
    }
}
