//! Receivers of notifications and deliveries. Both check the order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use antumbra_local::receiver::Receiver;
use antumbra_shadow::Timestamp;
use aws_sdk_sqs::types::DeleteMessageBatchRequestEntry;
use serde_json::Value;

use crate::measure::{Meter, since};

/// Numbers received for one key; they start at 1 without a gap.
#[derive(Debug, Default, Clone)]
struct Key {
    /// Id of each received number.
    ids: Vec<u128>,
    duplicates: usize,
}

/// Numbers received for all keys, and the faults found.
#[derive(Debug, Default)]
pub(crate) struct Received {
    keys: Mutex<HashMap<String, Key>>,
    faults: Mutex<Vec<String>>,
    total: AtomicU64,
}

impl Received {
    /// Records a number of a key: the next one, or a duplicate under the same id. Anything else is a fault.
    fn take(&self, key: &str, number: u64, id: &str) {
        let id = hash(id);
        let mut keys = self.keys.lock().unwrap();
        let of = keys.entry(key.to_owned()).or_default();
        let next = of.ids.len() as u64 + 1;
        if number == next {
            of.ids.push(id);
            self.total.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let before = (number as usize)
            .checked_sub(1)
            .and_then(|at| of.ids.get(at));
        match before {
            Some(before) if *before == id => of.duplicates += 1,
            Some(_) => self.fault(format!("{key}: {number} received again under another id")),
            None => self.fault(format!("{key}: {number} received where {next} was due")),
        }
    }

    fn fault(&self, what: String) {
        self.faults.lock().unwrap().push(what);
    }

    pub(crate) fn faults(&self) -> Vec<String> {
        self.faults.lock().unwrap().clone()
    }

    /// Count of numbers received for a key.
    pub(crate) fn count(&self, key: &str) -> u64 {
        let keys = self.keys.lock().unwrap();
        keys.get(key).map_or(0, |of| of.ids.len() as u64)
    }

    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    pub(crate) fn duplicates(&self) -> usize {
        let keys = self.keys.lock().unwrap();
        keys.values().map(|of| of.duplicates).sum()
    }
}

fn hash(id: &str) -> u128 {
    // Notifications have 32 hexadecimal digits; an FNV hash distinguishes the others well enough.
    u128::from_str_radix(id, 16).unwrap_or_else(|_| {
        id.bytes()
            .fold(0x6c62272e07bb014262b821756295c58d, |hash, byte| {
                (hash ^ u128::from(byte)).wrapping_mul(0x0000000001000000000000000000013b)
            })
    })
}

/// Receives notifications until the queue is gone.
pub(crate) async fn notifications(
    sqs: aws_sdk_sqs::Client,
    queue: String,
    received: Arc<Received>,
    meter: Arc<Meter>,
) {
    loop {
        let request = sqs.receive_message().queue_url(&queue);
        let request = request.max_number_of_messages(10).wait_time_seconds(5);
        let Ok(response) = request.send().await else {
            return;
        };
        let messages = response.messages();
        if messages.is_empty() {
            continue;
        }
        for message in messages {
            let body: Value = serde_json::from_str(message.body().unwrap()).unwrap();
            let device = body["shadow"]["id"].as_str().unwrap();
            let version = body["version"].as_u64().unwrap();
            received.take(device, version, body["id"].as_str().unwrap());
            meter.notification(since(i128::from(body["timestamp"].as_i64().unwrap())));
        }
        let entries = messages.iter().enumerate().map(|(at, message)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(at.to_string());
            let entry = entry.receipt_handle(message.receipt_handle().unwrap());
            entry.build().unwrap()
        });
        let delete = sqs.delete_message_batch().queue_url(&queue);
        let delete = delete.set_entries(Some(entries.collect()));
        if delete.send().await.is_err() {
            return;
        }
    }
}

/// Receives deliveries until the endpoint is gone.
pub(crate) async fn deliveries(mut endpoint: Receiver, received: Arc<Received>, meter: Arc<Meter>) {
    while let Some(delivery) = endpoint.next().await {
        let body: Value = serde_json::from_str(&delivery.body).unwrap();
        let sensor = body["sensor"]["id"].as_str().unwrap();
        let sequence = body["sequence"].as_u64().unwrap();
        received.take(sensor, sequence, body["id"].as_str().unwrap());
        let occurred = Timestamp::parse(body["occurredAt"].as_str().unwrap()).unwrap();
        meter.delivery(since(occurred.nanoseconds()));
    }
}
