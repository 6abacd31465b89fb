//! Writes by partition key and index key: none that many devices share may take more than DynamoDB allows for one.
//!
//! The stores make their writes as ever. They are counted instead of sent, because 100,000 devices would take minutes.
//!
//! Reports are those of 100,000 devices. The other writes are those of 10,000: of 64 shards each gets 156, with a standard
//! deviation of 12, so that a key with a load of half the limit does not fail by chance, and one with twice the limit does.

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

const REPORTING: usize = 100_000;
const OTHERS: usize = 10_000;
const REPORTS_PER_SECOND: f64 = 10_000.0;
/// Registrations of sensors: a million within some minutes.
const REGISTRATIONS_PER_SECOND: f64 = 5_000.0;
/// An outage or the return of a million sensors within a minute.
const SENSORS_PER_SECOND: f64 = 1_000_000.0 / 60.0;
/// DynamoDB's limit for a partition, of a table or of an index.
const WRITE_UNITS_PER_SECOND: f64 = 1_000.0;

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

/// Runs a step for each device, and returns the units that each key would take in a second with so many steps a second.
async fn load(devices: usize, rate: f64, step: impl AsyncFn(usize)) -> Vec<(String, f64)> {
    COUNTS.with_borrow_mut(|counts| counts.get_or_insert_default().units.clear());
    for device in 0..devices {
        step(device).await;
    }
    let units =
        COUNTS.with_borrow_mut(|counts| std::mem::take(&mut counts.as_mut().unwrap().units));
    assert!(!units.is_empty());
    let seconds = devices as f64 / rate;
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

fn has(load: &[(String, f64)], beginning: &str) -> bool {
    load.iter().any(|(key, _)| key.starts_with(beginning))
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
        let load = load(REPORTING, REPORTS_PER_SECOND, async |device| {
            let report = report_of(&shadow(&name(device)), 1, expected);
            shadows.write(&report).await.unwrap();
        });
        let load = load.await;
        assert!(has(&load, "Fleet SHADOWS#"));
        assert_eq!(hot(&load), [""; 0]);
    }
}

/// Registrations, then signals, a sweep of all sensors, an outage of all, their return, and the purge of all.
#[tokio::test]
async fn sensors_share_no_key() {
    let sensors = DynamoDbSensors::new(client(), SensorConfig::new(MAIN.name));
    let registrations = load(OTHERS, REGISTRATIONS_PER_SECOND, async |device| {
        let city = format!("city-{}", device % 100);
        let sensor = sensor(&name(device), [&city, "A", "1", "1"]);
        sensors.register(&new(sensor)).await.unwrap();
    });
    let registrations = registrations.await;
    assert!(has(&registrations, "Listed SENSORS#"));
    assert_eq!(hot(&registrations), [""; 0]);
    let signals = async |second| {
        let load = load(OTHERS, SENSORS_PER_SECOND, async |device| {
            // Its result needs the stored state; the write is counted.
            let signal = signal(&name(device), 1, second, second);
            let _ = sensors.record(&signal).await;
        });
        let signals = load.await;
        assert!(has(&signals, "Live LIVE#"));
        assert_eq!(hot(&signals), [""; 0]);
    };
    signals(1).await;
    let rearmed = load(OTHERS, SENSORS_PER_SECOND, async |device| {
        sensors.rearm(&id(&name(device))).await.unwrap();
    });
    assert_eq!(hot(&rearmed.await), [""; 0]);
    let lost = load(OTHERS, SENSORS_PER_SECOND, async |device| {
        sensors.check(&id(&name(device)), at(1)).await.unwrap();
    });
    assert_eq!(hot(&lost.await), [""; 0]);
    signals(2).await;
    let main = Table::new(client(), MAIN.name, MAIN);
    let unregistered = load(OTHERS, REGISTRATIONS_PER_SECOND, async |device| {
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
    let load = load(OTHERS, REPORTS_PER_SECOND, async |device| {
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
    assert!(has(&load, "#sources#"));
    assert_eq!(hot(&load), [""; 0]);
}

/// The target of a registration that matches every device fails.
#[tokio::test]
async fn spilled_notifications_share_no_key() {
    let suspensions = DynamoDbSuspensions::new(client(), MAIN.name);
    let load = load(OTHERS, REPORTS_PER_SECOND, async |device| {
        let key = SpilledKey {
            registration: "all".to_owned(),
            key: name(device),
        };
        let marks = [(key, "id".to_owned())];
        suspensions.mark(&marks, at(1)).await.unwrap();
    });
    assert_eq!(hot(&load.await), [""; 0]);
}
