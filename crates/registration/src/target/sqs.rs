//! The target `sqs`: a queue of SQS.

use std::collections::BTreeMap;

use antumbra_shadow::View;

use super::{MessageOptions, TargetKind, attributes};
use crate::arn::Queue;
use crate::limits::SQS_DELAY_SECONDS;
use crate::problem::Place;
use crate::read::{Fields, Reader};

/// A queue of SQS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sqs {
    /// The queue's name, URL or ARN; may hold `${env:NAME}`. A name that ends in `.fifo` is a FIFO queue.
    pub queue: Queue,
    /// Seconds until a message can be received. Not for FIFO queues.
    pub delay_seconds: u32,
    /// Message attributes besides registration, state, operation and shadow; values may hold `${env:NAME}`.
    pub attributes: BTreeMap<String, String>,
}

impl TargetKind for Sqs {
    fn address(&self) -> &str {
        self.queue.as_str()
    }

    fn attributes(&self) -> Option<&BTreeMap<String, String>> {
        Some(&self.attributes)
    }

    fn options(&self) -> MessageOptions<'_> {
        MessageOptions {
            delay_seconds: (self.delay_seconds > 0).then_some(self.delay_seconds),
            ..MessageOptions::default()
        }
    }
}

impl Sqs {
    pub(super) fn read(
        view: View<'_>,
        place: &Place<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<Sqs> {
        let known = &["queue", "delaySeconds", "attributes"];
        let mut fields = Fields::open(view, place, reader, known)?;
        let queue = fields.required_text("queue", |text| {
            let queue = Queue::parse(&text);
            match queue.is_valid() {
                true => Ok(queue),
                false => Err(format!("{text:?} is not the name, URL or ARN of a queue")),
            }
        });
        let delay_seconds = fields
            .whole_number("delaySeconds", SQS_DELAY_SECONDS)
            .unwrap_or_default();
        let attributes = attributes(&mut fields);
        let queue = queue?;
        if delay_seconds > 0 && queue.is_fifo() {
            fields.problem_at(
                "delaySeconds",
                "FIFO queues do not support a delay per message",
            );
        }
        Some(Sqs {
            queue,
            delay_seconds,
            attributes,
        })
    }
}
