//! Checked texts: ids, names and words of limited length and alphabet, checked once at the edge.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidText {
    #[error("the {what} is empty")]
    Empty { what: &'static str },
    #[error("the {what} has {bytes} bytes, the limit is {limit}")]
    TooLong {
        what: &'static str,
        bytes: usize,
        limit: usize,
    },
    #[error("the {what} may not hold {character:?}")]
    Character { what: &'static str, character: char },
    #[error("the {what} starts or ends with space")]
    Space { what: &'static str },
    #[error("the {what} starts with $, which is reserved")]
    Reserved { what: &'static str },
    #[error("{text:?} is not an IANA time zone name")]
    NotAZone { text: String },
}

/// Checks that a text has 1 to `limit` bytes, all of allowed characters. `what` names it in the error.
pub(crate) fn check_text(
    what: &'static str,
    text: String,
    limit: usize,
    is_allowed: impl Fn(char) -> bool,
) -> Result<String, InvalidText> {
    match (text.len(), text.chars().find(|c| !is_allowed(*c))) {
        (0, _) => Err(InvalidText::Empty { what }),
        (bytes, _) if bytes > limit => Err(InvalidText::TooLong { what, bytes, limit }),
        (_, Some(character)) => Err(InvalidText::Character { what, character }),
        _ => Ok(text),
    }
}

pub(crate) fn is_printable(character: char) -> bool {
    !character.is_control()
}

/// Defines a type of texts that pass a check: `new`, `as_str`, `Display` and `FromStr`.
macro_rules! checked_text {
    ($(#[$meta:meta])* pub struct $name:ident checked by $check:expr;) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Checks a text.
            pub fn new(text: impl Into<String>) -> Result<$name, $crate::text::InvalidText> {
                let check: fn(String) -> Result<String, $crate::text::InvalidText> = $check;
                check(text.into()).map($name)
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::text::InvalidText;

            fn from_str(text: &str) -> Result<$name, $crate::text::InvalidText> {
                $name::new(text)
            }
        }
    };
}

pub(crate) use checked_text;
