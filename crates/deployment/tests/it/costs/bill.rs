//! Billed units of recorded calls.

use antumbra_cost::{Bill, Unit};

use crate::calls::Call;

/// Bytes of one billed AWS IoT message.
const IOT_BYTES: u64 = 5 * 1024;

/// The units of calls. Every published message is delivered to one device.
pub(super) fn bill_of(calls: &[Call]) -> Bill {
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

/// Adds an invocation with messages of a queue, which has a receive and a delete.
pub(super) fn queue_batch(bill: Bill) -> Bill {
    bill.and(Unit::Sqs, 2.0).and(Unit::Lambda, 1.0)
}

/// Adds a message of a device that a rule passes to a function.
pub(super) fn ruled(bill: Bill) -> Bill {
    let message = bill.and(Unit::IotMessage, 1.0);
    message.and(Unit::IotRule, 1.0).and(Unit::Lambda, 1.0)
}
