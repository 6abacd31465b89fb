//! Changes of a device: a document of 1.5 KB, of which each report changes one timestamped value.

use antumbra_dynamodb::{DynamoDbHistory, FeedConfig, HISTORY, HistoryConfig, MAIN};
use antumbra_history_writer::HistoryWriter;
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_shadow::{Document, Model};
use antumbra_testkit::dynamodb::TestTable;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

const SENSORS: u64 = 12;
const SETTINGS: u64 = 24;
/// Nanoseconds between two reports of a device.
pub(crate) const STEP: u64 = 60_000_000_000;

/// A document after so many changes.
pub(crate) fn document(version: u64) -> Value {
    let mut members = Map::new();
    for sensor in 0..SENSORS {
        // The last change of this sensor.
        let turn = version.saturating_sub((version + SENSORS - sensor) % SENSORS);
        let value = (turn * 7919 % 1000) as f64 / 10.0;
        let seen = json!({"value": value, "timestamp": 1_790_000_000 + turn});
        members.insert(format!("sensor-{sensor:02}"), seen);
    }
    for setting in 0..SETTINGS {
        let value = format!("{:x}", (setting + 1) * 0x9e37_79b9_7f4a % 0xffff_ffff);
        members.insert(format!("setting-{setting:02}"), json!(value));
    }
    Value::Object(members)
}

pub(crate) fn parsed(version: u64) -> Document {
    Document::from_value(document(version).as_object().unwrap()).unwrap()
}

/// The item of a device.
pub(crate) fn image(device: &str, version: u64, time: u64) -> Value {
    json!({
        "PK": {"S": format!("DS#{device}")}, "SK": {"S": "DSR#main"},
        "version": {"N": version.to_string()}, "timestamp": {"N": time.to_string()},
        "reported": attribute(&document(version)),
    })
}

/// The stream record of the change that makes a version of a device's document.
pub(crate) fn record(device: &str, version: u64, time: u64) -> Value {
    let mut images = json!({
        "ApproximateCreationDateTime": time / 1_000_000_000,
        "Keys": {"PK": {"S": format!("DS#{device}")}, "SK": {"S": "DSR#main"}},
        "NewImage": image(device, version, time),
        "SequenceNumber": format!("{version:021}"),
        "SizeBytes": 3000,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    });
    if version > 1 {
        images["OldImage"] = image(device, version - 1, time - STEP);
    }
    json!({
        "eventID": format!("{device}-{version}"),
        "eventName": if version > 1 { "MODIFY" } else { "INSERT" },
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "eu-north-1",
        "dynamodb": images,
        "eventSourceARN": "arn:aws:dynamodb:eu-north-1:000000000000:table/antumbra/stream/1",
    })
}

fn attribute(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| (name.clone(), attribute(value)));
            json!({"M": members.collect::<Map<String, Value>>()})
        }
        Value::Number(number) => json!({"N": number.to_string()}),
        other => json!({"S": other}),
    }
}

/// Tables, and a writer of their history.
pub(crate) struct Tables {
    pub(crate) main: TestTable,
    pub(crate) history: DynamoDbHistory,
    pub(crate) writer: HistoryWriter,
}

impl Tables {
    pub(crate) async fn new(feed: Option<FeedConfig>) -> Tables {
        let main = TestTable::create(MAIN).await;
        let table = main.another(HISTORY).await;
        let history =
            DynamoDbHistory::new(main.client.clone(), HistoryConfig { table, days: 3650 });
        let clock = Arc::new(SystemClock);
        let writer = HistoryWriter::new(history.clone(), feed, Model::default(), clock);
        Tables {
            main,
            history,
            writer,
        }
    }

    /// Invokes the writer with these records until all are written.
    pub(crate) async fn record(&self, records: Vec<Value>) {
        let event = json!({"Records": records}).to_string();
        let deadline = SystemClock.now().after(Duration::from_secs(600));
        let summary = self
            .writer
            .record(event.as_bytes(), deadline)
            .await
            .unwrap();
        assert_eq!(summary.resume_at, None, "{summary:?}");
    }
}
