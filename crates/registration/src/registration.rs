//! One registration: the rule that a file of `registrations/` holds.
//!
//! The types here are what the file says, once read; their JSON Schema is the schema of the files.

use std::borrow::Cow;
use std::sync::Arc;

use antumbra_shadow::View;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::change::{Change, Operation};
use crate::form::Form;
use crate::key::{Key, Literals};
use crate::limits::NAME_BYTES;
use crate::pattern::Pattern;
use crate::problem::Place;
use crate::read::{Fields, Reader};
use crate::target::Target;
use antumbra_shadow::State;

/// Which changes are sent, what of them, and where to.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "camelCase", title = "Registration")]
pub struct Registration {
    /// The file it was read from.
    #[schemars(skip)]
    pub file: Box<str>,
    /// Its name, unique among all registrations: letters, digits, `-`, `_` and `.`.
    #[schemars(
        length(min = 1, max = 128),
        regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    )]
    pub name: Box<str>,
    /// What it is for.
    pub description: Option<Box<str>>,
    /// Whether it is in force.
    #[schemars(with = "Option<bool>", extend("default" = true))]
    pub enabled: bool,
    /// Which changes are sent. Without it: every change of every shadow.
    #[schemars(with = "Option<On>")]
    pub on: On,
    /// What a message is: notification tells what changed, key is the item's key and nothing else.
    #[schemars(
        rename = "as",
        with = "Option<Form>",
        extend("default" = "notification")
    )]
    pub form: Form,
    /// What of a change is in a notification, in any combination.
    #[schemars(with = "Option<Parts>")]
    pub send: Parts,
    /// Where it is sent: exactly one target.
    pub to: Target,
}

/// Which changes a registration is about: those for which all of this holds.
#[derive(Debug, Clone, Default, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "camelCase")]
pub struct On {
    /// A regular expression on the item's key, PK#SK. Without it: every item of a shadow.
    #[schemars(with = "Option<String>", length(max = 2048), extend("format" = "regex"))]
    pub key: Option<Arc<str>>,
    /// The document: reported, desired or both.
    #[schemars(with = "Option<StateWord>", extend("default" = "both"))]
    pub state: Option<State>,
    /// What happened to the item. Without it: any of them.
    #[schemars(with = "Option<Operations>")]
    pub operations: Operations,
    /// What must have changed: value is something besides timestamps, any is anything.
    #[schemars(with = "Option<Changes>", extend("default" = "any"))]
    pub changes: Changes,
    /// What the change must look like, in EventBridge's pattern language.
    pub pattern: Option<Pattern>,
}

/// How a file says which document.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[allow(dead_code)]
enum StateWord {
    Reported,
    Desired,
    Both,
}

/// What must have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum Changes {
    /// Something besides timestamps.
    Value,
    /// Anything.
    #[default]
    Any,
}

/// A set of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operations(u8);

impl Operations {
    fn new(operations: &[Operation]) -> Operations {
        Operations(
            operations
                .iter()
                .fold(0, |set, operation| set | 1 << *operation as u8),
        )
    }

    /// Whether it is one of them.
    pub fn contains(self, operation: Operation) -> bool {
        self.0 & 1 << operation as u8 != 0
    }
}

impl Default for Operations {
    fn default() -> Operations {
        Operations::new(&Operation::ALL)
    }
}

impl JsonSchema for Operations {
    fn schema_name() -> Cow<'static, str> {
        "Operations".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = Operation::ALL.map(Operation::as_str);
        json_schema!({ "type": "array", "items": { "enum": words }, "uniqueItems": true, "minItems": 1 })
    }
}

/// What of a change is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The document before.
    pub old: bool,
    /// The document after.
    pub new: bool,
    /// What is different.
    pub diff: bool,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts {
            old: false,
            new: false,
            diff: true,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Old,
    New,
    Diff,
}

const PARTS: [(&str, Part); 3] = [("old", Part::Old), ("new", Part::New), ("diff", Part::Diff)];

impl JsonSchema for Parts {
    fn schema_name() -> Cow<'static, str> {
        "Parts".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = PARTS.map(|(word, _)| word);
        json_schema!({ "type": "array", "items": { "enum": words }, "uniqueItems": true, "minItems": 1, "default": ["diff"] })
    }
}

