//! The characters that SQS and SNS accept: those of XML 1.0, which excludes control characters except tab and line
//! ends, and U+FFFE and U+FFFF.

use std::borrow::Cow;

/// Escapes U+FFFE and U+FFFF in a JSON text. They can only be inside a string, so it is the same document.
/// `None` if the text has a control character, which no JSON text has.
pub(crate) fn json_body(text: &str) -> Option<Cow<'_, str>> {
    if text.chars().all(is_allowed) {
        return Some(Cow::Borrowed(text));
    }
    let mut body = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\u{FFFE}' => body.push_str("\\ufffe"),
            '\u{FFFF}' => body.push_str("\\uffff"),
            other if is_allowed(other) => body.push(other),
            _ => return None,
        }
    }
    Some(Cow::Owned(body))
}

/// The value of an attribute, with U+FFFD for each character that is not accepted. Attributes are for filters; the
/// body has the exact text.
pub(crate) fn attribute(text: &str) -> String {
    let replace = |c| if is_allowed(c) { c } else { '\u{FFFD}' };
    text.chars().map(replace).collect()
}

fn is_allowed(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_stays_the_same_document() {
        assert_eq!(
            json_body("{\"a\":\t\"ü\u{7f}𝄞\"}\r\n").as_deref(),
            Some("{\"a\":\t\"ü\u{7f}𝄞\"}\r\n")
        );
        let odd = "{\"\u{FFFF}\":\"a\u{FFFE}b\\\\\"}";
        let body = json_body(odd).unwrap();
        assert_eq!(body, "{\"\\uffff\":\"a\\ufffeb\\\\\"}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&body), read(odd));
        assert_eq!(json_body("a\u{0}"), None);
        assert_eq!(json_body("a\u{1f}\u{FFFE}"), None);
    }

    #[test]
    fn attributes_replace_only_characters_that_are_not_accepted() {
        assert_eq!(attribute("My House\t𝄞"), "My House\t𝄞");
        assert_eq!(attribute("a\u{0}b\u{FFFF}"), "a\u{FFFD}b\u{FFFD}");
    }
}
