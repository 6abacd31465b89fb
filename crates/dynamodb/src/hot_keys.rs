//! Writes by partition key and index key: none that many devices share may take more than DynamoDB allows for one.
//!
//! The stores make their writes as ever. They are counted instead of sent, because 100,000 devices would take minutes.

use std::cell::RefCell;
use std::collections::HashMap;

use antumbra_service::inbox::{MessageWriter as _, SourceTracker as _};
use antumbra_service::notifications::suspension::{SpilledKey, Suspensions as _};
use antumbra_service::sensors::{LivenessIndex as _, SensorStore as _, StateStore as _};
use antumbra_service::shadows::ShadowStore as _;
use antumbra_shadow::Timestamp;
use antumbra_testkit::sample::{report_of, shadow};
use antumbra_testkit::sensors::sample::{at, id, new, sensor, signal};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::BehaviorVersion;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::table::{Key, Table};
use crate::{
    DynamoDbInbox, DynamoDbSensors, DynamoDbShadows, DynamoDbSuspensions, Index, MAIN, MESSAGES,
    SensorConfig, ShadowTableConfig,
};

const DEVICES: usize = 100_000;
const REPORTS_PER_SECOND: f64 = 10_000.0;
/// DynamoDB's limit for a partition, of a table or of an index.
const WRITE_UNITS_PER_SECOND: f64 = 1_000.0;

/// Beginning of the keys that are known to take more: the shards of the index of all sensors, which registrations write.
const OPEN: &str = "Listed ";

/// A write, and the entries of indexes that it may change.
pub(crate) struct CountedWrite {
    pub(crate) key: Key,
    pub(crate) indexes: Vec<IndexEntry>,
}

/// An item's entry in an index: the parts of its key there that a write sets to a value.
#[derive(Clone)]
pub(crate) struct IndexEntry {
    pub(crate) index: Index<'static>,
    pub(crate) partition: Option<String>,
    pub(crate) sort: Option<AttributeValue>,
}