impl Registration {
    /// Whether the diff must be known to send a notification.
    pub fn needs_diff(&self) -> bool {
        self.form.has_parts() && self.send.diff
    }

    /// Whether all holds but the key and the pattern.
    pub(crate) fn passes(&self, change: &Change<'_>) -> bool {
        let On {
            state, operations, ..
        } = &self.on;
        operations.contains(change.operation)
            && (change.shadow.is_some() || !self.form.is_of_shadows())
            && state.is_none_or(|state| change.shadow.is_some_and(|shadow| shadow.state == state))
    }

    /// Whether enough of it changed. Asked last, since it takes the diff.
    pub(crate) fn changed_enough(&self, change: &Change<'_>) -> bool {
        self.on.changes == Changes::Any || change.value_changed()
    }

    /// Reads a file's object, and its key as the index needs it. `None` when it has problems, which are noted.
    pub(crate) fn read(
        view: View<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<(Registration, Option<(Key, Literals)>)> {
        let file = reader.problems.file.into();
        let known = &[
            "$schema",
            "name",
            "description",
            "enabled",
            "on",
            "as",
            "send",
            "to",
        ];
        let mut fields = Fields::open(view, &Place::ROOT, reader, known)?;
        fields.plain("$schema");
        fields.require("name");
        let name = fields.plain("name");
        if let Some(reason) = name.as_deref().and_then(name_fault) {
            fields.problem_at("name", reason);
        }
        let description = fields.plain("description");
        let enabled = fields.bool("enabled").unwrap_or(true);
        let (on, key) = fields.below("on", On::read).unwrap_or_default();
        let form = fields.choice("as", &Form::ALL).unwrap_or_default();
        if !form.has_parts() && fields.get("send").is_some() {
            fields.problem_at(
                "send",
                "chooses the parts of a notification, and as asks for none",
            );
        }
        let send = fields
            .choices("send", &PARTS)
            .map_or_else(Parts::default, |parts| Parts {
                old: parts.contains(&Part::Old),
                new: parts.contains(&Part::New),
                diff: parts.contains(&Part::Diff),
            });
        fields.require("to");
        let to = fields.below("to", Target::read);
        let registration = Registration {
            file,
            name: name?.into(),
            description: description.map(Into::into),
            enabled,
            on,
            form,
            send,
            to: to?,
        };
        Some((registration, key))
    }
}

fn name_fault(name: &str) -> Option<String> {
    let fine = name.len() <= NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    (!fine).then(|| format!("must be 1 to {NAME_BYTES} letters, digits, - _ and dots, starting with a letter or digit"))
}

impl On {
    fn read(
        view: View<'_>,
        place: &Place<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<(On, Option<(Key, Literals)>)> {
        let known = &["key", "state", "operations", "changes", "pattern"];
        let mut fields = Fields::open(view, place, reader, known)?;
        let text = fields.plain("key");
        let key = text.as_deref().and_then(|text| {
            Key::parse(text)
                .map_err(|reason| fields.problem_at("key", reason))
                .ok()
        });
        let states = [
            ("reported", Some(State::Reported)),
            ("desired", Some(State::Desired)),
            ("both", None),
        ];
        let state = fields.choice("state", &states).flatten();
        let words = Operation::ALL.map(|operation| (operation.as_str(), operation));
        let operations = fields
            .choices("operations", &words)
            .map(|list| Operations::new(&list))
            .unwrap_or_default();
        let changes = fields
            .choice(
                "changes",
                &[("value", Changes::Value), ("any", Changes::Any)],
            )
            .unwrap_or_default();
        let pattern = fields.below("pattern", |view, place, reader| {
            Pattern::read(view, place, reader.problems)
        });
        let on = On {
            key: key.as_ref().map(|(key, _)| key.shared_text()),
            state,
            operations,
            changes,
            pattern,
        };
        Some((on, key))
    }
}

/// The JSON Schema of a registration's file, as `registrations/registration.schema.json` holds it.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::generate::SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<Registration>()
        .to_value();
    // Editors find the schema by this member, which says nothing about the registration.
    if let Some(properties) = schema
        .pointer_mut("/properties")
        .and_then(|found| found.as_object_mut())
    {
        properties.insert(
            "$schema".to_owned(),
            serde_json::json!({ "type": "string" }),
        );
    }
    schema
}
