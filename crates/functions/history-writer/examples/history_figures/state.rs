//! The state at a time, with few and with many entries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use antumbra_dynamodb::{DynamoDbShadows, ShadowTableConfig};
use antumbra_service::clock::{Clock, ManualClock, SystemClock};
use antumbra_service::history::StateAt;
use antumbra_service::shadows::{ShadowId, Shadows};
use antumbra_shadow::{Model, Timestamp};
use fastrand::Rng;

use crate::load::{STEP, Tables, document, record};
use crate::percentiles;

const BATCH: u64 = 1000;
const QUESTIONS: usize = 1000;

pub(crate) async fn print(most: u64) {
    println!(
        "\n| entries | calls | calls of all questions | p50 ms | p99 ms |\n|---|---|---|---|---|"
    );
    for entries in [1, 1_000, most] {
        ask(entries).await;
    }
}

async fn ask(entries: u64) {
    let tables = Tables::new(None).await;
    let table = &tables.main;
    let store = || DynamoDbShadows::new(table.client.clone(), ShadowTableConfig::new(&table.name));
    let device = ShadowId::new("device").unwrap();
    let now = SystemClock.now();
    let start = u64::try_from(now.nanoseconds()).unwrap() - (entries + 2) * STEP;
    let time = |version: u64| start + version * STEP;
    let written = Timestamp::from_nanoseconds(time(entries).into());
    let shadows = Shadows::with_clock(store(), Arc::new(ManualClock::new(written)));
    let current = shadows.report(&device, &document(entries)).await;
    current.unwrap();
    for first in (1..=entries).step_by(BATCH as usize) {
        let versions = first..(first + BATCH).min(entries + 1);
        let records = versions.map(|version| record("device", version, time(version)));
        tables.record(records.collect()).await;
        table.endpoint.take_calls();
    }
    let reader = tables.history.clone().reader(store(), Model::default());
    let mut random = Rng::with_seed(1);
    let (mut times, mut counts) = (Vec::new(), BTreeMap::new());
    for _ in 0..QUESTIONS {
        let at = random.u64(time(1)..time(entries.max(2)));
        let at = Timestamp::from_nanoseconds(at.into());
        let began = Instant::now();
        let state = reader.state_at(&device, at, now).await.unwrap();
        times.push(began.elapsed());
        assert!(matches!(state, StateAt::Existed(_)), "{at}: {state:?}");
        let calls = table.endpoint.take_operations().len();
        *counts.entry(calls).or_insert(0) += 1;
    }
    let all: usize = counts.iter().map(|(calls, count)| calls * count).sum();
    let (median, high) = percentiles(&mut times);
    println!(
        "| {entries} | {:.1} | {counts:?} | {median:.2} | {high:.2} |",
        all as f64 / QUESTIONS as f64
    );
}
