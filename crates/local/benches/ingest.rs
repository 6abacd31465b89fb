//! Throughput of message ingest on the local stack, compared with bare PutItem calls on the same table.
//!
//! Both alternate in one run, minima compared: from the first message sent to the queue until the last one is
//! stored and deleted from it; and the same number of items put with as many calls at once as the stack
//! makes. Prints one row of a Markdown table. `scripts/bench` calls it.

// The benchmark prints its result, and panics if it cannot continue.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::collections::HashMap;
use std::time::{Duration, Instant};

use antumbra_dynamodb::MESSAGES;
use antumbra_local::clients::sdk_config;
use antumbra_local::stack::{Options, Stack};
use aws_sdk_dynamodb::types::{AttributeValue, Select};
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use futures_util::{StreamExt, stream};

/// Messages of one round, and the number of their devices.
const MESSAGES_IN_TURN: usize = 1_000;
const DEVICES: usize = 50;
/// Number of rounds; the fastest counts.
const ROUNDS: usize = 11;
/// Concurrent calls: two batches of ten, as the stack reads its queue.
const AT_ONCE: usize = 20;
const INBOUND: &str = "antumbra-inbound";

type Item = HashMap<String, AttributeValue>;

struct Home {
    sqs: aws_sdk_sqs::Client,
    database: aws_sdk_dynamodb::Client,
    queue: String,
}

#[tokio::main]
async fn main() {
    let stack = Stack::start(Options::default()).await.unwrap();
    let home = Home {
        sqs: aws_sdk_sqs::Client::new(&sdk_config(stack.addresses().aws)),
        database: aws_sdk_dynamodb::Client::new(&sdk_config(stack.addresses().dynamodb)),
        queue: stack.queue_url(INBOUND),
    };
    // Warm up, and take one of the stored items.
    home.ingest(0).await;
    let item = home.an_item().await;
    let (mut ingested, mut put) = (Duration::MAX, Duration::MAX);
    for round in 1..=ROUNDS {
        ingested = ingested.min(home.ingest(round).await);
        put = put.min(home.put(round, &item).await);
    }
    // All messages and items are stored, and the sources' own items.
    let expected = MESSAGES_IN_TURN * (2 * ROUNDS + 1);
    let stored = home.count().await;
    assert!(
        (expected..=expected + DEVICES).contains(&stored),
        "{stored} of {expected}"
    );
    let rate = |took: Duration| MESSAGES_IN_TURN as f64 / took.as_secs_f64();
    println!(
        "| inbox messages per second ({:.0}) / PutItem calls ({:.0}) | {:.2} | | >= 0.6 | 0.9 |",
        rate(ingested),
        rate(put),
        put.as_secs_f64() / ingested.as_secs_f64(),
    );
    stack.stop().await;
}

impl Home {
    /// Sends the messages of one round and waits until the queue is empty.
    async fn ingest(&self, round: usize) -> Duration {
        let entry = |number: usize| {
            let body = format!(
                r#"{{"thingName":"device-{}","epochTime":"{}","temperature":72.5,"round":{round}}}"#,
                number % DEVICES,
                1_564_669_331 + number,
            );
            let entry = SendMessageBatchRequestEntry::builder();
            let entry = entry.id(number.to_string()).message_body(body);
            entry.build().unwrap()
        };
        let numbers: Vec<usize> = (0..MESSAGES_IN_TURN).collect();
        let start = Instant::now();
        let batches = numbers.chunks(10).map(|batch| {
            let entries = batch.iter().map(|number| entry(*number)).collect();
            let call = self.sqs.send_message_batch().queue_url(&self.queue);
            call.set_entries(Some(entries)).send()
        });
        stream::iter(batches)
            .buffer_unordered(2)
            .for_each(|sent| async move { assert!(sent.unwrap().failed().is_empty()) })
            .await;
        while !self.is_empty().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        start.elapsed()
    }

    /// Returns whether no message is waiting or in flight.
    async fn is_empty(&self) -> bool {
        let names = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ];
        let call = self.sqs.get_queue_attributes().queue_url(&self.queue);
        let call = call.set_attribute_names(Some(names.to_vec()));
        let attributes = call.send().await.unwrap().attributes.unwrap();
        names.iter().all(|name| attributes[name] == "0")
    }

    /// Writes as many items.
    async fn put(&self, round: usize, item: &Item) -> Duration {
        let start = Instant::now();
        let calls = (0..MESSAGES_IN_TURN).map(|number| {
            let mut item = item.clone();
            let key = |text: String| AttributeValue::S(text);
            let device = format!("device-{}", number % DEVICES);
            item.insert(MESSAGES.partition_key.to_owned(), key(device));
            let id = format!("1564669331-bare-{round}-{number}");
            item.insert(MESSAGES.sort_key.to_owned(), key(id));
            let call = self.database.put_item().table_name(MESSAGES.name);
            call.set_item(Some(item)).send()
        });
        stream::iter(calls)
            .buffer_unordered(AT_ONCE)
            .for_each(|put| async move { drop(put.unwrap()) })
            .await;
        start.elapsed()
    }

    /// One of the stored messages.
    async fn an_item(&self) -> Item {
        let call = self.database.scan().table_name(MESSAGES.name);
        let items = call.send().await.unwrap().items.unwrap();
        items.into_iter().max_by_key(HashMap::len).unwrap()
    }

    async fn count(&self) -> usize {
        let call = self.database.scan().table_name(MESSAGES.name);
        let mut pages = call.select(Select::Count).into_paginator().send();
        let mut count = 0;
        while let Some(page) = pages.next().await {
            count += page.unwrap().count as usize;
        }
        count
    }
}
