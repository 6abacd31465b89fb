//! Operations on queues.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Empty, queue_name};
use crate::error::ApiError;
use crate::journal::QueueEntry;
use crate::queue::{Redrive, is_name};
use crate::service::{INTERNAL, QueueState, Queues, now_ms};

/// A request about a queue; each operation reads some of the members.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct QueueRequest {
    queue_url: String,
    #[serde(default)]
    attribute_names: Vec<String>,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    #[serde(default)]
    tag_keys: Vec<String>,
}

/// A request with the name of a queue instead of its URL.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct NamedQueue {
    queue_name: String,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default, rename = "tags")]
    tags: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ListQueues {
    #[serde(default)]
    queue_name_prefix: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct StartMove {
    source_arn: String,
    destination_arn: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct QueueUrl {
    queue_url: String,
}

impl Queues {
    pub(super) fn create_queue(&self, request: NamedQueue) -> Result<QueueUrl, ApiError> {
        let name = &request.queue_name;
        if name.len() > 80 || !is_name(name.strip_suffix(".fifo").unwrap_or(name)) {
            return Err(ApiError::invalid(
                "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
            ));
        }
        let fifo = request.attributes.get("FifoQueue");
        if fifo.is_some_and(|fifo| fifo == "true") != name.ends_with(".fifo") {
            return Err(ApiError::invalid(
                "The name of a FIFO queue can only end in .fifo, with FifoQueue true",
            ));
        }
        let mut state = self.lock();
        let found = state.queues.get(name).map(|found| found.entry.clone());
        let mut wanted = found.clone().unwrap_or_else(|| QueueEntry {
            name: name.clone(),
            tags: request.tags,
            created_ms: now_ms(),
            ..QueueEntry::default()
        });
        apply(&request.attributes, &mut wanted)?;
        match found {
            None => state.put_queue(wanted)?,
            Some(found) if found.attributes == wanted.attributes => {}
            Some(_) => {
                return Err(ApiError::with_query_code(
                    "QueueNameExists",
                    "QueueAlreadyExists",
                    "A queue already exists with the same name and a different value for an attribute",
                ));
            }
        }
        Ok(QueueUrl {
            queue_url: self.queue_url(name),
        })
    }

    pub(super) fn delete_queue(&self, request: &QueueRequest) -> Result<Empty, ApiError> {
        let deleted = self.lock().delete_queue(queue_name(&request.queue_url)?);
        deleted.map(|()| Empty {})
    }

    pub(super) fn purge_queue(&self, request: &QueueRequest) -> Result<Empty, ApiError> {
        let purged = self.lock().purge(queue_name(&request.queue_url)?);
        purged.map(|()| Empty {})
    }

    pub(super) fn get_queue_url(&self, request: &NamedQueue) -> Result<QueueUrl, ApiError> {
        self.lock().queue(&request.queue_name)?;
        Ok(QueueUrl {
            queue_url: self.queue_url(&request.queue_name),
        })
    }

    pub(super) fn list_queues(&self, request: &ListQueues) -> Value {
        let state = self.lock();
        let names = state.queues.keys();
        let names = names.filter(|name| {
            name.starts_with(&request.queue_name_prefix) && !name.starts_with(INTERNAL)
        });
        let urls: Vec<String> = names.map(|name| self.queue_url(name)).collect();
        json!({ "QueueUrls": urls })
    }

    /// Lists the queues with this dead-letter queue.
    pub(super) fn list_sources(&self, request: &QueueRequest) -> Result<Value, ApiError> {
        let (name, state) = (queue_name(&request.queue_url)?, self.lock());
        state.queue(name)?;
        let sources = state
            .queues
            .values()
            .filter(|found| is_source_of(found, name));
        let urls: Vec<_> = sources
            .map(|found| self.queue_url(found.queue.name()))
            .collect();
        Ok(json!({ "queueUrls": urls }))
    }

    pub(super) fn get_attributes(&self, request: &QueueRequest) -> Result<Value, ApiError> {
        let state = self.lock();
        let mut all = self.describe(state.queue(queue_name(&request.queue_url)?)?);
        all.retain(|name, _| {
            let mut wanted = request.attribute_names.iter();
            wanted.any(|wanted| wanted == "All" || wanted == name)
        });
        match all.is_empty() {
            true => Ok(json!({})),
            false => Ok(json!({ "Attributes": all })),
        }
    }

    fn describe(&self, found: &QueueState) -> BTreeMap<String, String> {
        let (queue, entry) = (&found.queue, &found.entry);
        let attributes = queue.attributes();
        let counts = queue.counts(now_ms());
        let mut all = entry.other_attributes.clone();
        let numbers = [
            ("ApproximateNumberOfMessages", counts.visible as u64),
            (
                "ApproximateNumberOfMessagesNotVisible",
                counts.in_flight as u64,
            ),
            ("ApproximateNumberOfMessagesDelayed", counts.delayed as u64),
            ("CreatedTimestamp", entry.created_ms / 1000),
            ("LastModifiedTimestamp", entry.modified_ms / 1000),
            ("VisibilityTimeout", attributes.visibility_seconds),
            ("DelaySeconds", attributes.delay_seconds),
            ("MaximumMessageSize", attributes.max_message_bytes as u64),
            ("MessageRetentionPeriod", attributes.retention_seconds),
            ("ReceiveMessageWaitTimeSeconds", attributes.wait_seconds),
        ];
        let mut add = |name: &str, value: String| all.insert(name.to_owned(), value);
        for (name, number) in numbers {
            add(name, number.to_string());
        }
        add("QueueArn", self.queue_arn(queue.name()));
        if let Some(redrive) = &attributes.redrive {
            let policy = json!({
                "deadLetterTargetArn": self.queue_arn(&redrive.dead_letter_queue),
                "maxReceiveCount": redrive.max_receive_count,
            });
            add("RedrivePolicy", policy.to_string());
        }
        if queue.is_fifo() {
            add("FifoQueue", "true".to_owned());
            let content_based = attributes.content_based_deduplication;
            add("ContentBasedDeduplication", content_based.to_string());
        }
        all
    }

    pub(super) fn set_attributes(&self, request: &QueueRequest) -> Result<Empty, ApiError> {
        self.change_queue(&request.queue_url, |entry| {
            apply(&request.attributes, entry)
        })
    }

    pub(super) fn tag_queue(&self, request: QueueRequest) -> Result<Empty, ApiError> {
        self.change_queue(&request.queue_url, |entry| {
            entry.tags.extend(request.tags);
            entry.tags.retain(|key, _| !request.tag_keys.contains(key));
            Ok(())
        })
    }

    fn change_queue(
        &self,
        url: &str,
        change: impl FnOnce(&mut QueueEntry) -> Result<(), ApiError>,
    ) -> Result<Empty, ApiError> {
        let mut state = self.lock();
        let mut entry = state.queue(queue_name(url)?)?.entry.clone();
        change(&mut entry)?;
        state.put_queue(entry).map(|()| Empty {})
    }

    pub(super) fn list_tags(&self, request: &QueueRequest) -> Result<Value, ApiError> {
        let state = self.lock();
        let found = state.queue(queue_name(&request.queue_url)?)?;
        Ok(json!({ "Tags": found.entry.tags }))
    }

    pub(super) fn start_move(&self, request: &StartMove) -> Result<Value, ApiError> {
        let of_arn = |arn: &str| arn.rsplit(':').next().unwrap_or_default().to_owned();
        let source = of_arn(&request.source_arn);
        let destination = request.destination_arn.as_deref().map(of_arn);
        let mut state = self.lock();
        let exists = |name: &String| state.queues.contains_key(name);
        if !exists(&source) || !destination.as_ref().is_none_or(exists) {
            let text = "The resource does not exist.";
            return Err(ApiError::new("ResourceNotFoundException", text));
        }
        if !state
            .queues
            .values()
            .any(|found| is_source_of(found, &source))
        {
            return Err(ApiError::invalid(
                "Source queue must be configured as a Dead Letter Queue.",
            ));
        }
        state.move_messages(&source, destination.as_deref())?;
        Ok(json!({ "TaskHandle": URL_SAFE_NO_PAD.encode(format!("{source}:{}", now_ms())) }))
    }
}

fn apply(given: &BTreeMap<String, String>, entry: &mut QueueEntry) -> Result<(), ApiError> {
    let to = &mut entry.attributes;
    for (name, value) in given {
        let invalid = || {
            let text = format!("Invalid value for the parameter {name}.");
            ApiError::new("InvalidAttributeValue", text)
        };
        let number = |from: u64, to: u64| {
            let number = value.parse().ok();
            number
                .filter(|number| (from..=to).contains(number))
                .ok_or_else(invalid)
        };
        match name.as_str() {
            "VisibilityTimeout" => to.visibility_seconds = number(0, 43_200)?,
            "DelaySeconds" => to.delay_seconds = number(0, 900)?,
            "MessageRetentionPeriod" => to.retention_seconds = number(60, 1_209_600)?,
            "MaximumMessageSize" => to.max_message_bytes = number(1024, 1_048_576)? as usize,
            "ReceiveMessageWaitTimeSeconds" => to.wait_seconds = number(0, 20)?,
            "ContentBasedDeduplication" => to.content_based_deduplication = value == "true",
            "RedrivePolicy" if value.is_empty() => to.redrive = None,
            "RedrivePolicy" => to.redrive = Some(redrive(value).ok_or_else(invalid)?),
            "FifoQueue" => {}
            "Policy"
            | "RedriveAllowPolicy"
            | "KmsMasterKeyId"
            | "KmsDataKeyReusePeriodSeconds"
            | "SqsManagedSseEnabled"
            | "DeduplicationScope"
            | "FifoThroughputLimit" => {
                entry.other_attributes.insert(name.clone(), value.clone());
            }
            _ => {
                let text = format!("Unknown Attribute {name}.");
                return Err(ApiError::new("InvalidAttributeName", text));
            }
        }
    }
    Ok(())
}

/// Reads a redrive policy; `None` if it is invalid. The count may be a number or a text.
fn redrive(policy: &str) -> Option<Redrive> {
    let policy: Value = serde_json::from_str(policy).ok()?;
    let count = &policy["maxReceiveCount"];
    let count = count.as_u64().or_else(|| count.as_str()?.parse().ok())?;
    let (_, queue) = policy["deadLetterTargetArn"].as_str()?.rsplit_once(':')?;
    Some(Redrive {
        dead_letter_queue: queue.to_owned(),
        max_receive_count: u32::try_from(count)
            .ok()
            .filter(|count| (1..=1000).contains(count))?,
    })
}

fn is_source_of(found: &QueueState, dead_letter_queue: &str) -> bool {
    let redrive = found.queue.attributes().redrive.as_ref();
    redrive.is_some_and(|redrive| redrive.dead_letter_queue == dead_letter_queue)
}
