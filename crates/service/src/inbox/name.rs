//! The names of a source and of a message. Both are levels of MQTT topics, so neither holds what a
//! level cannot.

use std::fmt;

/// Bytes of a source, as many as the name of a thing of AWS IoT has.
pub const SOURCE_BYTES: usize = 128;
/// Bytes of a message's id: those of a sort key of DynamoDB.
pub const MESSAGE_ID_BYTES: usize = 1024;

/// Source of a message: any name, called `uuid` in topics and responses.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source(String);

/// Id of a message within its source. Messages are ordered by it, byte by byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(String);

/// Error of an invalid source or message id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// The text is empty.
    #[error("the {what} is empty")]
    Empty {
        /// Name of the value, for the message.
        what: &'static str,
    },
    /// The text is too long.
    #[error("the {what} has {bytes} bytes, the limit is {limit}")]
    TooLong {
        /// Name of the value, for the message.
        what: &'static str,
        /// Its bytes.
        bytes: usize,
        /// Longest length allowed, in bytes.
        limit: usize,
    },
    /// It holds a character that has a meaning in topics, or none that can be seen.
    #[error("the {what} holds {character:?}, which no level of a topic may")]
    Character {
        /// Name of the value, for the message.
        what: &'static str,
        /// The character.
        character: char,
    },
    /// It starts like a topic of the broker's own.
    #[error("the {what} starts with $, which is reserved")]
    Reserved {
        /// Name of the value, for the message.
        what: &'static str,
    },
}

impl Source {
    /// 1 to 128 bytes without `/`, `+`, `#` and control characters, and not starting with `$`.
    ///
    /// ```
    /// use antumbra_service::inbox::Source;
    /// assert_eq!(Source::new("testThing").unwrap().as_str(), "testThing");
    /// assert!(Source::new("testThing/other").is_err());
    /// ```
    pub fn new(source: impl Into<String>) -> Result<Source, InvalidName> {
        const WHAT: &str = "uuid";
        let source = checked(WHAT, source.into(), SOURCE_BYTES)?;
        if source.starts_with('$') {
            return Err(InvalidName::Reserved { what: WHAT });
        }
        Ok(Source(source))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl MessageId {
    /// 1 to 1024 bytes without `/`, `+`, `#` and control characters. Whether there is such a message is
    /// another question: any id serves as a bound.
    pub fn new(id: impl Into<String>) -> Result<MessageId, InvalidName> {
        checked("messageId", id.into(), MESSAGE_ID_BYTES).map(MessageId)
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn checked(what: &'static str, text: String, limit: usize) -> Result<String, InvalidName> {
    let unfit = |c: &char| matches!(c, '/' | '+' | '#') || c.is_control();
    match (text.len(), text.chars().find(unfit)) {
        (0, _) => Err(InvalidName::Empty { what }),
        (bytes, _) if bytes > limit => Err(InvalidName::TooLong { what, bytes, limit }),
        (_, Some(character)) => Err(InvalidName::Character { what, character }),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_level_of_a_topic_is_no_name() {
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
        for (name, told) in [
            ("", "the uuid is empty"),
            ("a/b", "the uuid holds '/', which no level of a topic may"),
            ("+", "the uuid holds '+', which no level of a topic may"),
            (
                "#sources",
                "the uuid holds '#', which no level of a topic may",
            ),
            ("a\0", "the uuid holds '\\0', which no level of a topic may"),
            (
                "a\u{85}",
                "the uuid holds '\\u{85}', which no level of a topic may",
            ),
            ("$aws", "the uuid starts with $, which is reserved"),
        ] {
            assert_eq!(Source::new(name).unwrap_err().to_string(), told);
        }
        assert!(Source::new("u".repeat(SOURCE_BYTES)).is_ok());
        assert_eq!(
            Source::new("u".repeat(129)).unwrap_err().to_string(),
            "the uuid has 129 bytes, the limit is 128"
        );
        assert!(MessageId::new("m".repeat(MESSAGE_ID_BYTES + 1)).is_err());
    }
}
