//! The target `sns`: a topic.

use std::collections::BTreeMap;

use antumbra_shadow::View;
use schemars::JsonSchema;

use super::{arn_resource, attributes, is_name};
use crate::limits::SUBJECT_CHARACTERS;
use crate::problem::Place;
use crate::read::{Fields, Reader};

/// A topic of SNS.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "camelCase")]
pub struct Sns {
    /// The topic's ARN; may hold `${env:NAME}`. An ARN that ends in `.fifo` is a FIFO topic.
    #[schemars(length(min = 1))]
    pub topic: String,
    /// The subject of messages sent as e-mail.
    #[schemars(length(min = 1, max = 100))]
    pub subject: Option<String>,
    /// Message attributes for filter policies, besides registration, state, operation and shadow.
    #[schemars(with = "Option<BTreeMap<String, String>>", length(max = 6))]
    pub attributes: BTreeMap<String, String>,
}

impl Sns {
    /// Whether it is a FIFO topic, which its name says.
    pub fn is_fifo(&self) -> bool {
        self.topic.ends_with(".fifo")
    }

    pub(super) fn read(
        view: View<'_>,
        place: &Place<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<Sns> {
        let mut fields = Fields::open(view, place, reader, &["topic", "subject", "attributes"])?;
        let topic = fields.required_text("topic", |text| match arn_resource(&text, "sns") {
            Some(name) if is_name(name, 256) => Ok(text),
            _ => Err(format!("{text:?} is not the ARN of a topic")),
        });
        let subject = fields.text("subject", |text| {
            let fine = (1..=SUBJECT_CHARACTERS).contains(&text.len()) && text.bytes().all(|b| (b' '..=b'~').contains(&b)) && !text.starts_with(' ');
            if fine { Ok(text) } else { Err(format!("must be 1 to {SUBJECT_CHARACTERS} printable ASCII characters, the first no space")) }
        });
        let attributes = attributes(&mut fields);
        Some(Sns {
            topic: topic?,
            subject,
            attributes,
        })
    }
}