#[derive(Default)]
struct Counts {
    /// Write units by partition key, or by index and its partition key.
    units: HashMap<String, f64>,
    /// Entries of items in indexes.
    entries: HashMap<(Key, &'static str), IndexEntry>,
}

thread_local! {
    static COUNTS: RefCell<Option<Counts>> = const { RefCell::new(None) };
}

/// Counts write units. Returns `false` if nothing is being counted, and the writes are to be sent.
pub(crate) fn count(writes: Vec<CountedWrite>) -> bool {
    COUNTS.with_borrow_mut(|counts| {
        let Some(Counts { units, entries }) = counts else {
            return false;
        };
        for CountedWrite { key, indexes } in writes {
            *units.entry(key.partition.clone()).or_default() += 1.0;
            for mut entry in indexes {
                let place = (key.clone(), entry.index.name);
                let before = entries.get(&place);
                let known = before.and_then(|before| before.partition.clone());
                entry.partition = entry.partition.or(known);
                let partition = entry.partition.clone().expect("the key in the index");
                let key = format!("{} {partition}", entry.index.name);
                *units.entry(key).or_default() += index_units(before, &entry);
                entries.insert(place, entry);
            }
        }
        true
    })
}

/// Units of an index: one for a new entry, none for one whose key stays unless it has the whole item, and two if its key
/// changes or may change.
fn index_units(before: Option<&IndexEntry>, after: &IndexEntry) -> f64 {
    match before {
        None => 1.0,
        Some(before) if after.sort.is_none() || before.sort != after.sort => 2.0,
        Some(_) => f64::from(u8::from(after.index.whole)),
    }
}

/// Runs a step for each device, and returns the units that each key would take in a second.
async fn load(step: impl AsyncFn(usize)) -> Vec<(String, f64)> {
    COUNTS.with_borrow_mut(|counts| counts.get_or_insert_default().units.clear());
    for device in 0..DEVICES {
        step(device).await;
    }
    let units =
        COUNTS.with_borrow_mut(|counts| std::mem::take(&mut counts.as_mut().unwrap().units));
    assert!(!units.is_empty());
    let seconds = DEVICES as f64 / REPORTS_PER_SECOND;
    let per_second = units.into_iter().map(|(key, units)| (key, units / seconds));
    per_second.collect()
}

/// The keys of a load that take too much.
fn hot(load: &[(String, f64)]) -> Vec<&str> {
    let hot = load
        .iter()
        .filter(|(_, units)| *units > WRITE_UNITS_PER_SECOND);
    hot.map(|(key, _)| &key[..]).collect()
}

fn client() -> Client {
    let config = aws_sdk_dynamodb::Config::builder().behavior_version(BehaviorVersion::latest());
    Client::from_conf(config.build())
}

fn name(device: usize) -> String {
    format!("device-{device}")
}

#[tokio::test]
async fn first_and_later_reports_share_no_key() {
    let shadows = DynamoDbShadows::new(client(), ShadowTableConfig::new(MAIN.name));
    for expected in [0, 1] {
        let load = load(async |device| {
            let report = report_of(&shadow(&name(device)), 1, expected);
            shadows.write(&report).await.unwrap();
        });
        let load = load.await;
        assert!(
            load.iter()
                .any(|(key, _)| key.starts_with("Fleet SHADOWS#"))
        );
        assert_eq!(hot(&load), [""; 0]);
    }
}

/// Registrations, and then signals, a sweep of all sensors, an outage of all, their return, and the purge of all.
#[tokio::test]
async fn sensors_share_no_key_but_the_open_ones() {
    let sensors = DynamoDbSensors::new(client(), SensorConfig::new(MAIN.name));
    let registrations = load(async |device| {
        let city = format!("city-{}", device % 100);
        let sensor = sensor(&name(device), [&city, "A", "1", "1"]);
        sensors.register(&new(sensor)).await.unwrap();
    });
    let registrations = registrations.await;
    let hot_keys = hot(&registrations);
    assert!(
        hot_keys.iter().all(|key| key.starts_with(OPEN)),
        "{hot_keys:?}"
    );
    let signals = load(async |device| {
        // Its result needs the stored state; the write is counted.
        let _ = sensors.record(&signal(&name(device), 1, 1, 1)).await;
    });
    let signals = signals.await;
    assert!(signals.iter().any(|(key, _)| key.starts_with("Live LIVE#")));
    assert_eq!(hot(&signals), [""; 0]);
    let rearmed = load(async |device| {
        sensors.rearm(&id(&name(device))).await.unwrap();
    });
    assert_eq!(hot(&rearmed.await), [""; 0]);
    let lost = load(async |device| {
        sensors.check(&id(&name(device)), at(1)).await.unwrap();
    });
    assert_eq!(hot(&lost.await), [""; 0]);
    let main = Table::new(client(), MAIN.name, MAIN);
    let unregistered = load(async |device| {
        let sensor = new(sensor(&name(device), ["city", "A", "1", "1"]));
        main.write(sensors.put_purge(&sensor, at(1))).await.unwrap();
    });
    assert_eq!(hot(&unregistered.await), [""; 0]);
}

/// Also if no function remembers which sources it has recorded.
#[tokio::test]
async fn inbox_messages_share_no_key() {
    let inbox = DynamoDbInbox::new(client(), MESSAGES.name);
    let text = |device| format!(r#"{{"thingName":"{}","epochTime":1}}"#, name(device));
    let parser = antumbra_service::inbox::MessageParser::default();
    let load = load(async |device| {
        let incoming = antumbra_service::inbox::IncomingMessage {
            text: &text(device),
            queue_id: "m",
            sent_milliseconds: 1,
        };
        let message = parser.read(&incoming, Timestamp::default()).unwrap();
        inbox.touch(&message.source, at(1)).await.unwrap();
        inbox.store(&message).await.unwrap();
    });
    let load = load.await;
    assert!(load.iter().any(|(key, _)| key.starts_with("#sources#")));
    assert_eq!(hot(&load), [""; 0]);
}

/// The target of a registration that matches every device fails.
#[tokio::test]
async fn spilled_notifications_share_no_key() {
    let suspensions = DynamoDbSuspensions::new(client(), MAIN.name);
    let load = load(async |device| {
        let key = SpilledKey {
            registration: "all".to_owned(),
            key: name(device),
        };
        let marks = [(key, "id".to_owned())];
        suspensions.mark(&marks, at(1)).await.unwrap();
    });
    assert_eq!(hot(&load.await), [""; 0]);
}
