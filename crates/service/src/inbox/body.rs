//! The body of a message: the JSON object that was sent, with its numbers as they were written.

use std::fmt;

use antumbra_shadow::{Document, DocumentError};

/// The JSON object that was sent. Equal to the text it was parsed from, except for white space and the order of
/// members, which are sorted by name.
///
/// ```
/// use antumbra_service::inbox::Body;
/// let body = Body::parse(r#"{ "tempF": 72.50, "epochTime": 1564669331 }"#)?;
/// assert_eq!(body.as_json(), r#"{"epochTime":1564669331,"tempF":72.50}"#);
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Body {
    document: Document,
    /// The text with numbers written otherwise than the document writes them, such as `72.50` or `1e3`.
    written: Option<String>,
}

impl Body {
    /// Reads what was sent. What a document cannot hold, a body cannot: see [`DocumentError`].
    pub fn parse(text: &str) -> Result<Body, DocumentError> {
        let (document, written) = Document::parse_as_written(text)?;
        Ok(Body { document, written })
    }

    /// Puts together what a store kept apart: the document, and the text if there was another. A text
    /// that does not say what the document says is not believed.
    pub fn from_parts(document: Document, written: Option<&str>) -> Body {
        let written = match written.map(Document::parse_as_written) {
            Some(Ok((same, written))) if same == document => written,
            _ => None,
        };
        Body { document, written }
    }

    /// The JSON that a reader gets.
    pub fn as_json(&self) -> &str {
        self.written().unwrap_or(self.document.as_str())
    }

    /// The same value, with its numbers in their one form.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The text, if it has to be kept beside the document to come back as it was sent.
    pub fn written(&self) -> Option<&str> {
        self.written.as_deref()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}
