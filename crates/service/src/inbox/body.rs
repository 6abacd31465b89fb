//! Bodies of messages: JSON objects with their numbers as they were written.

use std::fmt;

use antumbra_shadow::{Document, DocumentError};

/// The JSON object that was sent. Equal to the text it was parsed from, except for white space and the order of
/// members, which are sorted by name.
#[derive(Clone, PartialEq, Eq)]
pub struct Body {
    document: Document,
    /// The text with numbers written otherwise than the document writes them, such as `72.50` or `1e3`.
    written: Option<String>,
}

impl Body {
    /// Parses a body. It has the limits of a document: see [`DocumentError`].
    pub fn parse(text: &str) -> Result<Body, DocumentError> {
        let (document, written) = Document::parse_as_written(text)?;
        Ok(Body { document, written })
    }

    /// Combines the stored document with the text, if one was stored. A text with another value is ignored.
    pub fn from_parts(document: Document, written: Option<&str>) -> Body {
        let written = match written.map(Document::parse_as_written) {
            Some(Ok((same, written))) if same == document => written,
            _ => None,
        };
        Body { document, written }
    }

    pub fn as_json(&self) -> &str {
        self.written().unwrap_or(self.document.as_str())
    }

    /// Returns the value, with numbers in canonical form.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// Returns the text if it differs from the document's, so that it must be stored too.
    pub fn written(&self) -> Option<&str> {
        self.written.as_deref()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}
