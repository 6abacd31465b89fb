//! Billable units of recorded calls, and their price.

use std::fmt;

use super::prices;
use crate::calls::Call;

/// Bytes of one billed AWS IoT message.
const IOT_BYTES: u64 = 5 * 1024;

/// Counts of billable units.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Bill {
    read_units: f64,
    write_units: f64,
    sqs: f64,
    sqs_fifo: f64,
    lambda: f64,
    iot_messages: f64,
    iot_rules: f64,
    api: f64,
    shadow_operations: f64,
}

impl Bill {
    /// The units of calls. Every published message is delivered to one device.
    pub(super) fn of(calls: &[Call]) -> Bill {
        let mut bill = Bill::default();
        for call in calls {
            match &call.service[..] {
                "dynamodb" => {
                    let units = call.units;
                    assert!(units.read + units.write > 0.0, "{call:?}");
                    bill.read_units += units.read;
                    bill.write_units += units.write;
                }
                "sqs" => {
                    let queue = ["QueueUrl", "QueueName"].map(|name| call.body[name].as_str());
                    let queue = queue.into_iter().flatten().next().unwrap();
                    match queue.ends_with(".fifo") {
                        true => bill.sqs_fifo += 1.0,
                        false => bill.sqs += 1.0,
                    }
                }
                "iotdata" => {
                    let bytes = call.body["bytes"].as_u64().unwrap();
                    bill.iot_messages += 2.0 * bytes.div_ceil(IOT_BYTES) as f64;
                }
                other => panic!("no price for {other}"),
            }
        }
        bill
    }

    /// Invocations of functions.
    pub(super) fn lambda_requests(mut self, count: f64) -> Bill {
        self.lambda += count;
        self
    }

    /// Invocations with messages of a queue: each has a receive and a delete.
    pub(super) fn queue_batches(mut self, count: f64, fifo: bool) -> Bill {
        match fifo {
            true => self.sqs_fifo += 2.0 * count,
            false => self.sqs += 2.0 * count,
        }
        self.lambda_requests(count)
    }

    pub(super) fn iot_messages(mut self, count: f64) -> Bill {
        self.iot_messages += count;
        self
    }

    /// A message of a device that a rule passes to a function.
    pub(super) fn ruled(self, count: f64) -> Bill {
        let bill = self.iot_messages(count).lambda_requests(count);
        bill.iot_rules(count)
    }

    pub(super) fn iot_rules(mut self, count: f64) -> Bill {
        self.iot_rules += count;
        self
    }

    pub(super) fn sqs_requests(mut self, count: f64) -> Bill {
        self.sqs += count;
        self
    }

    pub(super) fn api_requests(mut self, count: f64) -> Bill {
        self.api += count;
        self.lambda_requests(count)
    }

    pub(super) fn shadow_operations(mut self, count: f64) -> Bill {
        self.shadow_operations += count;
        self
    }

    pub(super) fn plus(&self, other: &Bill) -> Bill {
        Bill {
            read_units: self.read_units + other.read_units,
            write_units: self.write_units + other.write_units,
            sqs: self.sqs + other.sqs,
            sqs_fifo: self.sqs_fifo + other.sqs_fifo,
            lambda: self.lambda + other.lambda,
            iot_messages: self.iot_messages + other.iot_messages,
            iot_rules: self.iot_rules + other.iot_rules,
            api: self.api + other.api,
            shadow_operations: self.shadow_operations + other.shadow_operations,
        }
    }

    pub(super) fn times(&self, factor: f64) -> Bill {
        Bill {
            read_units: self.read_units * factor,
            write_units: self.write_units * factor,
            sqs: self.sqs * factor,
            sqs_fifo: self.sqs_fifo * factor,
            lambda: self.lambda * factor,
            iot_messages: self.iot_messages * factor,
            iot_rules: self.iot_rules * factor,
            api: self.api * factor,
            shadow_operations: self.shadow_operations * factor,
        }
    }

    /// The share of one of `count`.
    pub(super) fn each_of(&self, count: u32) -> Bill {
        self.times(1.0 / f64::from(count))
    }

    fn counts(&self) -> [(f64, &'static str, f64); 9] {
        [
            (self.read_units, "read unit", prices::READ_UNIT),
            (self.write_units, "write unit", prices::WRITE_UNIT),
            (self.sqs, "SQS call", prices::SQS_REQUEST),
            (self.sqs_fifo, "SQS FIFO call", prices::SQS_FIFO_REQUEST),
            (self.lambda, "Lambda call", prices::LAMBDA_REQUEST),
            (self.iot_messages, "IoT message", prices::IOT_MESSAGE),
            (self.iot_rules, "IoT rule", prices::IOT_RULE),
            (self.api, "API request", prices::API_REQUEST),
            (
                self.shadow_operations,
                "shadow operation",
                prices::SHADOW_OPERATION,
            ),
        ]
    }

    /// Price per million.
    pub(super) fn dollars(&self) -> f64 {
        let counts = self.counts().into_iter();
        counts.map(|(count, _, price)| count * price).sum()
    }
}

impl fmt::Display for Bill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts().into_iter().filter(|(count, ..)| *count > 0.0);
        let counts_text = counts.map(|(count, what, _)| {
            let plural = if count == 1.0 { "" } else { "s" };
            let count = format!("{count:.3}");
            let count = count.trim_end_matches('0').trim_end_matches('.');
            format!("{count} {what}{plural}")
        });
        f.write_str(&counts_text.collect::<Vec<_>>().join(", "))
    }
}
