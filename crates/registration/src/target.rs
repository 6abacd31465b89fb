//! Targets: the destinations of notifications, one module per kind.
//!
//! A new kind is a module here that implements [`TargetKind`], a line in `targets!`, and a module of the crate
//! `publish` that sends to it.

mod clients;
mod eventbridge;
mod mqtt;
mod sns;
mod sqs;

use std::collections::BTreeMap;

use antumbra_shadow::View;

pub use clients::Clients;
pub use eventbridge::EventBridge;
pub use mqtt::{Mqtt, QualityOfService};
pub use sns::Sns;
pub use sqs::Sqs;

use crate::limits::{ATTRIBUTE_NAME_CHARACTERS, ATTRIBUTES};
use crate::problem::Place;
use crate::read::{Fields, Reader};
use crate::template::TopicTemplate;

/// Properties of a target that the messages to it depend on.
pub trait TargetKind {
    /// The address of its channel. Registrations with the same kind and address share a channel.
    fn address(&self) -> &str {
        ""
    }

    /// Attributes that the registration adds to those of every message. `None`: messages have no attributes.
    fn attributes(&self) -> Option<&BTreeMap<String, String>> {
        None
    }

    /// The template of the topic that a message is published to.
    fn topic(&self) -> Option<&TopicTemplate> {
        None
    }

    /// Options of a message beside its content.
    fn options(&self) -> MessageOptions<'_> {
        MessageOptions::default()
    }
}

/// Options of a message that only some kinds of target have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MessageOptions<'t> {
    pub delay_seconds: Option<u32>,
    pub subject: Option<&'t str>,
    pub qos: u8,
    pub detail_type: Option<&'t str>,
}

macro_rules! targets {
    ($($(#[$doc:meta])* $kind:literal => $Target:ident,)*) => {
        /// The destination of a registration's notifications.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Target {
            $($(#[$doc])*$Target($Target),)*
        }

        const KINDS: &[&str] = &[$($kind),*];

        impl Target {
            /// The kind, as registrations write it.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Target::$Target(_) => $kind,)*
                }
            }

            /// The properties of its kind.
            pub fn properties(&self) -> &dyn TargetKind {
                match self {
                    $(Target::$Target(target) => target,)*
                }
            }

            fn read_kind(
                kind: &str,
                view: View<'_>,
                place: &Place<'_>,
                reader: &mut Reader<'_, '_>,
            ) -> Option<Target> {
                match kind {
                    $($kind => $Target::read(view, place, reader).map(Target::$Target),)*
                    _ => None,
                }
            }
        }
    };
}

targets! {
    /// A queue of SQS.
    "sqs" => Sqs,
    /// A topic of SNS.
    "sns" => Sns,
    /// An MQTT topic.
    "mqtt" => Mqtt,
    /// The webhook clients linked to the sensor that changed.
    "clients" => Clients,
    /// A bus of EventBridge.
    "eventbridge" => EventBridge,
}

impl Target {
    pub(crate) fn read(
        view: View<'_>,
        place: &Place<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<Target> {
        let mut fields = Fields::open(view, place, reader, KINDS)?;
        let mut targets = view.children().filter(|member| fields.knows(&member.key()));
        let (Some(target), None) = (targets.next(), targets.next()) else {
            let kinds = KINDS.join(", ");
            fields.problem(format!("must have exactly one target, one of {kinds}"));
            return None;
        };
        let kind = target.key();
        Target::read_kind(&kind, target, &place.key(&kind), reader)
    }
}

/// Message attributes of every notification; a registration cannot set them.
pub const OWN_ATTRIBUTES: [&str; 4] = ["registration", "state", "operation", "shadow"];

/// Reads the attributes that a registration adds to its messages.
fn attributes(fields: &mut Fields<'_, '_, '_, '_>) -> BTreeMap<String, String> {
    let mut attributes = BTreeMap::new();
    let Some(view) = fields.object("attributes") else {
        return attributes;
    };
    let count = view.children().count();
    if count > ATTRIBUTES {
        fields.problem_at(
            "attributes",
            format!("has {count} attributes, the limit is {ATTRIBUTES}"),
        );
    }
    for member in view.children() {
        let name = member.key().into_owned();
        match (attribute_fault(&name), member.as_str()) {
            (Some(reason), _) => fields.problem_below("attributes", &name, reason),
            (None, None) => fields.problem_below("attributes", &name, "must be a string"),
            (None, Some(text)) => match fields.resolved(&text) {
                Ok(value) if value.is_empty() => {
                    fields.problem_below("attributes", &name, "must not be empty")
                }
                Ok(value) => {
                    attributes.insert(name, value);
                }
                Err(reason) => fields.problem_below("attributes", &name, reason),
            },
        }
    }
    attributes
}

fn attribute_fault(name: &str) -> Option<String> {
    if OWN_ATTRIBUTES.contains(&name) {
        return Some("is set on every notification".to_owned());
    }
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("aws.") || lower.starts_with("amazon.") {
        return Some("names that start with aws. or amazon. are reserved".to_owned());
    }
    let allowed = !name.is_empty()
        && name.len() <= ATTRIBUTE_NAME_CHARACTERS
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
    let dots = name.starts_with('.') || name.ends_with('.') || name.contains("..");
    (!allowed || dots).then(|| {
        format!(
            "must be 1 to {ATTRIBUTE_NAME_CHARACTERS} letters, digits, _, - and single dots between them"
        )
    })
}
