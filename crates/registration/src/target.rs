//! Targets: where notifications go, one module each.

mod clients;
mod eventbridge;
mod mqtt;
mod sns;
mod sqs;

use std::collections::BTreeMap;

use antumbra_shadow::View;
use schemars::JsonSchema;

pub use clients::Clients;
pub use eventbridge::EventBridge;
pub use mqtt::{Mqtt, QualityOfService};
pub use sns::Sns;
pub use sqs::{Queue, Sqs};

use crate::limits::{ATTRIBUTE_NAME_CHARACTERS, ATTRIBUTES};
use crate::problem::Place;
use crate::read::{Fields, Reader};

/// Where notifications go.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum Target {
    /// A queue of SQS.
    Sqs(Sqs),
    /// A topic of SNS.
    Sns(Sns),
    /// An MQTT topic.
    Mqtt(Mqtt),
    /// The webhook clients linked to the sensor that changed.
    Clients(Clients),
    /// A bus of EventBridge.
    EventBridge(EventBridge),
}

impl Target {
    /// As registrations write it.
    pub fn kind(&self) -> &'static str {
        match self {
            Target::Sqs(_) => "sqs",
            Target::Sns(_) => "sns",
            Target::Mqtt(_) => "mqtt",
            Target::Clients(_) => "clients",
            Target::EventBridge(_) => "eventbridge",
        }
    }

    pub(crate) fn read(
        view: View<'_>,
        place: &Place<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<Target> {
        let mut fields = Fields::open(
            view,
            place,
            reader,
            &["sqs", "sns", "mqtt", "clients", "eventbridge"],
        )?;
        let mut targets = view.children().filter(|member| fields.knows(&member.key()));
        let (Some(target), None) = (targets.next(), targets.next()) else {
            fields.problem("must name exactly one target: sqs, sns, mqtt, clients or eventbridge");
            return None;
        };
        let name = target.key();
        let place = place.key(&name);
        match &*name {
            "sqs" => Sqs::read(target, &place, reader).map(Target::Sqs),
            "sns" => Sns::read(target, &place, reader).map(Target::Sns),
            "mqtt" => Mqtt::read(target, &place, reader).map(Target::Mqtt),
            "clients" => Clients::read(target, &place, reader).map(Target::Clients),
            _ => EventBridge::read(target, &place, reader).map(Target::EventBridge),
        }
    }
}

/// Message attributes that every notification has; a registration cannot give them another meaning.
pub const OWN_ATTRIBUTES: [&str; 4] = ["registration", "state", "operation", "shadow"];

/// Attributes a registration adds to its messages.
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
        return Some("is on every notification already".to_owned());
    }
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("aws.") || lower.starts_with("amazon.") {
        return Some("names that start with aws. or amazon. are reserved".to_owned());
    }
    let fine = !name.is_empty()
        && name.len() <= ATTRIBUTE_NAME_CHARACTERS
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
    let dots = name.starts_with('.') || name.ends_with('.') || name.contains("..");
    (!fine || dots).then(|| {
        format!(
            "must be 1 to {ATTRIBUTE_NAME_CHARACTERS} letters, digits, _ - and single dots within"
        )
    })
}

/// The last part of `arn:partition:service:region:account:resource`, if the ARN is of that service.
fn arn_resource<'t>(text: &'t str, service: &str) -> Option<&'t str> {
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    match parts.as_slice() {
        ["arn", partition, of, region, account, resource]
            if *of == service
                && partition.starts_with("aws")
                && !region.is_empty()
                && account.len() == 12
                && account.bytes().all(|b| b.is_ascii_digit()) =>
        {
            Some(resource)
        }
        _ => None,
    }
}

/// Letters, digits, `-` and `_`, up to a length, with or without `.fifo`, which counts.
fn is_name(text: &str, most: usize) -> bool {
    let stem = text.strip_suffix(".fifo").unwrap_or(text);
    !stem.is_empty()
        && text.len() <= most
        && stem
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}
