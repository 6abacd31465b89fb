//! EventBridge for the local stack, over its JSON protocol. A bus is a queue: every event arrives there as a rule
//! without a pattern would deliver it to SQS. There are no rules.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Response;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::journal::QueueEntry;
use crate::queue::{Attributes, NewMessage};
use crate::service::{Queues, State, now_ms};
use crate::sqs::read;

/// Prefix of the header `x-amz-target`.
pub const TARGET: &str = "AWSEvents.";
/// The bus that every account has.
const DEFAULT: &str = "default";
/// Prefix of the queue of a bus.
const PREFIX: &str = "antumbra-events-";
/// Longest name of a queue.
const NAME_LENGTH: usize = 80;
const MAX_ENTRIES: usize = 10;
/// Largest call: the entries with their sources, detail types and details.
const MAX_BYTES: usize = 1024 * 1024;
/// Events that nobody reads are kept for as long as SQS keeps messages.
const RETENTION_SECONDS: u64 = 14 * 24 * 60 * 60;

/// Returns the name of the queue that gets the events of a bus, which is given by name or ARN.
pub fn bus_queue(bus: &str) -> String {
    let name = bus.rsplit(":event-bus/").next().unwrap_or(bus);
    let plain = |c: char| match c.is_ascii_alphanumeric() || "-_".contains(c) {
        true => c,
        false => '-',
    };
    let queue: String = PREFIX.chars().chain(name.chars().map(plain)).collect();
    if queue.ends_with(name) && queue.len() <= NAME_LENGTH {
        return queue;
    }
    // Queues have shorter names and fewer characters: a part of the hash tells buses apart.
    use sha2::Digest as _;
    let hash = sha2::Sha256::digest(name.as_bytes());
    let hash: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let start: String = queue.chars().take(NAME_LENGTH - hash.len() - 1).collect();
    format!("{start}-{hash}")
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PutEvents {
    entries: Vec<EventEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EventEntry {
    #[serde(default)]
    source: String,
    #[serde(default)]
    detail_type: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    resources: Vec<String>,
    /// Unix seconds.
    time: Option<f64>,
    event_bus_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CreateEventBus {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListEventBuses {
    #[serde(default)]
    name_prefix: String,
}

impl Queues {
    /// Serves one request of the JSON protocol.
    pub fn eventbridge(&self, operation: &str, body: &[u8]) -> Response<Bytes> {
        let result = match operation {
            "PutEvents" => read(body).and_then(|request| self.put_events(request)),
            "CreateEventBus" => read(body).and_then(|CreateEventBus { name }| {
                self.ensure_bus(&name)?;
                Ok(json!({ "EventBusArn": self.bus_arn(&name) }))
            }),
            "ListEventBuses" => read(body).map(|request| self.list_buses(&request)),
            other => {
                let text = format!("the local EventBridge does not support {other}");
                Err(ApiError::new("UnknownOperationException", text))
            }
        };
        let mut response = Response::builder()
            .header("content-type", "application/x-amz-json-1.1")
            .header("x-amzn-requestid", uuid::Uuid::new_v4().to_string());
        let body = result.unwrap_or_else(|error| {
            response = std::mem::take(&mut response).status(error.status());
            json!({ "__type": error.code, "message": error.message })
        });
        // The headers are valid.
        response.body(body.to_string().into()).unwrap_or_default()
    }

    /// Creates the queue of a bus unless it exists.
    pub fn ensure_bus(&self, bus: &str) -> Result<(), ApiError> {
        ensure(&mut self.lock(), bus)
    }

    fn bus_arn(&self, name: &str) -> String {
        let (region, account) = (&self.config().region, &self.config().account);
        format!("arn:aws:events:{region}:{account}:event-bus/{name}")
    }

    fn list_buses(&self, request: &ListEventBuses) -> Value {
        let state = self.lock();
        let tagged = state
            .queues
            .values()
            .filter_map(|queue| queue.entry.tags.get(TAG));
        let mut names: Vec<&str> = tagged.map(String::as_str).collect();
        if !names.contains(&DEFAULT) {
            names.push(DEFAULT);
        }
        names.retain(|name| name.starts_with(&request.name_prefix));
        let bus = |name: &str| json!({ "Name": name, "Arn": self.bus_arn(name) });
        json!({ "EventBuses": names.into_iter().map(bus).collect::<Vec<_>>() })
    }

    /// Each entry has its own result.
    fn put_events(&self, request: PutEvents) -> Result<Value, ApiError> {
        if !(1..=MAX_ENTRIES).contains(&request.entries.len()) {
            let text = format!("a call has 1 to {MAX_ENTRIES} entries");
            return Err(ApiError::new("ValidationException", text));
        }
        let bytes: usize = request.entries.iter().map(EventEntry::bytes).sum();
        if bytes > MAX_BYTES {
            let text = format!("the entries have {bytes} bytes, the limit is {MAX_BYTES}");
            return Err(ApiError::new("ValidationException", text));
        }
        let mut state = self.lock();
        let results: Vec<Result<String, ApiError>> = request
            .entries
            .iter()
            .map(|entry| self.put_event(&mut state, entry))
            .collect();
        let failed = results.iter().filter(|result| result.is_err()).count();
        let result = |result: Result<String, ApiError>| match result {
            Ok(id) => json!({ "EventId": id }),
            Err(error) => json!({ "ErrorCode": error.code, "ErrorMessage": error.message }),
        };
        let entries: Vec<Value> = results.into_iter().map(result).collect();
        Ok(json!({ "FailedEntryCount": failed, "Entries": entries }))
    }

    fn put_event(&self, state: &mut State, entry: &EventEntry) -> Result<String, ApiError> {
        let bus = entry.event_bus_name.as_deref().unwrap_or(DEFAULT);
        if entry.source.is_empty() || entry.detail_type.is_empty() {
            let text = "Source and DetailType are required";
            return Err(ApiError::new("InvalidArgument", text));
        }
        let is_own = !bus.starts_with("arn:") || bus.starts_with(&self.bus_arn(""));
        let name = bus.rsplit(":event-bus/").next().unwrap_or(bus);
        if name == DEFAULT {
            ensure(state, name)?;
        }
        let queue = bus_queue(name);
        if !is_own || state.queue(&queue).is_err() {
            let text = format!("Event bus {bus} does not exist.");
            return Err(ApiError::new("InvalidArgument", text));
        }
        let id = uuid::Uuid::new_v4().to_string();
        let body = self.event(&id, entry)?;
        let message = NewMessage {
            body,
            ..NewMessage::default()
        };
        state.send(&queue, message)?;
        Ok(id)
    }

    /// The event as targets receive it. The detail stays as it was sent, so that its numbers stay exact.
    fn event(&self, id: &str, entry: &EventEntry) -> Result<String, ApiError> {
        let is_object = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(&entry.detail).is_ok();
        if !is_object {
            let text = "Detail is malformed.";
            return Err(ApiError::new("MalformedDetail", text));
        }
        let ms = entry
            .time
            .map_or(now_ms(), |seconds| (seconds * 1000.0) as u64);
        let time = jiff::Timestamp::from_millisecond(ms as i64).unwrap_or_default();
        let mut event = json!({
            "version": "0",
            "id": id,
            "detail-type": entry.detail_type,
            "source": entry.source,
            "account": self.config().account,
            "time": time.strftime("%FT%TZ").to_string(),
            "region": self.config().region,
            "resources": entry.resources,
        })
        .to_string();
        event.pop();
        Ok(format!("{event},\"detail\":{}}}", entry.detail))
    }
}

impl EventEntry {
    fn bytes(&self) -> usize {
        let resources: usize = self.resources.iter().map(String::len).sum();
        self.source.len() + self.detail_type.len() + self.detail.len() + resources
    }
}

/// Tag of a bus's queue, with the name of the bus.
const TAG: &str = "antumbra:event-bus";

fn ensure(state: &mut State, bus: &str) -> Result<(), ApiError> {
    let queue = bus_queue(bus);
    if state.queue(&queue).is_ok() {
        return Ok(());
    }
    state.put_queue(QueueEntry {
        name: queue,
        attributes: Attributes {
            retention_seconds: RETENTION_SECONDS,
            ..Attributes::default()
        },
        created_ms: now_ms(),
        tags: BTreeMap::from([(TAG.to_owned(), bus.to_owned())]),
        ..QueueEntry::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bus_has_a_queue_of_its_own() {
        assert_eq!(bus_queue("default"), "antumbra-events-default");
        let arn = "arn:aws:events:us-east-1:000000000000:event-bus/alerts";
        assert_eq!(bus_queue(arn), "antumbra-events-alerts");
        assert_ne!(bus_queue("a.b"), bus_queue("a-b"));
        let [long, longer] = ["x".repeat(100), "x".repeat(101)];
        assert_ne!(bus_queue(&long), bus_queue(&longer));
        for name in ["a.b", "aws.partner/x/y", &long] {
            let queue = bus_queue(name);
            assert!(
                queue.len() <= NAME_LENGTH && crate::queue::is_name(&queue),
                "{queue}"
            );
        }
    }
}
