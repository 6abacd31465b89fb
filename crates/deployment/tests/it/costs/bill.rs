//! Billable units of recorded calls, and their price.

use std::fmt;

use super::prices::{UNITS, Unit};
use crate::calls::Call;

/// Bytes of one billed AWS IoT message.
const IOT_BYTES: u64 = 5 * 1024;

/// Counts of billable units.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Bill([f64; UNITS.len()]);

impl Bill {
    /// The units of calls. Every published message is delivered to one device.
    pub(super) fn of(calls: &[Call]) -> Bill {
        let mut bill = Bill::default();
        for call in calls {
            bill = match &call.service[..] {
                "dynamodb" => {
                    let units = call.units;
                    assert!(units.read + units.write > 0.0, "{call:?}");
                    let bill = bill.and(Unit::Read, units.read);
                    bill.and(Unit::Write, units.write)
                }
                "sqs" => {
                    let queue = ["QueueUrl", "QueueName"].map(|name| call.body[name].as_str());
                    let queue = queue.into_iter().flatten().next().unwrap();
                    match queue.ends_with(".fifo") {
                        true => bill.and(Unit::SqsFifo, 1.0),
                        false => bill.and(Unit::Sqs, 1.0),
                    }
                }
                "iotdata" => {
                    let bytes = call.body["bytes"].as_u64().unwrap();
                    bill.and(Unit::IotMessage, 2.0 * bytes.div_ceil(IOT_BYTES) as f64)
                }
                other => panic!("no price for {other}"),
            }
        }
        bill
    }

    /// Adds units.
    pub(super) fn and(mut self, unit: Unit, count: f64) -> Bill {
        self.0[unit as usize] += count;
        self
    }

    /// Adds an invocation with messages of a queue, which has a receive and a delete.
    pub(super) fn queue_batch(self) -> Bill {
        self.and(Unit::Sqs, 2.0).and(Unit::Lambda, 1.0)
    }

    /// Adds a message of a device that a rule passes to a function.
    pub(super) fn ruled(self) -> Bill {
        let message = self.and(Unit::IotMessage, 1.0);
        message.and(Unit::IotRule, 1.0).and(Unit::Lambda, 1.0)
    }

    pub(super) fn plus(self, other: Bill) -> Bill {
        Bill(std::array::from_fn(|unit| self.0[unit] + other.0[unit]))
    }

    pub(super) fn times(self, factor: f64) -> Bill {
        Bill(self.0.map(|count| count * factor))
    }

    /// The share of one of `count`.
    pub(super) fn each_of(self, count: u32) -> Bill {
        self.times(1.0 / f64::from(count))
    }

    /// Price per million.
    pub(super) fn dollars(self) -> f64 {
        let counts = self.0.into_iter().zip(UNITS);
        counts.map(|(count, (_, price))| count * price).sum()
    }
}

impl fmt::Display for Bill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0.into_iter().zip(UNITS);
        let counts = counts.filter(|(count, _)| *count > 0.0);
        let texts = counts.map(|(count, (name, _))| {
            let plural = if count == 1.0 { "" } else { "s" };
            let count = format!("{count:.3}");
            let count = count.trim_end_matches('0').trim_end_matches('.');
            format!("{count} {name}{plural}")
        });
        f.write_str(&texts.collect::<Vec<_>>().join(", "))
    }
}
