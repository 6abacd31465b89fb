//! A document: one JSON object, immutable, in canonical form.
//!
//! Canonical means: members sorted by name, no white space, numbers in their one written form
//! ([`crate::number`]), strings escaped only where JSON demands it. Two documents are equal exactly
//! when their texts are. Numbers and depth are within what DynamoDB keeps exactly; whether an item is too
//! large, or has a name DynamoDB does not take (empty, or over 65,535 bytes), is for the store to say.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::build;
use crate::number::NumberError;
use crate::parse;
use crate::scan::SyntaxError;
use crate::tape::{Kind, Node, View};

/// One JSON object, immutable and cheap to clone.
///
/// ```
/// use antumbra_shadow::Document;
///
/// let document = Document::parse(r#"{ "b": 1.0, "a": {"on": true} }"#)?;
/// assert_eq!(document.as_str(), r#"{"a":{"on":true},"b":1}"#);
/// assert_eq!(document.pointer("/a/on").unwrap().as_bool(), Some(true));
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
#[derive(Clone)]
pub struct Document(Arc<Parts>);

struct Parts {
    text: String,
    nodes: Vec<Node>,
}

/// Error of a text or value that is not a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum DocumentError {
    /// The text is not JSON.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The text is not UTF-8.
    #[error("not UTF-8 at byte {offset}")]
    NotUtf8 {
        /// Bytes before the fault.
        offset: usize,
    },
    /// JSON, but not an object.
    #[error("a document is a JSON object, not {found}")]
    NotAnObject { found: &'static str },
    /// An object has a name twice.
    #[error("the name {key:?} stands twice in one object")]
    DuplicateKey { key: String },
    /// Nested deeper than can be stored.
    #[error("the document is {depth} levels deep, the limit is {limit}")]
    TooDeep { depth: usize, limit: usize },
    /// A number that cannot be kept exactly.
    #[error("at byte {offset}: {source}")]
    Number {
        /// Bytes before the number.
        offset: usize,
        source: NumberError,
    },
    /// More text than is read at all.
    #[error("the text has {bytes} bytes, the limit is {limit}")]
    TooLong { bytes: usize, limit: usize },
    /// A Rust value that has no JSON form.
    #[error("no JSON form: {0}")]
    Unserializable(String),
}

impl Document {
    /// Reads JSON text.
    pub fn parse(text: &str) -> Result<Document, DocumentError> {
        let parsed = parse::parse(text)?;
        let root = View::new(text, &parsed.nodes);
        match root.kind() {
            Kind::Object if parsed.canonical => {
                Ok(Document::from_parts(text.to_owned(), parsed.nodes))
            }
            Kind::Object => build::canonicalise(root),
            kind => Err(DocumentError::NotAnObject {
                found: name_of(kind),
            }),
        }
    }

    /// Parses JSON text. Also returns the text with its numbers as they were written, if it differs from the
    /// document's.
    ///
    /// ```
    /// # use antumbra_shadow::Document;
    /// let (document, written) = Document::parse_as_written(r#"{"b": 72.50, "a": 1}"#)?;
    /// assert_eq!(document.as_str(), r#"{"a":1,"b":72.5}"#);
    /// assert_eq!(written.as_deref(), Some(r#"{"a":1,"b":72.50}"#));
    /// assert_eq!(Document::parse_as_written(r#"{"b": 72, "a": 1}"#)?.1, None);
    /// # Ok::<(), antumbra_shadow::DocumentError>(())
    /// ```
    pub fn parse_as_written(text: &str) -> Result<(Document, Option<String>), DocumentError> {
        let document = Document::parse(text)?;
        // Text in canonical form has canonical numbers.
        if document.as_str() == text {
            return Ok((document, None));
        }
        let parsed = parse::parse(text)?;
        let written = build::sorted(View::new(text, &parsed.nodes))?;
        let other = (written != document.as_str()).then_some(written);
        Ok((document, other))
    }

    /// Reads JSON text from bytes.
    ///
    /// ```
    /// # use antumbra_shadow::Document;
    /// assert!(Document::from_slice(b"{}").unwrap().is_empty());
    /// assert!(Document::from_slice(b"[]").is_err());
    /// ```
    pub fn from_slice(bytes: &[u8]) -> Result<Document, DocumentError> {
        let text = std::str::from_utf8(bytes).map_err(|fault| DocumentError::NotUtf8 {
            offset: fault.valid_up_to(),
        })?;
        Document::parse(text)
    }

    /// Converts a serde value to a document.
    ///
    /// ```
    /// # use antumbra_shadow::Document;
    /// let document = Document::from_value(&serde_json::json!({"led": "on"})).unwrap();
    /// assert_eq!(document.as_str(), r#"{"led":"on"}"#);
    /// ```
    pub fn from_value<T: Serialize + ?Sized>(value: &T) -> Result<Document, DocumentError> {
        let text = serde_json::to_string(value)
            .map_err(|fault| DocumentError::Unserializable(fault.to_string()))?;
        Document::parse(&text)
    }

