//! Changes written as JSON.

use antumbra_registration::{
    Change, DiffCell, KeyAttributes, Operation, RegistrationId, Registrations, Scratch, ShadowRef,
    State, plan,
};
use antumbra_shadow::{AcknowledgedLeaves, Document, Model};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A change in test data; omitted members have defaults.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct Given {
    key: String,
    shadow: bool,
    id: String,
    name: String,
    state: String,
    operation: String,
    version: u64,
    client_token: Option<String>,
    old: Option<Box<RawValue>>,
    new: Option<Box<RawValue>>,
    /// Every value that was removed is reported.
    acknowledged: bool,
}

impl Default for Given {
    fn default() -> Given {
        Given {
            key: "DS#device#DSR#main".to_owned(),
            shadow: true,
            id: "device".to_owned(),
            name: "main".to_owned(),
            state: "reported".to_owned(),
            operation: "modify".to_owned(),
            version: 2,
            client_token: None,
            old: None,
            new: None,
            acknowledged: false,
        }
    }
}

impl Given {
    pub(crate) fn parse(text: &str) -> Given {
        serde_json::from_str(text).unwrap_or_else(|fault| panic!("{fault} in {text}"))
    }

    pub(crate) fn new(new: &str) -> Given {
        Given {
            new: Some(RawValue::from_string(new.to_owned()).unwrap()),
            ..Given::default()
        }
    }

    pub(crate) fn with_old(mut self, old: &str) -> Given {
        self.old = Some(RawValue::from_string(old.to_owned()).unwrap());
        self
    }

    pub(crate) fn with_key(mut self, key: &str) -> Given {
        self.key = key.to_owned();
        self
    }

    pub(crate) fn acknowledged(mut self) -> Given {
        self.acknowledged = true;
        self
    }

    pub(crate) fn with_id(mut self, id: &str) -> Given {
        self.id = id.to_owned();
        self
    }

    /// Calls `test` with the change, and with its diff to check whether it was computed.
    pub(crate) fn with<R>(&self, then: impl FnOnce(&Change<'_>, &DiffCell<'_>) -> R) -> R {
        let document = |raw: &Option<Box<RawValue>>| {
            raw.as_ref().map(|raw| Document::parse(raw.get()).unwrap())
        };
        let (old, new, model) = (document(&self.old), document(&self.new), Model::default());
        let (old, new) = (
            old.as_ref().map(Document::view),
            new.as_ref().map(Document::view),
        );
        let state: State = self.state.parse().unwrap();
        let operation: Operation = self.operation.parse().unwrap();
        let diff = DiffCell::new(old, new, &model);
        let acknowledged = AcknowledgedLeaves::decode("2", 2).filter(|_| self.acknowledged);
        let acknowledged = acknowledged.zip(old).map(|(all, old)| all.nodes(old));
        let change = Change {
            key: &self.key,
            key_attributes: KeyAttributes::default(),
            shadow: self.shadow.then_some(ShadowRef {
                id: &self.id,
                name: &self.name,
                state,
            }),
            operation,
            expired: false,
            version: Some(self.version),
            previous_version: self.version.checked_sub(1),
            client_token: self.client_token.as_deref(),
            timestamp: Some(1_731_700_000_000_000_000),
            old,
            new,
            diff: &diff,
            acknowledged: acknowledged.as_ref(),
        };
        then(&change, &diff)
    }

    /// The indices of the matching registrations.
    pub(crate) fn planned(&self, registrations: &Registrations) -> Vec<usize> {
        let ids: Vec<RegistrationId> =
            self.with(|change, _| plan(registrations, change, &mut Scratch::default()).to_vec());
        let position = |id: &RegistrationId| {
            registrations
                .iter()
                .position(|(known, _)| known == *id)
                .unwrap()
        };
        ids.iter().map(position).collect()
    }
}

/// One registration per `on`, all with the same queue.
pub(crate) fn load<S: AsRef<str>>(ons: impl IntoIterator<Item = S>) -> Registrations {
    let text = |(number, on): (usize, S)| {
        let on = on.as_ref();
        (
            format!("{number}.json"),
            format!(r#"{{"name":"r{number}","on":{on},"to":{{"sqs":{{"queue":"alerts"}}}}}}"#),
        )
    };
    let files: Vec<_> = ons.into_iter().enumerate().map(text).collect();
    Registrations::load(files, &|_| None).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The JSON Schema of registration files.
pub(crate) fn schema() -> serde_json::Value {
    serde_json::from_str(include_str!(
        "../../../../registrations/registration.schema.json"
    ))
    .unwrap()
}
