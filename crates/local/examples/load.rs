//! How much one local stack takes: reports at a steady rate over the wire, each a read and a write in
//! DynamoDB and a notification in a queue, which is received.
//!
//! `cargo run --release -p antumbra-local --example load -- [REPORTS_PER_SECOND] [SECONDS] [memory]`

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use antumbra_dynamodb::{Config, DynamoDbShadows, MAIN};
use antumbra_local::clients::sdk_config;
use antumbra_local::stack::{Options, Stack};
use antumbra_registration::Registrations;
use antumbra_service::clock::ShiftedClock;
use antumbra_service::shadows::{ShadowId, Shadows};
use aws_sdk_sqs::types::DeleteMessageBatchRequestEntry;
use serde_json::json;

const DEVICES: usize = 200;
const WORKERS: usize = 16;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| {
        let text = arguments.get(at);
        text.map_or(default, |text| text.parse().unwrap())
    };
    let (rate, seconds) = (number(0, 1000), number(1, 60));
    let memory = arguments.iter().any(|word| word == "memory");

    let directory = tempfile::tempdir().unwrap();
    let rule = r#"{"name":"load","send":["diff"],"to":{"sqs":{"queue":"load"}}}"#;
    let stack = Stack::start(Options {
        data_dir: (!memory).then(|| directory.path().to_owned()),
        dynamodb_port: 0,
        aws_port: 0,
        mqtt_port: 0,
        http_port: 0,
        http_token: None,
        registrations: Registrations::load([("load.json", rule)], &|_| None).unwrap(),
        clock: ShiftedClock::default(),
        ..Options::default()
    })
    .await
    .unwrap();
    let addresses = stack.addresses();
    println!("up: {} MB resident", resident_megabytes());

    let received = Arc::new(AtomicUsize::new(0));
    let queue = stack.queue_url("load");
    for _ in 0..2 {
        let sqs = aws_sdk_sqs::Client::new(&sdk_config(addresses.aws));
        tokio::spawn(receive(sqs, queue.clone(), Arc::clone(&received)));
    }

    let total = rate * seconds;
    let next = Arc::new(AtomicUsize::new(0));
    let (begin, before) = (Instant::now(), processor_seconds());
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..WORKERS {
        let next = Arc::clone(&next);
        let tables =
            DynamoDbShadows::connect(&sdk_config(addresses.dynamodb), Config::new(MAIN.name));
        let shadows = Shadows::new(tables);
        workers.spawn(async move {
            let mut took = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= total {
                    return took;
                }
                let due = begin + Duration::from_secs_f64(at as f64 / rate as f64);
                tokio::time::sleep_until(due.into()).await;
                let device = ShadowId::new(format!("device-{}", at % DEVICES)).unwrap();
                let reading =
                    json!({ "temperature": { "value": at, "unit": "C" }, "humidity": at % 100 });
                shadows.report(&device, &reading).await.unwrap();
                // From when it was due, so that falling behind shows.
                took.push(due.elapsed());
            }
        });
    }
    let mut took = Vec::with_capacity(total);
    while let Some(part) = workers.join_next().await {
        took.extend(part.unwrap());
    }
    let reported = begin.elapsed();
    while received.load(Ordering::Relaxed) < total {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let notified = begin.elapsed();
    let processor = processor_seconds() - before;

    took.sort();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    println!(
        "{total} reports in {:.1} s ({:.0} a second), notified after {:.1} s",
        reported.as_secs_f64(),
        total as f64 / reported.as_secs_f64(),
        notified.as_secs_f64(),
    );
    println!(
        "a report took {:.1} ms (median), {:.1} ms (99 %), {:.1} ms (longest)",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    println!(
        "{:.2} cores busy, stack, reporters and receivers together; {} MB resident",
        processor / notified.as_secs_f64(),
        resident_megabytes()
    );
    stack.stop().await;
}

async fn receive(sqs: aws_sdk_sqs::Client, queue: String, received: Arc<AtomicUsize>) {
    loop {
        let request = sqs.receive_message().queue_url(&queue);
        let request = request.max_number_of_messages(10).wait_time_seconds(20);
        let Ok(answer) = request.send().await else {
            return;
        };
        let messages = answer.messages();
        if messages.is_empty() {
            continue;
        }
        let entries = messages.iter().enumerate().map(|(at, message)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(at.to_string());
            entry
                .receipt_handle(message.receipt_handle().unwrap())
                .build()
                .unwrap()
        });
        let delete = sqs.delete_message_batch().queue_url(&queue);
        let delete = delete.set_entries(Some(entries.collect()));
        delete.send().await.unwrap();
        received.fetch_add(messages.len(), Ordering::Relaxed);
    }
}

/// What the process has used of the processors, where /proc says so.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|t| t.parse::<f64>().ok());
    (ticks(12).unwrap_or_default() + ticks(13).unwrap_or_default()) / 100.0
}

fn resident_megabytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|t| t.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096 / 1_000_000
}
