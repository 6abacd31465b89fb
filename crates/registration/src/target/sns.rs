//! The target `sns`: a topic of SNS.

use std::collections::BTreeMap;

use antumbra_shadow::View;

use super::{MessageOptions, TargetKind, attributes};
use crate::arn::{Arn, is_resource_name};
use crate::limits::SUBJECT_CHARACTERS;
use crate::problem::Place;
use crate::read::{Fields, Reader};

/// A topic of SNS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sns {
    /// The topic's ARN; may hold `${env:NAME}`. An ARN that ends in `.fifo` is a FIFO topic.
    pub topic: String,
    /// The subject of messages sent as e-mail.
    pub subject: Option<String>,
    /// Message attributes for filter policies, besides registration, state, operation and shadow.
    pub attributes: BTreeMap<String, String>,
}

impl TargetKind for Sns {
    fn address(&self) -> &str {
        &self.topic
    }

    fn attributes(&self) -> Option<&BTreeMap<String, String>> {
        Some(&self.attributes)
    }

    fn options(&self) -> MessageOptions<'_> {
        MessageOptions {
            subject: self.subject.as_deref(),
            ..MessageOptions::default()
        }
    }
}

impl Sns {
    /// Returns `true` if the ARN ends in `.fifo`.
    pub fn is_fifo(&self) -> bool {
        self.topic.ends_with(".fifo")
    }

    pub(super) fn read(
        view: View<'_>,
        place: &Place<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<Sns> {
        let mut fields = Fields::open(view, place, reader, &["topic", "subject", "attributes"])?;
        let topic = fields.required_text("topic", |text| match Arn::parse("sns", &text) {
            Some(arn) if is_resource_name(arn.resource, 256) => Ok(text),
            _ => Err(format!("{text:?} is not the ARN of a topic")),
        });
        let subject = fields.text("subject", |text| {
            let printable = |byte| (b' '..=b'~').contains(&byte);
            let valid = (1..=SUBJECT_CHARACTERS).contains(&text.len())
                && text.bytes().all(printable)
                && !text.starts_with(' ');
            match valid {
                true => Ok(text),
                false => Err(format!(
                    "must be 1 to {SUBJECT_CHARACTERS} printable ASCII characters, the first no space"
                )),
            }
        });
        let attributes = attributes(&mut fields);
        Some(Sns {
            topic: topic?,
            subject,
            attributes,
        })
    }
}
