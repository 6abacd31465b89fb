//! Shared by the tests: short events, a store that fails on demand, a recording quarantine.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use antumbra_lambda_kit::batch::BatchSummary;
use antumbra_sensor_ingest::{Ingest, Rules, UnknownSensorPolicy};
use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::notifications::Channel;
use antumbra_service::quarantine::Quarantine;
use antumbra_service::sensors::{
    OwnedReading, ReadingStore, Recorded, Signal, State, StateStore, StoreError,
};
use antumbra_shadow::Timestamp;
use antumbra_testkit::RecordingChannel;
use antumbra_testkit::progress::MemoryProgress;
use antumbra_testkit::sensors::{MemorySensors, sample};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub(crate) const QUEUE: &str = "antumbra-signals";
/// Time of an invocation.
pub(crate) const TIME: Duration = Duration::from_secs(30);

/// A store that fails by the sensor's name: `busy…` and `mute…` temporarily, `odd…` permanently, `stuck…` never
/// responds. For a `mute…` sensor the state is written and the reading is not.
#[derive(Clone)]
pub(crate) struct Moody {
    pub(crate) sensors: MemorySensors,
    pub(crate) well: Arc<AtomicBool>,
}

impl Moody {
    fn mood(&self, id: &str) -> Option<&'static str> {
        let moods = ["busy", "mute", "odd", "stuck"];
        let mood = moods.into_iter().find(|mood| id.starts_with(mood));
        mood.filter(|_| !self.well.load(Ordering::SeqCst))
    }
}

impl StateStore for Moody {
    async fn record(&self, signal: &Signal) -> Result<Option<Recorded>, StoreError> {
        match self.mood(signal.sensor().as_str()) {
            Some("busy") => Err(StoreError::Throttled),
            Some("odd") => Err(StoreError::Invalid("too odd".to_owned())),
            Some("stuck") => std::future::pending().await,
            _ => self.sensors.record(signal).await,
        }
    }

    async fn save_readings(&self, readings: &[OwnedReading]) -> Vec<Result<(), StoreError>> {
        let saved = self.sensors.save_readings(readings).await;
        let moods = readings
            .iter()
            .map(|one| self.mood(one.owner.sensor.as_str()));
        saved
            .into_iter()
            .zip(moods)
            .map(|(saved, mood)| match mood {
                Some("mute") => Err(StoreError::Unavailable("to order".to_owned())),
                _ => saved,
            })
            .collect()
    }
}

/// A function with everything around it.
pub(crate) struct Home {
    pub(crate) sensors: MemorySensors,
    pub(crate) well: Arc<AtomicBool>,
    pub(crate) progress: MemoryProgress,
    pub(crate) quarantine: Arc<RecordingChannel>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ingest: Ingest<Moody, MemoryProgress, MemorySensors>,
}

impl Home {
    pub(crate) async fn new(registered: &[&str]) -> Home {
        Home::with(registered, Rules::default(), |_| {
            UnknownSensorPolicy::Quarantine
        })
        .await
    }

    pub(crate) async fn with(
        registered: &[&str],
        rules: Rules,
        admission: impl FnOnce(&MemorySensors) -> UnknownSensorPolicy<MemorySensors>,
    ) -> Home {
        let sensors = MemorySensors::default();
        for id in registered {
            sample::registered(&sensors, id).await;
        }
        let well = Arc::new(AtomicBool::new(false));
        let store = Moody {
            sensors: sensors.clone(),
            well: Arc::clone(&well),
        };
        let progress = MemoryProgress::default();
        let quarantine = Arc::new(RecordingChannel::with_limits(10, 8 * 1024));
        let clock = Arc::new(ManualClock::new(sample::at(600)));
        let ingest = Ingest::new(
            store,
            progress.clone(),
            admission(&sensors),
            Quarantine::new(Arc::clone(&quarantine) as Arc<dyn Channel>),
            rules,
            clock.clone(),
        );
        Home {
            sensors,
            well,
            progress,
            quarantine,
            clock,
            ingest,
        }
    }

