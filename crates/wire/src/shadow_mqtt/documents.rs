//! Messages to devices after a change: the delta, and the documents before and after.

use antumbra_shadow::{Document, LeafTimes, Model, delta};

use super::fields::Fields;
use crate::notification::TooLarge;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowDocument {
    pub document: Document,
    pub times: LeafTimes,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShadowDocuments {
    pub reported: Option<ShadowDocument>,
    pub desired: Option<ShadowDocument>,
    pub version: i64,
}

impl ShadowDocuments {
    pub fn is_absent(&self) -> bool {
        self.reported.is_none() && self.desired.is_none()
    }

    pub fn delta(&self, model: &Model) -> Document {
        let document = |section: &Option<ShadowDocument>| {
            let section = section.as_ref();
            section.map_or_else(Document::default, |section| section.document.clone())
        };
        delta(&document(&self.desired), &document(&self.reported), model)
    }

    /// Returns `state` and `metadata`, without missing and empty documents.
    pub(super) fn fields(&self, delta: Option<&Document>) -> Fields {
        let (mut state, mut metadata) = (Fields::default(), Fields::default());
        for (name, section) in [("desired", &self.desired), ("reported", &self.reported)] {
            if let Some(ShadowDocument { document, times }) = section
                && !document.is_empty()
            {
                state = state.json(name, document.as_str());
                metadata = metadata.json(name, times.metadata(document));
            }
        }
        if let Some(delta) = delta.filter(|delta| !delta.is_empty()) {
            state = state.json("delta", delta.as_str());
        }
        Fields::default()
            .json("state", state.to_json())
            .json("metadata", metadata.to_json())
    }
}

/// Writes the message for `/update/delta` to `out`; returns `false` if there is no delta. If it has more than
/// `limit` bytes, the metadata and then the state are left out.
pub fn write_delta(
    out: &mut String,
    after: &ShadowDocuments,
    model: &Model,
    seconds: i64,
    client_token: Option<&str>,
    limit: usize,
) -> Result<bool, TooLarge> {
    out.clear();
    let Some(desired) = &after.desired else {
        return Ok(false);
    };
    let delta = after.delta(model);
    if delta.is_empty() {
        return Ok(false);
    }
    let metadata = desired
        .times
        .metadata_of(delta.view(), &desired.document, seconds);
    let fields = Fields::default()
        .number("version", after.version)
        .number("timestamp", seconds)
        .json("state", delta.as_str())
        .json("metadata", metadata)
        .text("clientToken", client_token);
    *out = fields
        .within(limit, &["metadata", "state"])
        .map_err(|bytes| TooLarge { bytes, limit })?;
    Ok(true)
}

/// Writes the message for `/update/documents` to `out`. A new shadow has no `previous`. If the message has more
/// than `limit` bytes, `previous`, then `current.metadata`, then `current.state` are left out.
pub fn write_documents(
    out: &mut String,
    before: &ShadowDocuments,
    after: &ShadowDocuments,
    seconds: i64,
    client_token: Option<&str>,
    limit: usize,
) -> Result<(), TooLarge> {
    let one = |sections: &ShadowDocuments| {
        let fields = sections.fields(None);
        fields.number("version", sections.version)
    };
    let mut fields = Fields::default();
    if !before.is_absent() {
        fields = fields.json("previous", one(before).to_json());
    }
    *out = fields
        .object("current", one(after))
        .number("timestamp", seconds)
        .text("clientToken", client_token)
        .within(limit, &["previous", "current.metadata", "current.state"])
        .map_err(|bytes| TooLarge { bytes, limit })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shadow(state: &Value, version: i64) -> ShadowDocuments {
        let section = |state: &Value| ShadowDocument {
            document: Document::from_value(state).unwrap(),
            times: LeafTimes::default(),
        };
        ShadowDocuments {
            reported: None,
            desired: Some(section(state)),
            version,
        }
    }

    #[test]
    fn a_message_that_is_too_large_loses_its_parts_one_by_one() {
        let [before, after] = [1, 2].map(|version| {
            let text = "x".repeat(100);
            shadow(&json!({ "text": text, "version": version }), version)
        });
        let (mut out, mut limit, mut truncated) = (String::new(), usize::MAX, Vec::new());
        while write_documents(&mut out, &before, &after, 7, Some("t"), limit).is_ok() {
            let message: Value = serde_json::from_str(&out).unwrap();
            assert_eq!(message["current"]["version"], 2);
            assert_eq!(message["clientToken"], "t");
            truncated.push(message["truncated"].clone());
            limit = out.len() - 1;
        }
        let names = json!(["previous", "current.metadata", "current.state"]);
        let names = names.as_array().unwrap();
        assert_eq!(
            truncated,
            [
                Value::Null,
                json!(names[..1]),
                json!(names[..2]),
                json!(names)
            ]
        );
    }

    #[test]
    fn a_delta_that_is_too_large_names_its_version() {
        let after = shadow(&json!({ "text": "x".repeat(200) }), 3);
        let mut out = String::new();
        let written = write_delta(&mut out, &after, &Model::default(), 7, None, 150);
        assert!(written.unwrap());
        let message: Value = serde_json::from_str(&out).unwrap();
        let expected = json!({ "version": 3, "timestamp": 7, "truncated": ["metadata", "state"] });
        assert_eq!(message, expected);
    }
}
