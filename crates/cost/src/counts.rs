//! Counted units of each operation, of the version that is built.

use serde::{Deserialize, Serialize};

use crate::bill::Bill;

/// Units of each operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Counts {
    /// With its response.
    pub report_over_mqtt: Bill,
    /// That requests no response, where `ACCEPTED` is `requested`.
    pub report_without_response: Bill,
    pub report_over_http: Bill,
    pub acknowledging_report_over_http: Bill,
    pub notification_to_queue: Batched,
    /// `documents`, to one subscriber.
    pub documents: Batched,
    /// Comparison of reported and desired values that do not differ.
    pub delta: Batched,
    /// A change in the history and in the change feed.
    pub recorded_change: Batched,
    /// A change that is read from the change feed, in a page of 100.
    pub followed_change: Bill,
    pub inbox_message: Batched,
    pub inbox_read_over_mqtt: Bill,
    pub signal: Batched,
    /// One sweep that finds no silent sensor, with its marker.
    pub sweep: Bill,
    /// From the change of a sensor's state to the response of the client.
    pub delivery: Bill,
    pub dev: Idle,
    pub prod: Idle,
}

/// Units of an operation whose messages are handled in batches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Batched {
    pub message: Bill,
    /// Units of an invocation, whatever the number of its messages.
    pub invocation: Bill,
}

/// Parts of a deployment that cost without any device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Idle {
    /// Queues that Lambda polls.
    pub polled_queues: u32,
    pub polled_fifo_queues: u32,
    pub sweeps_per_hour: u32,
    pub alarm_metrics: u32,
    pub custom_metrics: u32,
    pub dashboards: u32,
    /// Largest line of metrics that a function logs, as CloudWatch counts it; 0 if they are switched off.
    pub log_bytes: u32,
    /// Traces invocations.
    pub traced: bool,
}

/// Profile of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    Dev,
    Prod,
}

impl Counts {
    /// The counts of this version.
    ///
    /// # Errors
    /// If `counts.json` is not what `scripts/write-costs` writes, which a test excludes.
    pub fn of_this_version() -> Result<Counts, serde_json::Error> {
        serde_json::from_str(include_str!("../counts.json"))
    }

    pub fn idle(&self, profile: Profile) -> Idle {
        match profile {
            Profile::Dev => self.dev,
            Profile::Prod => self.prod,
        }
    }
}

impl Batched {
    /// Separates what messages cost from what invocations cost: one invocation had `size` messages, the other twice as
    /// many.
    pub fn of(size: u32, once: Bill, twice: Bill) -> Batched {
        let message = twice.plus(once.times(-1.0)).each_of(size);
        let invocation = once.times(2.0).plus(twice.times(-1.0));
        Batched {
            message,
            invocation,
        }
    }

    /// Units of one message in a batch of this size.
    pub fn at(&self, batch: f64) -> Bill {
        self.message.plus(self.invocation.times(1.0 / batch))
    }
}
