//! The target `eventbridge`: an event bus.

use antumbra_shadow::View;

use super::{MessageOptions, TargetKind};
use crate::arn::Arn;
use crate::limits::DETAIL_TYPE_CHARACTERS;
use crate::problem::Place;
use crate::read::{Fields, Reader};

/// A bus of EventBridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventBridge {
    /// The bus's name or ARN; may hold `${env:NAME}`.
    pub bus: String,
    pub detail_type: String,
}

impl TargetKind for EventBridge {
    fn address(&self) -> &str {
        &self.bus
    }

    fn options(&self) -> MessageOptions<'_> {
        MessageOptions {
            detail_type: Some(&self.detail_type),
            ..MessageOptions::default()
        }
    }
}

impl EventBridge {
    /// The default detail type.
    pub const DETAIL_TYPE: &str = "Shadow Changed";

    pub(super) fn read(
        view: View<'_>,
        place: &Place<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<EventBridge> {
        let mut fields = Fields::open(view, place, reader, &["bus", "detailType"])?;
        let bus = fields.required_text("bus", |text| {
            let name = match Arn::parse("events", &text) {
                Some(arn) => arn.resource.strip_prefix("event-bus/").unwrap_or_default(),
                None => &text,
            };
            let valid = (1..=256).contains(&name.len())
                && name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"/_.-".contains(&b));
            match valid {
                true => Ok(text),
                false => Err(format!("{text:?} is not the name or ARN of a bus")),
            }
        });
        let detail_type = fields.text("detailType", |text| match text.chars().count() {
            1..=DETAIL_TYPE_CHARACTERS => Ok(text),
            _ => Err(format!("must be 1 to {DETAIL_TYPE_CHARACTERS} characters")),
        });
        Some(EventBridge {
            bus: bus?,
            detail_type: detail_type.unwrap_or_else(|| Self::DETAIL_TYPE.to_owned()),
        })
    }
}
