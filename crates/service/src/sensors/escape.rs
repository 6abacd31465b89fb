//! The codec for texts that become parts of keys.
//!
//! Parts are joined with `#`, so `#` in a part is written `%23`. Every character that sorts before `#`, such as
//! space, and `%` itself are escaped too. A part therefore sorts before every longer part that starts with it
//! (`A` before `A 2`), and no part can be read as two.

/// Separator of the parts of a key.
pub const SEPARATOR: char = '#';

/// Escapes a text for use as part of a key.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c <= SEPARATOR || c == '%' || c == '\u{7f}' {
            out.push_str(&format!("%{:02X}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns the text that was escaped; `None` for a text that [`escape`] never writes.
pub fn unescape(part: &str) -> Option<String> {
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 3)?;
        out.push(char::from(u8::from_str_radix(code, 16).ok()?));
        rest = &rest[at + 3..];
    }
    out.push_str(rest);
    (escape(&out) == part).then_some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_escaped_comes_back(text in any::<String>()) {
            let part = escape(&text);
            prop_assert!(!part.contains(SEPARATOR));
            prop_assert_eq!(unescape(&part), Some(text));
        }

        #[test]
        fn only_one_part_is_a_text(part in "[#%0-9A-Fa-f ~]{0,8}") {
            if let Some(text) = unescape(&part) {
                prop_assert_eq!(escape(&text), part);
            }
        }

        /// Different parts make different keys, and no key is a prefix of another one's level.
        #[test]
        fn keys_do_not_run_into_each_other(
            one in prop::collection::vec("[a#% -]{1,3}", 1..4),
            other in prop::collection::vec("[a#% -]{1,3}", 1..4),
        ) {
            let key = |parts: &[String]| -> String {
                parts.iter().map(|part| escape(part) + "#").collect()
            };
            prop_assert_eq!(key(&one).starts_with(&key(&other)), one.starts_with(&other));
        }

        #[test]
        fn a_part_sorts_before_what_it_begins(part in "[a#% !-]{1,4}", more in "[a#% !-]{1,4}") {
            let behind = escape(&format!("{part}{more}")) + "#";
            prop_assert!(escape(&part) + "#" < behind);
        }
    }
}
