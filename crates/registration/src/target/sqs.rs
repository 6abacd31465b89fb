//! The target `sqs`: a queue.

use std::borrow::Cow;
use std::collections::BTreeMap;

use antumbra_shadow::View;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{arn_resource, attributes, is_name};
use crate::limits::SQS_DELAY_SECONDS;
use crate::problem::Place;
use crate::read::{Fields, Reader};

/// A queue of SQS.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "camelCase")]
pub struct Sqs {
    /// The queue's name, URL or ARN; may hold `${env:NAME}`. A name that ends in `.fifo` is a FIFO queue.
    pub queue: Queue,
    /// Seconds until a message can be received. Not for FIFO queues.
    #[schemars(with = "Option<u32>", range(max = 900), extend("default" = 0))]
    pub delay_seconds: u32,
    /// Message attributes besides registration, state, operation and shadow; values may hold `${env:NAME}`.
    #[schemars(with = "Option<BTreeMap<String, String>>", length(max = 6))]
    pub attributes: BTreeMap<String, String>,
}

/// How a queue is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Queue {
    /// By its name, in the account and region of the listener.
    Name(String),
    /// By its URL.
    Url(String),
    /// By its ARN.
    Arn(String),
}

impl Queue {
    fn parse(text: String) -> Result<Queue, String> {
        let (queue, name) = if text.starts_with("arn:") {
            let name = arn_resource(&text, "sqs").map(str::to_owned);
            (Queue::Arn(text), name)
        } else if text.starts_with("https://") || text.starts_with("http://") {
            let name = text
                .splitn(4, '/')
                .nth(3)
                .and_then(|path| path.rsplit('/').next())
                .map(str::to_owned);
            (Queue::Url(text), name)
        } else {
            (Queue::Name(text.clone()), Some(text))
        };
        match name {
            Some(name) if is_name(&name, 80) => Ok(queue),
            _ => Err(format!(
                "{:?} is not the name, URL or ARN of a queue",
                queue.as_str()
            )),
        }
    }

    /// As the registration wrote it, with the environment filled in.
    pub fn as_str(&self) -> &str {
        match self {
            Queue::Name(text) | Queue::Url(text) | Queue::Arn(text) => text,
        }
    }

    /// Whether it is a FIFO queue, which its name says.
    pub fn is_fifo(&self) -> bool {
        self.as_str().ends_with(".fifo")
    }
}

impl JsonSchema for Queue {
    fn schema_name() -> Cow<'static, str> {
        "Queue".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1 })
    }
}

impl Sqs {
    pub(super) fn read(
        view: View<'_>,
        place: &Place<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<Sqs> {
        let mut fields = Fields::open(
            view,
            place,
            reader,
            &["queue", "delaySeconds", "attributes"],
        )?;
        let queue = fields.required_text("queue", Queue::parse);
        let delay_seconds = fields
            .whole_number("delaySeconds", SQS_DELAY_SECONDS)
            .unwrap_or_default();
        let attributes = attributes(&mut fields);
        let queue = queue?;
        if delay_seconds > 0 && queue.is_fifo() {
            fields.problem_at("delaySeconds", "FIFO queues delay no single message");
        }
        Some(Sqs {
            queue,
            delay_seconds,
            attributes,
        })
    }
}