    pub(crate) fn handle(&self, event: &Value) -> impl Future<Output = BatchSummary> {
        let deadline = self.clock.now().after(TIME);
        let event = event.to_string();
        async move {
            self.ingest
                .process_batch(event.as_bytes(), deadline)
                .await
                .unwrap()
        }
    }

    pub(crate) async fn state(&self, id: &str) -> State {
        sample::state(&self.sensors, id).await
    }

    /// The values of a sensor's readings, newest first.
    pub(crate) async fn readings(&self, id: &str) -> Vec<String> {
        let (_, readings) = self.sensors.latest(&sample::id(id), 100).await.unwrap();
        readings.iter().map(|r| r.value.to_string()).collect()
    }
}

/// Milliseconds of a time.
pub(crate) fn milliseconds(time: Timestamp) -> i128 {
    time.nanoseconds() / 1_000_000
}

/// An event of a standard queue with signals of locks: message ids, seconds after noon, sensors, values.
pub(crate) fn lock_signals(signals: &[(&str, i64, &str, i64)]) -> Value {
    let record = |(id, sent, sensor, data): &(&str, i64, &str, i64)| {
        record(QUEUE, id, *sent, &lock_signal(sensor, *data), json!({}))
    };
    json!({"Records": signals.iter().map(record).collect::<Vec<_>>()})
}

/// An event of a standard queue: ids, seconds after noon, texts.
pub(crate) fn sqs(messages: &[(&str, i64, &str)]) -> Value {
    let record = |(id, sent, body): &(&str, i64, &str)| record(QUEUE, id, *sent, body, json!({}));
    json!({"Records": messages.iter().map(record).collect::<Vec<_>>()})
}

/// An event of a FIFO queue, everything sent at once: ids, groups, texts.
pub(crate) fn fifo(messages: &[(&str, &str, &str)]) -> Value {
    let record = |(at, (id, group, body)): (usize, &(&str, &str, &str))| {
        let sequence = format!("1884949646046769{at:04}");
        let order = json!({"MessageGroupId": group, "SequenceNumber": sequence});
        record("antumbra-signals.fifo", id, 60, body, order)
    };
    json!({"Records": messages.iter().enumerate().map(record).collect::<Vec<_>>()})
}

fn record(queue: &str, id: &str, sent: i64, body: &str, more: Value) -> Value {
    let mut attributes = json!({
        "SentTimestamp": milliseconds(sample::at(sent)).to_string(),
        "ApproximateReceiveCount": "1",
    });
    let all = attributes.as_object_mut().unwrap();
    all.extend(more.as_object().unwrap().clone());
    json!({
        "messageId": id,
        "receiptHandle": "handle",
        "body": body,
        "attributes": attributes,
        "messageAttributes": {},
        "md5OfBody": "",
        "eventSource": "aws:sqs",
        "eventSourceARN": format!("arn:aws:sqs:us-east-1:000000000000:{queue}"),
        "awsRegion": "us-east-1",
    })
}

/// Redelivered flag and bytes of a RabbitMQ message.
type Sent<'a> = (bool, &'a [u8]);

/// An event of RabbitMQ queues: each with whether it was delivered before, and its content.
pub(crate) fn rabbitmq(queues: &[(&str, &[Sent<'_>])]) -> Value {
    let message = |(redelivered, content): &(bool, &[u8])| {
        json!({
            "basicProperties": {"messageId": null, "timestamp": null, "bodySize": content.len()},
            "redelivered": redelivered,
            "data": STANDARD.encode(content),
        })
    };
    let queues: serde_json::Map<String, Value> = queues
        .iter()
        .map(|(name, messages)| {
            let messages: Vec<Value> = messages.iter().map(message).collect();
            ((*name).to_owned(), Value::from(messages))
        })
        .collect();
    json!({"eventSource": "aws:rmq", "eventSourceArn": "arn:aws:mq:::broker:b", "rmqMessagesByQueue": queues})
}

/// Signal of a lock.
pub(crate) fn lock_signal(id: &str, data: i64) -> String {
    json!({"sensor_id": id, "data": data}).to_string()
}

/// Returns these counts of a summary.
pub(crate) fn counts<const N: usize>(summary: &BatchSummary, names: [&str; N]) -> [usize; N] {
    names.map(|name| summary.count(name))
}
