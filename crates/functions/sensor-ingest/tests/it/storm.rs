//! Bursts of 0 and 1 from many workers at once, with duplicates and reordering: the end is right and the
//! occurrences are numbered without a gap. Seeded; on memory and on DynamoDB.

use std::sync::{Arc, Mutex};

use antumbra_dynamodb::{DynamoDbProgress, DynamoDbSensors, MAIN, SensorConfig};
use antumbra_sensor_ingest::{Ingest, Rules, UnknownSensorPolicy};
use antumbra_service::clock::ManualClock;
use antumbra_service::liveness::IngestProgress;
use antumbra_service::quarantine::Quarantine;
use antumbra_service::sensors::{ReadingStore, SensorStore, State, StateStore, Value};
use antumbra_testkit::RecordingChannel;
use antumbra_testkit::dynamodb::TestTable;
use antumbra_testkit::progress::MemoryProgress;
use antumbra_testkit::sensors::{MemorySensors, sample, storm::assert_history};
use futures_util::future::join_all;
use serde_json::json;

use crate::support::{TIME, sqs};

/// States before and after each write, in order.
type Images = Arc<Mutex<Vec<(Option<State>, State)>>>;

const SENSORS: usize = 5;
const SIGNALS: usize = 40;
const WORKERS: usize = 4;

/// The signals, and how often each is delivered.
struct Burst {
    /// Sensor, moment and value.
    said: Vec<(usize, i64, i64)>,
    /// Events of up to ten messages, by worker.
    shares: Vec<Vec<serde_json::Value>>,
}

fn burst(seed: u64) -> Burst {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut said = Vec::new();
    let mut sent = Vec::new();
    for sensor in 0..SENSORS {
        for n in 0..SIGNALS {
            let (measured, value) = (60 + n as i64, random.i64(0..=1));
            let text = json!({
                "sensor_id": format!("s{sensor}"),
                "data": value,
                "ts": sample::at(measured).to_string(),
                "seq": n,
            });
            let message = (
                format!("m-{sensor}-{n}"),
                measured + random.i64(0..5),
                text.to_string(),
            );
            said.push((sensor, measured, value));
            sent.extend((0..random.usize(1..=3)).map(|_| message.clone()));
        }
    }
    random.shuffle(&mut sent);
    let events: Vec<_> = sent
        .chunks(10)
        .map(|chunk| {
            let messages: Vec<(&str, i64, &str)> = chunk
                .iter()
                .map(|(id, sent, text)| (id.as_str(), *sent, text.as_str()))
                .collect();
            sqs(&messages)
        })
        .collect();
    let shares = events
        .chunks(events.len().div_ceil(WORKERS))
        .map(<[_]>::to_vec)
        .collect();
    Burst { said, shares }
}

/// Lets as many functions as there are shares work at once, each until nothing of its share is left.
async fn blow<S, P>(store: &S, progress: &P, burst: &Burst)
where
    S: StateStore + SensorStore + Clone,
    P: IngestProgress + Clone,
{
    for sensor in 0..SENSORS {
        sample::registered(store, &format!("s{sensor}")).await;
    }
    let workers = burst.shares.iter().map(|share| async move {
        let ingest: Ingest<S, P, S> = Ingest::new(
            store.clone(),
            progress.clone(),
            UnknownSensorPolicy::Quarantine,
            Quarantine::new(Arc::new(RecordingChannel::default())),
            Rules::default(),
            Arc::new(ManualClock::new(sample::at(600))),
        );
        for event in share {
            let event = event.to_string();
            loop {
                let deadline = sample::at(600).after(TIME);
                let summary = ingest
                    .process_batch(event.as_bytes(), deadline)
                    .await
                    .unwrap();
                assert_eq!(summary.count("quarantined"), 0);
                if summary.failed.is_empty() {
                    break;
                }
            }
        }
    });
    join_all(workers).await;
}

async fn assert_end<S: SensorStore + ReadingStore>(store: &S, burst: &Burst) {
    for sensor in 0..SENSORS {
        let name = format!("s{sensor}");
        let ours = burst.said.iter().filter(|(of, ..)| *of == sensor);
        let (_, measured, value) = ours.max_by_key(|(_, measured, _)| *measured).unwrap();
        let state: State = sample::state(store, &name).await;
        assert_eq!(state.value, Some(Value::whole(*value)));
        assert_eq!(state.moment.unwrap().time(), sample::at(*measured));
        let (_, readings) = store.latest(&sample::id(&name), 1000).await.unwrap();
        assert_eq!(readings.len(), SIGNALS, "each once, in whatever order");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_memory() {
    for seed in 0..10 {
        let sensors = MemorySensors::default();
        let images: Images = Arc::default();
        let seen = Arc::clone(&images);
        sensors.watch(move |old, new| {
            seen.lock().unwrap().push((old.cloned(), new.clone()));
        });
        let burst = burst(seed);
        blow(&sensors, &MemoryProgress::default(), &burst).await;
        assert_end(&sensors, &burst).await;
        assert!(assert_history(&images.lock().unwrap()) > 0, "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_dynamodb() {
    for seed in [100, 101] {
        let table = TestTable::create(MAIN).await;
        let sensors = DynamoDbSensors::new(table.client.clone(), SensorConfig::new(&table.name));
        let progress = DynamoDbProgress::new(table.client, &table.name);
        let burst = burst(seed);
        blow(&sensors, &progress, &burst).await;
        assert_end(&sensors, &burst).await;
    }
}
