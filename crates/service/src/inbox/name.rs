//! The names of a source and of a message. Both are levels of MQTT topics, so neither holds a character that
//! a level cannot.

use crate::text::{InvalidText, check_text, checked_text};

/// Maximum bytes of a source: those of a thing's name in AWS IoT.
pub const SOURCE_BYTES: usize = 128;
/// Maximum bytes of a message's id: those of a sort key of DynamoDB.
pub const MESSAGE_ID_BYTES: usize = 1024;

checked_text! {
    /// Source of a message: any name, called `uuid` in topics and responses. 1 to 128 bytes without `/`, `+`,
    /// `#` and control characters, and not starting with `$`.
    pub struct Source checked by |text| {
        const WHAT: &str = "uuid";
        let text = check_text(WHAT, text, SOURCE_BYTES, is_in_level)?;
        match text.starts_with('$') {
            true => Err(InvalidText::Reserved { what: WHAT }),
            false => Ok(text),
        }
    };
}

checked_text! {
    /// Id of a message within its source: 1 to 1024 bytes without `/`, `+`, `#` and control characters.
    /// Messages are ordered by it, byte by byte. Any id serves as a bound of a query.
    pub struct MessageId checked by |text| check_text("messageId", text, MESSAGE_ID_BYTES, is_in_level);
}

fn is_in_level(character: char) -> bool {
    !matches!(character, '/' | '+' | '#') && !character.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_levels_of_topics() {
        for name in [
            "testThing",
            "a b",
            "å",
            "urn:dev:1",
            "a$",
            "300234010753370",
        ] {
            assert!(Source::new(name).is_ok(), "{name}");
            assert!(MessageId::new(name).is_ok(), "{name}");
        }
        for (name, error) in [
            ("", "the uuid is empty"),
            ("a/b", "the uuid may not hold '/'"),
            ("+", "the uuid may not hold '+'"),
            ("#sources", "the uuid may not hold '#'"),
            ("a\0", "the uuid may not hold '\\0'"),
            ("a\u{85}", "the uuid may not hold '\\u{85}'"),
            ("$aws", "the uuid starts with $, which is reserved"),
        ] {
            assert_eq!(Source::new(name).unwrap_err().to_string(), error);
        }
        assert!(Source::new("u".repeat(SOURCE_BYTES)).is_ok());
        assert_eq!(
            Source::new("u".repeat(129)).unwrap_err().to_string(),
            "the uuid has 129 bytes, the limit is 128"
        );
        assert!(MessageId::new("m".repeat(MESSAGE_ID_BYTES + 1)).is_err());
    }
}
