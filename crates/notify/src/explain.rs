//! Explains which registrations match the records of an event, and why others do not.

use antumbra_registration::{DiffCell, Registrations, explain as explain_change};
use antumbra_shadow::Model;
use antumbra_wire::items::{ItemChange, KeyBuffer};
use antumbra_wire::stream::{EventError, StreamBatch, Tape};
use serde::Serialize;

/// One changed document and the verdict of every registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedRecord {
    pub key: String,
    /// The operation, and the document of a shadow.
    pub operation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    pub registrations: Vec<ExplainedRegistration>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedRegistration {
    pub name: String,
    /// The first condition that does not hold; `None` if the registration matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmet: Option<String>,
}

/// Explains every record of an event. Fails only if the event is not a stream event.
pub fn explain(
    registrations: &Registrations,
    event: &[u8],
) -> Result<Vec<ExplainedRecord>, EventError> {
    let mut explained = Vec::new();
    let (mut batch, mut tape, mut keys) = (
        StreamBatch::default(),
        Tape::default(),
        KeyBuffer::default(),
    );
    let model = Model::default();
    for record in batch.read(event)?.iter() {
        let fault = |key: &str, fault: String| ExplainedRecord {
            key: key.to_owned(),
            operation: String::new(),
            fault: Some(fault),
            registrations: Vec::new(),
        };
        let record = match record {
            Ok(record) => record,
            Err(undecodable) => {
                explained.push(fault("", format!("{undecodable}: {}", undecodable.fault)));
                continue;
            }
        };
        let key = keys.read(record);
        let images = match record.images(&mut tape) {
            Ok(images) => images,
            Err(undecodable) => {
                explained.push(fault(
                    key.text,
                    format!("{undecodable}: {}", undecodable.fault),
                ));
                continue;
            }
        };
        let item = ItemChange::new(record, key, images);
        for document in item.documents() {
            let cell = DiffCell::new(document.old, document.new, &model);
            let change = item.change(document, &cell);
            let state = document
                .state
                .map(|state| format!(" {state}"))
                .unwrap_or_default();
            let verdicts = explain_change(registrations, &change);
            explained.push(ExplainedRecord {
                key: key.text.to_owned(),
                operation: format!("{}{state}", change.operation),
                fault: None,
                registrations: verdicts
                    .into_iter()
                    .map(|verdict| ExplainedRegistration {
                        name: registrations[verdict.id].name.to_string(),
                        unmet: verdict.unmet,
                    })
                    .collect(),
            });
        }
    }
    Ok(explained)
}