    /// Converts the document to a serde value.
    ///
    /// ```
    /// # use antumbra_shadow::Document;
    /// #[derive(serde::Deserialize)]
    /// struct Lamp { led: String }
    /// let lamp: Lamp = Document::parse(r#"{"led":"on"}"#).unwrap().to_value().unwrap();
    /// assert_eq!(lamp.led, "on");
    /// ```
    pub fn to_value<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }

    pub(crate) fn from_parts(text: String, nodes: Vec<Node>) -> Document {
        Document(Arc::new(Parts { text, nodes }))
    }

    /// The canonical JSON text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The root object.
    pub fn view(&self) -> View<'_> {
        View::new(&self.0.text, &self.0.nodes)
    }

    /// The value at a JSON Pointer.
    pub fn pointer(&self, pointer: &str) -> Option<View<'_>> {
        self.view().pointer(pointer)
    }

    /// Returns `true` for `{}`.
    pub fn is_empty(&self) -> bool {
        self.0.nodes.len() == 1
    }
}

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Number => "a number",
        Kind::String => "a string",
        Kind::Array => "an array",
        Kind::Object => "an object",
    }
}

impl Default for Document {
    fn default() -> Document {
        static EMPTY: LazyLock<Document> = LazyLock::new(|| {
            let mut builder = build::Builder::default();
            let opened = builder.open(None, Kind::Object);
            builder.close(opened);
            builder.finish()
        });
        EMPTY.clone()
    }
}

impl PartialEq for Document {
    fn eq(&self, other: &Document) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Document {}

impl Hash for Document {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Document {
    type Err = DocumentError;

    fn from_str(text: &str) -> Result<Document, DocumentError> {
        Document::parse(text)
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.view().serialize(serializer)
    }
}

/// Through serde_json, the value's text goes out as it is, so that its numbers stay exact.
impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = RawValue::from_string(self.to_json()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Document, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Document::parse(raw.get()).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    #[test]
    fn every_spelling_becomes_the_one_form() {
        for (given, form) in [
            ("{}", "{}"),
            (" { } ", "{}"),
            (r#"{"b":1,"a":2}"#, r#"{"a":2,"b":1}"#),
            (r#"{"a":[1.0, 2e0 ,-0]}"#, r#"{"a":[1,2,0]}"#),
            (r#"{"\u0061":"\u00e9\/\n"}"#, r#"{"a":"é/\n"}"#),
            (
                r#"{"a":{"z":[],"y":{}},"":null}"#,
                r#"{"":null,"a":{"y":{},"z":[]}}"#,
            ),
        ] {
            let document = Document::parse(given).unwrap();
            assert_eq!(document.as_str(), form);
            assert_eq!(document.view().to_json(), form);
            assert_eq!(Document::parse(form).unwrap(), document);
        }
    }

    #[test]
    fn bad_input_has_its_own_error() {
        let deep = |levels: usize| {
            format!(
                "{}1{}",
                "{\"a\":".repeat(levels - 1),
                "}".repeat(levels - 1)
            )
        };
        assert!(Document::parse(&deep(limits::DEPTH)).is_ok());
        assert_eq!(
            Document::parse(&deep(33)),
            Err(DocumentError::TooDeep {
                depth: 33,
                limit: 32
            })
        );
        assert_eq!(
            Document::parse(&deep(50_000)),
            Err(DocumentError::TooDeep {
                depth: 50_000,
                limit: 32
            })
        );
        assert_eq!(
            Document::parse("[1]"),
            Err(DocumentError::NotAnObject { found: "an array" })
        );
        assert_eq!(
            Document::parse("null"),
            Err(DocumentError::NotAnObject { found: "null" })
        );
        assert_eq!(
            Document::parse(r#"{"a":1,"\u0061":2}"#),
            Err(DocumentError::DuplicateKey { key: "a".into() })
        );
        assert!(matches!(
            Document::parse(r#"{"a":1e400}"#),
            Err(DocumentError::Number { offset: 5, .. })
        ));
        assert_eq!(
            Document::from_slice(b"{\"a\xff\":1}"),
            Err(DocumentError::NotUtf8 { offset: 3 })
        );
        for text in [
            "",
            " ",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{,}",
            "[1,]",
            "{\"a\":01}",
            "{\"a\":1}x",
            "{\"a\":\"\u{1}\"}",
            "tru",
            "{\"a\":-}",
            "{\"a\":1.}",
            "\"\\ud800\"",
            "{]",
        ] {
            assert!(
                matches!(Document::parse(text), Err(DocumentError::Syntax(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn serde_keeps_numbers_exact() {
        let text = r#"{"n":12345678901234567890123456789012345678}"#;
        let document: Document = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&document).unwrap(), text);
    }
}
