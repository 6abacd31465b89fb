//! A reader of the change feed: how fast it catches up, and how soon it sees changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use antumbra_dynamodb::{DynamoDbShadows, Feed, FeedConfig, ShadowTableConfig};
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::history::feed::{FeedFilter, FeedStart};
use antumbra_shadow::Model;

use crate::load::{STEP, Tables, record};
use crate::percentiles;

const DEVICES: u64 = 1000;
const SECONDS: u64 = 20;
const PAGE: usize = 1000;
const FEED: FeedConfig = FeedConfig {
    days: 7,
    partitions: 4,
};

pub(crate) async fn print() {
    let tables = Tables::new(Some(FEED)).await;
    let table = &tables.main;
    let store = DynamoDbShadows::new(table.client.clone(), ShadowTableConfig::new(&table.name));
    let reader = tables.history.clone().reader(store, Model::default());
    let feed = reader.feed(Arc::new(SystemClock));
    // Start of each invocation, by the version that all devices have in it.
    let written: Arc<Mutex<HashMap<i64, Instant>>> = Arc::default();
    let follower = tokio::spawn(follow(feed.clone(), Arc::clone(&written)));
    let now = u64::try_from(SystemClock.now().nanoseconds()).unwrap();
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    let mut writes = Vec::new();
    for version in 1..=SECONDS {
        let time = now - STEP * (SECONDS - version);
        let records = (0..DEVICES).map(|device| record(&format!("device-{device}"), version, time));
        let records = records.collect();
        seconds.tick().await;
        let began = Instant::now();
        written.lock().unwrap().insert(version as i64, began);
        tables.record(records).await;
        writes.push(began.elapsed());
        table.endpoint.take_calls();
    }
    let mut latencies = follower.await.unwrap();
    let ((median, high), (invocation, slowest)) =
        (percentiles(&mut latencies), percentiles(&mut writes));
    println!(
        "\n{DEVICES} changes a second for {SECONDS} s, one reader: {} received;",
        latencies.len()
    );
    println!("from the start of the writer's invocation: p50 {median:.0} ms, p99 {high:.0} ms");
    println!(
        "an invocation with {DEVICES} changes: p50 {invocation:.0} ms, longest {slowest:.0} ms"
    );
    let began = Instant::now();
    let (mut start, mut count) = (FeedStart::Oldest, 0);
    loop {
        let page = page(&feed, &start, Duration::ZERO).await;
        count += page.changes.len();
        start = FeedStart::parse(&page.cursor.0);
        if !page.has_more {
            break;
        }
    }
    let took = began.elapsed().as_secs_f64();
    let calls = table.endpoint.take_calls().len();
    println!(
        "catching up: {count} changes in {took:.2} s, {:.0} a second, {calls} calls",
        count as f64 / took
    );
}

async fn page(
    feed: &Feed,
    start: &FeedStart,
    wait: Duration,
) -> antumbra_service::history::feed::FeedPage {
    let filter = FeedFilter::default();
    feed.read(start, PAGE, wait, &filter).await.unwrap()
}

/// Follows the feed until all changes have come; returns how long after the start of their invocation each came.
async fn follow(feed: Feed, written: Arc<Mutex<HashMap<i64, Instant>>>) -> Vec<Duration> {
    let (mut start, mut latencies) = (FeedStart::Oldest, Vec::new());
    while latencies.len() < (DEVICES * SECONDS) as usize {
        let page = page(&feed, &start, Duration::from_secs(5)).await;
        start = FeedStart::parse(&page.cursor.0);
        let now = Instant::now();
        let written = written.lock().unwrap();
        let of_change = |version: i64| now - written[&version];
        latencies.extend(
            page.changes
                .iter()
                .map(|one| of_change(one.change.version.0)),
        );
    }
    latencies
}
