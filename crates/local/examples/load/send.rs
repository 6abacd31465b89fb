//! Senders: devices that report, sensors that send signals.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use antumbra_dynamodb::DynamoDbShadows;
use antumbra_local::progress::Progress;
use antumbra_service::shadows::{ShadowId, Shadows, State};
use antumbra_shadow::Timestamp;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use serde_json::json;
use tokio::task::JoinSet;

use crate::home::{Home, sensor};
use crate::measure::Meter;

const WORKERS: usize = 16;
/// Signals per SQS call.
pub(crate) const BATCH: usize = 10;

/// Accepted reports and signals.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Last version in the response to each device.
    pub(crate) versions: Vec<AtomicU64>,
    /// Signals per sensor.
    pub(crate) signals: Vec<AtomicU64>,
}

impl Sent {
    pub(crate) fn none(devices: usize, sensors: usize) -> Arc<Sent> {
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Sent {
            versions: zeros(devices),
            signals: zeros(sensors),
        })
    }

    pub(crate) fn reports(&self) -> u64 {
        sum(&self.versions)
    }

    pub(crate) fn signals(&self) -> u64 {
        sum(&self.signals)
    }
}

fn sum(all: &[AtomicU64]) -> u64 {
    all.iter().map(|one| one.load(Ordering::Relaxed)).sum()
}

/// Id of a device, by number.
pub(crate) fn device(at: usize) -> ShadowId {
    ShadowId::new(format!("device-{at}")).unwrap()
}

/// Sends reports at a rate, or as fast as possible; `of` chooses the device of each.
pub(crate) fn reports(
    home: &Home,
    total: usize,
    rate: Option<usize>,
    of: impl Fn(usize) -> usize + Clone + Send + 'static,
    sent: &Arc<Sent>,
    meter: &Arc<Meter>,
) -> JoinSet<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let begin = Instant::now();
    let progress = Arc::new(Progress::of(total, "reports sent"));
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let progress = Arc::clone(&progress);
        let (shadows, next, of) = (home.shadows(), Arc::clone(&next), of.clone());
        let (sent, meter) = (Arc::clone(sent), Arc::clone(meter));
        workers.spawn(async move {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= total {
                    return;
                }
                let due = match rate {
                    Some(rate) => begin + Duration::from_secs_f64(at as f64 / rate as f64),
                    None => Instant::now(),
                };
                tokio::time::sleep_until(due.into()).await;
                report(&shadows, of(at), at, &sent).await;
                // From when it was due, so that falling behind shows.
                meter.report(due.elapsed());
                progress.add(1);
            }
        });
    }
    workers
}

/// Sends the report of a device.
pub(crate) async fn report(
    shadows: &Shadows<DynamoDbShadows>,
    number: usize,
    at: usize,
    sent: &Sent,
) {
    let reading = json!({ "temperature": { "value": at, "unit": "C" }, "humidity": at % 100 });
    let updated = shadows.report(&device(number), &reading).await.unwrap();
    let version = updated.version(State::Reported).0 as u64;
    sent.versions[number].fetch_max(version, Ordering::Relaxed);
}

/// Sends signals at a rate, of one sensor after the other, each the opposite of its last.
pub(crate) async fn signals(home: &Home, total: usize, rate: usize, sent: Arc<Sent>) {
    let (sqs, queue) = (home.sqs(), home.stack.queue_url("antumbra-signals"));
    let begin = Instant::now();
    for first in (0..total).step_by(BATCH) {
        let due = begin + Duration::from_secs_f64(first as f64 / rate as f64);
        tokio::time::sleep_until(due.into()).await;
        signal_batch(&sqs, &queue, first..total.min(first + BATCH), &sent).await;
    }
}

/// Sends the signals with these numbers in one call.
pub(crate) async fn signal_batch(
    sqs: &aws_sdk_sqs::Client,
    queue: &str,
    numbers: Range<usize>,
    sent: &Sent,
) {
    let entries = numbers.map(|at| {
        let number = at % sent.signals.len();
        let count = sent.signals[number].fetch_add(1, Ordering::Relaxed);
        let now = std::time::SystemTime::now();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        let signal = json!({ "sensor_id": sensor(number).as_str(), "data": count % 2,
            "ts": Timestamp::from_nanoseconds(now.as_nanos() as i128).to_string(), "seq": count });
        let entry = SendMessageBatchRequestEntry::builder();
        let entry = entry.id(at.to_string()).message_body(signal.to_string());
        entry.build().unwrap()
    });
    let call = sqs.send_message_batch().queue_url(queue);
    let response = call
        .set_entries(Some(entries.collect()))
        .send()
        .await
        .unwrap();
    assert!(response.failed().is_empty(), "{:?}", response.failed());
}
