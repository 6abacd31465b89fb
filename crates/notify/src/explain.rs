//! Why each registration gets a record or does not: the tool's view of what the listener would do.

use antumbra_registration::{DiffCell, Registrations, explain as explain_change};
use antumbra_shadow::Model;
use antumbra_wire::items::{ItemChange, KeyBuffer};
use antumbra_wire::stream::{EventError, StreamBatch, Tape};
use serde::Serialize;

/// One document of one record against all registrations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedRecord {
    /// The item's key.
    pub key: String,
    /// What happened to it, and to which document of a shadow.
    pub operation: String,
    /// Why it cannot be looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// What each registration makes of it.
    pub registrations: Vec<ExplainedRegistration>,
}

/// One registration's verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedRegistration {
    /// The registration.
    pub name: String,
    /// The first condition that does not hold; `None` when it matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmet: Option<String>,
}

/// Looks at every record of an event. Only an event that is no stream event is an error.
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
                        unmet: verdict.unmet.map(|unmet| unmet.to_string()),
                    })
                    .collect(),
            });
        }
    }
    Ok(explained)
}
