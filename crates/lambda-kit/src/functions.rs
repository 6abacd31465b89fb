//! Names, time limits and event sources of all functions, and the queues between them.
//!
//! The local stack and the simulation invoke the functions as this table says; a test compares the
//! deployment templates with it.

use std::time::Duration;

use antumbra_service::liveness::SWEEP_PERIOD;

/// Queue names. A deployment with another name than `antumbra` has another prefix.
pub mod queues {
    pub const INBOUND: &str = "antumbra-inbound";
    pub const OUTBOUND: &str = "antumbra-outbound";
    pub const SIGNALS: &str = "antumbra-signals";
    pub const DELIVERIES: &str = "antumbra-deliveries";
    pub const DELIVERIES_FIFO: &str = "antumbra-deliveries.fifo";
    pub const DELIVERIES_DEAD: &str = "antumbra-deliveries-dead";
    pub const DELIVERIES_DEAD_FIFO: &str = "antumbra-deliveries-dead.fifo";
    pub const QUARANTINE: &str = "antumbra-quarantine";
    pub const UNDELIVERABLE: &str = "antumbra-undeliverable";
    pub const SPILL: &str = "antumbra-spill.fifo";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionSpec {
    pub name: &'static str,
    pub timeout: Duration,
    pub event_source: EventSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSource {
    /// The streams of both tables, with [`STREAM`], and a queue.
    Streams {
        queue: &'static str,
        batch_size: u32,
    },
    /// The stream of the main table alone, with [`HISTORY_STREAM`].
    MainStream,
    /// Queues, each with its batch size.
    Queues(&'static [(&'static str, u32)]),
    /// AWS IoT rules, asynchronously.
    Rules(AsynchronousSettings),
    /// EventBridge, asynchronously.
    Schedule { period: Duration },
    /// API Gateway.
    HttpApi,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamSettings {
    pub batch_size: u32,
    /// Concurrent invocations per shard. Order is kept per item only.
    pub parallelization: u32,
    pub max_retries: u32,
    pub max_record_age: Duration,
    /// Queue that receives the metadata of discarded batches, or bucket that receives them whole.
    pub on_failure: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsynchronousSettings {
    pub max_retries: u32,
    pub max_event_age: Duration,
    /// Queue that receives failed invocations.
    pub on_failure: &'static str,
}

/// A stream keeps records for a day. Retrying ends after half of it, so that the other half is left to
/// read discarded records again.
pub const STREAM: StreamSettings = StreamSettings {
    batch_size: 100,
    parallelization: 2,
    max_retries: 100,
    max_record_age: Duration::from_secs(12 * 60 * 60),
    on_failure: queues::UNDELIVERABLE,
};

/// The history writer's own pace on the main table's stream. Discarded batches go to a bucket, with all their records:
/// the stream has no place for a third reader.
pub const HISTORY_STREAM: StreamSettings = StreamSettings {
    batch_size: 1000,
    parallelization: 1,
    max_retries: 100,
    max_record_age: Duration::from_secs(12 * 60 * 60),
    on_failure: "antumbra-failed-history",
};

/// A caller waits for the response: retries would come too late.
const REQUESTS: AsynchronousSettings = AsynchronousSettings {
    max_retries: 0,
    max_event_age: Duration::from_secs(60),
    on_failure: queues::UNDELIVERABLE,
};

/// Reports of devices that do not wait for the response must not be lost.
const REPORTS: AsynchronousSettings = AsynchronousSettings {
    max_retries: 2,
    max_event_age: Duration::from_secs(300),
    on_failure: queues::QUARANTINE,
};

pub const FUNCTIONS: &[FunctionSpec] = &[
    function(
        "stream-listener",
        30,
        EventSource::Streams {
            queue: queues::SPILL,
            batch_size: 10,
        },
    ),
    function("history-writer", 30, EventSource::MainStream),
    function(
        "message-ingest",
        10,
        EventSource::Queues(&[(queues::INBOUND, 10)]),
    ),
    function("message-get", 10, EventSource::Rules(REQUESTS)),
    function("message-query", 10, EventSource::Rules(REQUESTS)),
    function("message-next", 10, EventSource::Rules(REQUESTS)),
    function("message-delete", 10, EventSource::Rules(REQUESTS)),
    function("message-send", 10, EventSource::Rules(REQUESTS)),
    function("shadow-requests", 10, EventSource::Rules(REPORTS)),
    function(
        "sensor-ingest",
        10,
        EventSource::Queues(&[(queues::SIGNALS, 10)]),
    ),
    function(
        "liveness-sweep",
        55,
        EventSource::Schedule {
            period: SWEEP_PERIOD,
        },
    ),
    function(
        "webhook-deliver",
        30,
        // In order one message an invocation: the groups of a batch would wait for the slowest endpoint.
        EventSource::Queues(&[(queues::DELIVERIES, 10), (queues::DELIVERIES_FIFO, 1)]),
    ),
    function("http-api", 29, EventSource::HttpApi),
];

/// Returns the entry of the named function.
///
/// # Panics
/// If no function has the name.
pub fn spec(name: &str) -> &'static FunctionSpec {
    let found = FUNCTIONS.iter().find(|function| function.name == name);
    found.unwrap_or_else(|| panic!("{name} is not in FUNCTIONS"))
}

const fn function(
    name: &'static str,
    timeout_seconds: u64,
    event_source: EventSource,
) -> FunctionSpec {
    FunctionSpec {
        name,
        timeout: Duration::from_secs(timeout_seconds),
        event_source,
    }
}
